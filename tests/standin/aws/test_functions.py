"""The local cloud runs the packaged reconciler: by schedules, by events of job runs, with its role's credentials."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from frazil.clients.object_store import ObjectStore
from frazil.errors import LocalPartFailed
from frazil.release.emr_labels import NEWEST
from frazil.release.manifest import manifest
from frazil.rollout.desired import Desired, Mode, desired_document, desired_key
from frazil.rollout.function_settings import EXECUTION, HANDLER, Settings
from frazil.rollout.run_proof import Reached, RunName
from frazil.rollout.state import stored_state
from tests.standin.aws.instant_emr import pretended_aws
from tests.standin.aws.scheduler import run_schedule
from tests.support.fake_time import until
from tests.support.reconciler_program import program
from tests.support.rollout_world import DOCUMENT, ENVIRONMENT, JOB, WRITTEN, desired, release, replaced

pytestmark = pytest.mark.e2e

REGION = "eu-central-1"
ROLE = "frazil-local-reconcile-orders"


@dataclass
class Cloud:
    endpoint: str
    home: Path
    code: bytes
    bucket: str
    application: str = ""

    def client(self, service: str) -> Any:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client(service, endpoint_url=self.endpoint, region_name=REGION, **keys)

    @property
    def store(self) -> ObjectStore:
        return ObjectStore(self.client("s3"), self.bucket)

    def deploy(self) -> None:
        """Make what the stacks make, by the same settings."""
        s3, functions = self.client("s3"), self.client("lambda")
        s3.create_bucket(Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        for key, data in ((DOCUMENT, WRITTEN), (ENVIRONMENT, b"{}"), ("artifacts/1/reconciler.zip", self.code)):
            s3.put_object(Bucket=self.bucket, Key=key, Body=data)
        for version in ("1.0.0", "2.0.0"):
            s3.put_object(Bucket=self.bucket, Key=release(version).key, Body=manifest(release(version)))
        self.application = self.client("emr-serverless").create_application(
            name="a", releaseLabel=NEWEST, type="SPARK", clientToken=uuid.uuid4().hex
        )["applicationId"]
        role = self.client("iam").create_role(RoleName=f"{ROLE}-{self.bucket}", AssumeRolePolicyDocument="{}")["Role"]
        settings = Settings(job=JOB, bucket=self.bucket, metrics_namespace="Frazil/local")
        function = functions.create_function(
            FunctionName=self.bucket,
            Role=role["Arn"],
            Runtime="python3.11",
            Handler=HANDLER,
            Code={"S3Bucket": self.bucket, "S3Key": "artifacts/1/reconciler.zip"},
            Timeout=60,
            LoggingConfig={"LogFormat": "Text", "LogGroup": "/frazil/local/reconcile-orders"},
            Environment={"Variables": settings.variables()},
        )
        pattern = {
            "source": ["aws.emr-serverless"],
            "detail-type": ["EMR Serverless Job Run State Change"],
            "detail": {"applicationId": [self.application], "state": ["RUNNING", "SUCCESS", "FAILED", "CANCELLED"]},
        }
        events = self.client("events")
        events.put_rule(Name=self.bucket, EventPattern=json.dumps(pattern))
        events.put_targets(Rule=self.bucket, Targets=[{"Id": "1", "Arn": function["FunctionArn"]}])
        for name, event in (("tick", {}), ("drain", {EXECUTION: "<aws.scheduler.execution-id>"})):
            self.client("scheduler").create_schedule(
                Name=f"{self.bucket}-{name}",
                ScheduleExpression="rate(5 minutes)",
                FlexibleTimeWindow={"Mode": "OFF"},
                Target={"Arn": function["FunctionArn"], "RoleArn": role["Arn"], "Input": json.dumps(event)},
            )

    def want(self, wanted: Desired) -> Desired:
        self.client("s3").put_object(Bucket=self.bucket, Key=desired_key(JOB), Body=desired_document(wanted))
        return wanted

    def call(self, schedule: str = "tick", execution: str = "e1") -> list[str]:
        """Run a schedule, and return the steps that the function took."""
        called = run_schedule(self.endpoint, f"{self.bucket}-{schedule}", region=REGION, execution=execution)
        assert called.function == self.bucket
        assert called.answer is not None
        return [step["step"] for step in called.answer.get("steps", ())]

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs, the oldest first."""
        emr = self.client("emr-serverless")
        listed = emr.list_job_runs(applicationId=self.application)["jobRuns"]
        return [emr.get_job_run(applicationId=self.application, jobRunId=one["id"])["jobRun"] for one in listed[::-1]]

    def prove(self, wanted: Desired, reached: Reached) -> None:
        """Write what a driver writes."""
        name = RunName.of(f"{wanted.run_prefix}0f")
        assert name is not None
        proof = name.proof({"orders": reached, "users": reached}, at_ms=1)
        self.store.put(name.proof_key, proof.document())

    def proven(self) -> int | None:
        state = stored_state(self.store, JOB)
        return state.proven.generation if state.proven else None


@pytest.fixture(scope="module")
def endpoint(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    home = tmp_path_factory.mktemp("functions")
    with pretended_aws(root, home, minute_seconds=0.2) as found:
        yield found, home / "emr"


@pytest.fixture(scope="module")
def code(root: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return program(root, tmp_path_factory.mktemp("program") / "reconciler.zip")


@pytest.fixture
def cloud(endpoint: tuple[str, Path], code: bytes, name: str) -> Cloud:
    made = Cloud(*endpoint, code, f"b-{name.replace('_', '-')}"[:40])
    made.deploy()
    return made


@pytest.mark.long
def test_a_drain_is_proven_by_events_alone_and_each_execution_starts_one_more(cloud: Cloud) -> None:
    wanted = cloud.want(desired(application=cloud.application, mode=Mode.DRAIN))
    cloud.prove(wanted, Reached.CAUGHT_UP)
    assert cloud.call() == ["start"]
    until(lambda: cloud.proven() == 1, seconds=60)  # the event of its end
    assert cloud.call() == []
    assert cloud.call("drain", "e1") == ["start"]
    until(lambda: cloud.runs()[-1]["state"] == "SUCCESS", seconds=60)
    cloud.call("drain", "e1")
    assert len(cloud.runs()) == 2, "the same execution starts one run"
    assert cloud.call("drain", "e2") == ["start"]
    assert len(cloud.runs()) == 3


@pytest.mark.long
def test_a_streaming_run_that_is_cancelled_by_hand_is_started_again_by_its_event(cloud: Cloud) -> None:
    wanted = cloud.want(desired(application=cloud.application))
    cloud.prove(wanted, Reached.COMMITTED)
    assert cloud.call() == ["start"]
    until(lambda: cloud.proven() == 1, seconds=60)
    cloud.client("emr-serverless").cancel_job_run(
        applicationId=cloud.application, jobRunId=cloud.runs()[0]["jobRunId"], shutdownGracePeriodInSeconds=15
    )
    until(lambda: [run["state"] for run in cloud.runs()] == ["CANCELLED", "RUNNING"], seconds=60)
    cloud.want(replaced(wanted, is_stopped=True))
    cloud.call()  # or the pass of the last event has done it
    until(lambda: {run["state"] for run in cloud.runs()} == {"CANCELLED"}, seconds=60)


@pytest.mark.long
def test_an_error_of_the_function_is_an_error_of_the_call_and_in_its_log(cloud: Cloud) -> None:
    with pytest.raises(LocalPartFailed, match="the desired state does not exist"):
        cloud.call()
    log = (cloud.home / "functions" / f"{cloud.bucket}.log").read_text()
    assert "InvalidInput" in log


def test_a_function_runs_as_its_role_and_with_nothing_of_this_process(cloud: Cloud, tmp_path: Path) -> None:
    from frazil.release.archives import write_zip

    source = b"import os, sys\ndef handle(event, context):\n    return {'key': os.environ['AWS_ACCESS_KEY_ID'], 'path': sys.path, 'home': os.environ.get('HOME')}\n"
    write_zip(tmp_path / "f.zip", {"f.py": source})
    functions = cloud.client("lambda")
    functions.update_function_code(FunctionName=cloud.bucket, ZipFile=(tmp_path / "f.zip").read_bytes())
    functions.update_function_configuration(FunctionName=cloud.bucket, Handler="f.handle")
    told = functions.get_function_configuration(FunctionName=cloud.bucket)
    assert (told["Handler"], told["LoggingConfig"]["LogGroup"]) == ("f.handle", "/frazil/local/reconcile-orders")
    answer = json.loads(functions.invoke(FunctionName=cloud.bucket, Payload=b"{}")["Payload"].read())
    assert answer["key"].startswith("ASIA")
    assert answer["home"] is None
    assert not [place for place in answer["path"] if "site-packages" in place]
