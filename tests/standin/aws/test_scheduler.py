"""A schedule is executed on demand: once an execution, by the names of the service, and only if it would be."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from frazil.errors import EmrUnavailable, FrazilError
from frazil.rollout.desired import Mode
from frazil.rollout.job_run_request import run_settings
from stacks.stacks.landing_jobs import for_scheduler
from tests.standin.aws.instant_emr import pretended_aws
from tests.standin.aws.scheduler import run_schedule
from tests.support.rollout_world import desired, release

pytestmark = pytest.mark.e2e

REGION = "eu-central-1"
TARGET = "arn:aws:scheduler:::aws-sdk:emrserverless:startJobRun"


@pytest.fixture(scope="module")
def endpoint(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pretended_aws(root, tmp_path_factory.mktemp("fired"), minute_seconds=0.2) as found:
        yield found


@dataclass
class Ground:
    endpoint: str
    name: str

    def client(self, service: str) -> Any:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client(service, endpoint_url=self.endpoint, region_name=REGION, **keys)

    def application(self) -> str:
        made = self.client("emr-serverless").create_application(
            name="a", releaseLabel="emr-spark-8.1.0", type="SPARK", clientToken=uuid.uuid4().hex
        )
        return str(made["applicationId"])

    def schedule(self, request: Mapping[str, Any], *, target: str = TARGET, **more: Any) -> None:
        whole = json.dumps({**request, "ClientToken": "<aws.scheduler.execution-id>"})
        self.client("scheduler").create_schedule(
            Name=self.name,
            ScheduleExpression="rate(15 minutes)",
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={"Arn": target, "RoleArn": "arn:aws:iam::123456789012:role/scheduler", "Input": whole},
            **more,
        )

    def request(self, application: str) -> dict[str, Any]:
        wanted = desired(application=application, mode=Mode.DRAIN, log_group="/frazil/local")
        return for_scheduler(run_settings(wanted, release(), bucket="b"))


@pytest.fixture
def ground(endpoint: str, name: str) -> Ground:
    return Ground(endpoint, name)


def test_an_execution_is_one_run_and_its_id_the_runs_token(ground: Ground) -> None:
    application = ground.application()
    ground.schedule(ground.request(application))
    fired = run_schedule(ground.endpoint, ground.name, region=REGION, execution="e1")
    assert run_schedule(ground.endpoint, f"default/{ground.name}", region=REGION, execution="e1") == fired
    other = run_schedule(ground.endpoint, ground.name, region=REGION, execution="e2")
    assert (other.run == fired.run, fired.schedule) == (False, f"default/{ground.name}")
    run = ground.client("emr-serverless").get_job_run(applicationId=application, jobRunId=fired.run)["jobRun"]
    assert run["tags"]["frazil:job"] == "orders"
    assert run["jobDriver"]["sparkSubmit"]["entryPointArguments"][-3] == "--once"


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"State": "DISABLED"}, "the schedule is disabled"),
        ({"target": "arn:aws:sqs:eu-central-1:123456789012:q"}, "its target is arn:aws:sqs"),
    ],
)
def test_what_the_scheduler_would_not_start_is_not_started(ground: Ground, change: dict[str, Any], said: str) -> None:
    ground.schedule(ground.request("app"), **change)
    with pytest.raises(FrazilError, match=said):
        run_schedule(ground.endpoint, ground.name, region=REGION, execution="e")


def test_a_request_that_the_service_does_not_know_or_refuses_is_told(ground: Ground) -> None:
    ground.schedule({**ground.request("app"), "Grace": 5})
    with pytest.raises(FrazilError, match="the service does not know Grace"):
        run_schedule(ground.endpoint, ground.name, region=REGION, execution="e")
    ground.client("scheduler").delete_schedule(Name=ground.name)
    ground.schedule(ground.request("00fnothere"))
    with pytest.raises(EmrUnavailable, match="ResourceNotFoundException"):
        run_schedule(ground.endpoint, ground.name, region=REGION, execution="e")


def test_a_schedule_that_is_not_there_is_told_with_those_that_are(ground: Ground) -> None:
    ground.schedule(ground.request("app"))
    with pytest.raises(FrazilError, match=f"no such schedule.*default/{ground.name}"):
        run_schedule(ground.endpoint, "nightly", region=REGION, execution="e")
