"""Executions of EventBridge schedules on demand. moto stores schedules and never runs them.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from frazil.clients.aws_session import aws_session
from frazil.errors import InvalidInput, LocalPartFailed
from tests.standin.aws.endpoint import DUMMY

_EXECUTION_ID = "<aws.scheduler.execution-id>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRun:
    """An execution of a schedule, and the job run that it started, or the function that it called with its answer."""

    schedule: str
    execution: str
    application: str | None = None
    run: str | None = None
    function: str | None = None
    answer: Mapping[str, Any] | None = None


def run_schedule(endpoint: str, schedule: str, *, region: str, execution: str) -> ScheduledRun:
    """Run a schedule, `GROUP/NAME` or a name that one group has. A repeated execution starts no second run.

    Raises `InvalidInput` if the service would refuse its request, and `LocalPartFailed` if a function fails.
    """
    scheduler, emr = (_client(service, endpoint, region) for service in ("scheduler", "emr-serverless"))
    pages = scheduler.get_paginator("list_schedules").paginate()
    listed = [(one["GroupName"], one["Name"]) for page in pages for one in page["Schedules"]]
    [(group, name)] = [one for one in listed if schedule in (one[1], "/".join(one))]
    target = scheduler.get_schedule(GroupName=group, Name=name)["Target"]
    told = target["Input"].replace(_EXECUTION_ID, execution)
    if ":lambda:" in target["Arn"]:
        called = ScheduledRun(schedule=f"{group}/{name}", execution=execution, function=target["Arn"].split(":")[6])
        return replace(called, answer=_called(_client("lambda", endpoint, region), target["Arn"], told))
    shape = emr.meta.service_model.operation_model("StartJobRun").input_shape
    started = emr.start_job_run(**_lowered(shape, json.loads(told), f"schedule {group}/{name}"))
    return ScheduledRun(
        schedule=f"{group}/{name}", execution=execution, application=started["applicationId"], run=started["jobRunId"]
    )


def _called(client: Any, function: str, event: str) -> Mapping[str, Any]:
    """Call a function and return its answer."""
    answer = client.invoke(FunctionName=function, Payload=event.encode())
    said: Mapping[str, Any] = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        what = f"the function failed: {said.get('errorType')}: {said.get('errorMessage')}"
        raise LocalPartFailed(what[:500], where=function, do="Read its log in .frazil/aws/functions")
    return said


def _lowered(shape: Any, value: Any, where: str) -> Any:
    """Return a request with the member names of the service's model; the scheduler writes them with a capital first letter."""
    if shape.type_name == "structure":
        names = {name[:1].upper() + name[1:]: name for name in shape.members}
        unknown = sorted(set(value) - set(names))
        if unknown:
            raise InvalidInput(f"the service does not know {', '.join(unknown)} of the request", where=where)
        return {names[key]: _lowered(shape.members[names[key]], held, where) for key, held in value.items()}
    if shape.type_name == "list":
        return [_lowered(shape.member, held, where) for held in value]
    if shape.type_name == "map":
        return {key: _lowered(shape.value, held, where) for key, held in dict[str, Any](value).items()}
    return value


def _client(service: str, endpoint: str, region: str) -> Any:
    keys: Mapping[str, str] = {"aws_access_key_id": DUMMY, "aws_secret_access_key": DUMMY}
    return aws_session().client(service, endpoint_url=endpoint, region_name=region, **keys)
