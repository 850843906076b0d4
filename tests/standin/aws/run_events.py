"""EventBridge's events of job runs: each rule of the default bus that matches calls its functions. moto delivers to none.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html
"""

from __future__ import annotations

import threading
import uuid
from typing import Any, cast

from moto.awslambda.models import LambdaFunction, lambda_backends
from moto.emrserverless.models import Application
from moto.events.models import events_backends

from tests.standin.aws.job_run import JobRun

SOURCE, DETAIL_TYPE = "aws.emr-serverless", "EMR Serverless Job Run State Change"


def state_change(application: Application, run: JobRun) -> dict[str, Any]:
    """Return the event of a run that has just changed its state."""
    region, account = application.arn.split(":")[3:5]
    detail = {"jobRunId": run.id, "applicationId": application.id, "state": str(run.state)}
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": DETAIL_TYPE,
        "source": SOURCE,
        "account": account,
        "region": region,
        "time": run.attempt.updated_at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "resources": [],
        "detail": detail,
    }


def targets(event: dict[str, Any]) -> list[LambdaFunction]:
    """Return the functions that an event's rules call."""
    account, region = event["account"], event["region"]
    rules = events_backends[account][region].event_buses["default"].rules.values()
    matching = [
        rule for rule in rules if rule.state == "ENABLED" and rule.event_pattern.matches_event(cast(Any, event))
    ]
    arns = [target["Arn"] for rule in matching for target in rule.targets if ":function:" in target["Arn"]]
    return [lambda_backends[account][region].get_function(arn) for arn in arns]


def deliver(event: dict[str, Any]) -> None:
    """Call the functions of an event, each in a thread of its own: the caller does not wait."""
    for function in targets(event):
        threading.Thread(target=function._invoke_lambda, args=(event,), daemon=True, name="event").start()
