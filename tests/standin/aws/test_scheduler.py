"""A schedule of runs is executed on demand: once an execution, by the names of the service."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from frazil.release.emr_labels import NEWEST
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


def client(endpoint: str, service: str) -> Any:
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return boto3.client(service, endpoint_url=endpoint, region_name=REGION, **keys)


def test_an_execution_is_one_run_and_its_id_the_runs_token(endpoint: str, name: str) -> None:
    emr = client(endpoint, "emr-serverless")
    made = emr.create_application(name="a", releaseLabel=NEWEST, type="SPARK", clientToken=uuid.uuid4().hex)
    wanted = desired(application=made["applicationId"], mode=Mode.DRAIN, log_group="/frazil/local")
    request = for_scheduler(run_settings(wanted, release(), bucket="b"))
    whole = json.dumps({**request, "ClientToken": "<aws.scheduler.execution-id>"})
    client(endpoint, "scheduler").create_schedule(
        Name=name,
        ScheduleExpression="rate(15 minutes)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target={"Arn": TARGET, "RoleArn": "arn:aws:iam::123456789012:role/scheduler", "Input": whole},
    )
    fired = run_schedule(endpoint, name, region=REGION, execution="e1")
    assert run_schedule(endpoint, f"default/{name}", region=REGION, execution="e1") == fired
    other = run_schedule(endpoint, name, region=REGION, execution="e2")
    assert (other.run == fired.run, fired.schedule) == (False, f"default/{name}")
    run = emr.get_job_run(applicationId=wanted.application, jobRunId=fired.run)["jobRun"]
    assert run["tags"]["frazil:job"] == "orders"
    assert run["jobDriver"]["sparkSubmit"]["entryPointArguments"][-3] == "--once"
