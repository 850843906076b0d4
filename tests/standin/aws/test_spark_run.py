"""A job run really runs: its own process, from what was uploaded and nothing else, ended as the service ends it."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import time
import uuid
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest

from frazil.clients.emr import emr_client
from frazil.local.process import noted
from frazil.local.services import LocalServices
from tests.standin.aws.launch import BUCKET, PART, REGION, endpoint_of

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

ROLE = "arn:aws:iam::123456789012:role/job"
TOLD = """
import json, os, sys
import packed, unpacked
print("TOLD", json.dumps({
    "arguments": sys.argv[1:], "environment": dict(os.environ), "path": sys.path, "files": sorted(os.listdir(".")),
    "packed": packed.__file__, "unpacked": unpacked.__file__, "modules": [n for n in sys.modules if n == "frazil"],
}))
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("COUNTED", spark.range(10).count(), spark.conf.get("spark.given"), spark.sparkContext.master)
spark.stop()
"""
HEEDS = """
import signal, sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("up", flush=True)
time.sleep(600)
"""


def packed() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("packed.py", "")
    return made.getvalue()


def archived() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("unpacked.py"))
    return made.getvalue()


@dataclass
class Cloud:
    s3: Any
    emr: Any
    application: str
    folder: str
    home: Path
    """Of the processes of runs."""

    def put(self, name: str, data: str | bytes) -> str:
        self.s3.put_object(Bucket=BUCKET, Key=f"{self.folder}/{name}", Body=data)
        return f"s3://{BUCKET}/{self.folder}/{name}"

    def start(self, code: str, settings: Mapping[str, str] | None = None, **more: Any) -> str:
        confs = " ".join(
            f"--conf {key}={value}" for key, value in {"spark.ui.enabled": "false", **(settings or {})}.items()
        )
        submit = {
            "entryPoint": self.put("job.py", code),
            "entryPointArguments": ["--name", "two words"],
            "sparkSubmitParameters": confs,
        }
        logs = {"s3MonitoringConfiguration": {"logUri": f"s3://{BUCKET}/{self.folder}/logs/"}}
        asked = {
            "executionRoleArn": ROLE,
            "jobDriver": {"sparkSubmit": submit},
            "configurationOverrides": {"monitoringConfiguration": logs},
            **more,
        }
        return str(
            self.emr.start_job_run(applicationId=self.application, clientToken=uuid.uuid4().hex, **asked)["jobRunId"]
        )

    def run(self, run: str) -> dict[str, Any]:
        told: dict[str, Any] = self.emr.get_job_run(applicationId=self.application, jobRunId=run)["jobRun"]
        return told

    def until(self, is_so: Callable[[], bool], seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, "it does not come"
            time.sleep(0.1)

    def ended(self, run: str) -> dict[str, Any]:
        self.until(lambda: self.run(run)["state"] in ("SUCCESS", "FAILED", "CANCELLED"))
        return self.run(run)

    def log(self, run: str, name: str = "stdout", attempt: str = "") -> str:
        key = f"{self.folder}/logs/applications/{self.application}/jobs/{run}/{attempt}SPARK_DRIVER/{name}.gz"
        return gzip.decompress(self.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()).decode()

    def has_said(self, run: str, word: str) -> bool:
        try:
            return word in self.log(run)
        except self.s3.exceptions.NoSuchKey:
            return False


@pytest.fixture
def cloud(whole_world: LocalServices) -> Cloud:
    endpoint = endpoint_of(whole_world.home)
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    s3 = boto3.client("s3", endpoint_url=endpoint, region_name=REGION, **keys)
    emr = emr_client(region=REGION, endpoint=endpoint, keys=("test", "test"))
    made = emr.create_application(name="a", releaseLabel="emr-spark-8.1.0", type="SPARK", clientToken=uuid.uuid4().hex)
    return Cloud(s3, emr, made["applicationId"], uuid.uuid4().hex, whole_world.home / PART)


@pytest.mark.long
def test_it_has_what_was_uploaded_and_nothing_else(cloud: Cloud, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {
        "spark.submit.pyFiles": cloud.put("packed.zip", packed()),
        "spark.archives": cloud.put("unpacked.tar.gz", archived()) + "#environment",
        "spark.files": cloud.put("document.json", "{}"),
        "spark.pyspark.python": "python3.11",
        "spark.emr-serverless.driverEnv.PYTHONPATH": "./environment",
        "spark.executorEnv.PYTHONPATH": "./environment",
        "spark.emr-serverless.driver.disk": "20G",
        "spark.given": "value",
    }
    run = cloud.start(TOLD, settings)
    ended = cloud.ended(run)
    assert ended["state"] == "SUCCESS", cloud.log(run) + cloud.log(run, "stderr")
    out = cloud.log(run)
    (line,) = (line for line in out.splitlines() if line.startswith("TOLD "))
    told = json.loads(line.removeprefix("TOLD "))
    assert "COUNTED 10 value local[*]" in out
    assert told["arguments"] == ["--name", "two words"]
    assert told["modules"] == []
    assert {"job.py", "packed.zip", "document.json", "environment"} <= set(told["files"])
    assert told["unpacked"].endswith("/environment/unpacked.py")
    assert "packed.zip" in told["packed"]
    assert not [entry for entry in told["path"] if Path(entry).is_relative_to(root / "jobs")]
    mine = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "PYTHONPATH"}
    assert mine <= set(told["environment"])
    assert told["environment"]["AWS_ACCESS_KEY_ID"].startswith("ASIA"), "the role's key, of STS"
    inherited = {name for name, value in os.environ.items() if told["environment"].get(name) == value}
    assert inherited <= {"LANG", "LC_CTYPE", "PWD", "SHLVL", "_", "JAVA_HOME"}


@pytest.mark.long
def test_a_failure_is_tried_again_and_each_attempt_is_told(cloud: Cloud) -> None:
    run = cloud.start("import sys; print('tried'); sys.exit(3)", retryPolicy={"maxAttempts": 2})
    ended = cloud.ended(run)
    assert (ended["state"], ended["attempt"]) == ("FAILED", 2)
    assert "exit code" in ended["stateDetails"]
    assert "tried" in cloud.log(run)
    assert "tried" in cloud.log(run, attempt="attempts/2/")


@pytest.mark.long
def test_a_cancelled_run_is_asked_to_end_and_leaves_no_process(cloud: Cloud) -> None:
    run = cloud.start(HEEDS, mode="STREAMING")
    cloud.until(lambda: cloud.has_said(run, "up"))
    (process,) = (one for one in noted(cloud.home) if one.name.startswith(run))
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    assert any("python" in one.name() for one in family)
    cloud.emr.cancel_job_run(applicationId=cloud.application, jobRunId=run, shutdownGracePeriodInSeconds=600)
    assert cloud.ended(run)["state"] == "CANCELLED", "long before its grace is over"
    _, alive = psutil.wait_procs(family, timeout=5)
    assert not alive
    assert not [one for one in noted(cloud.home) if one.name.startswith(run)]
    assert not list((cloud.home / "runs").glob(f"{run}*"))
