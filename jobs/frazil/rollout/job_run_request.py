"""The settings of a job run: all that Spark and EMR Serverless are told, in one place, from release and desired state.

Paths of a run: the package is on Python's path as a zip; the environment is unpacked as `./environment`, which is on the
path too; the two documents are in the working folder under the names of their keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.declaration.problems import InvalidDeclaration, Problem
from frazil.release.manifest import Release, Role
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.worker_sizes import Worker, Workers

TAG_JOB = "frazil:job"
TAG_GENERATION = "frazil:generation"
TAG_DESIRED = "frazil:desired"
TAG_RELEASE = "frazil:release"
"""Tags of a run: whose it is, and by which desired state it was started (its digest)."""

ENVIRONMENT_FOLDER = "environment"
FAILED_ATTEMPTS_PER_HOUR = 5
DRAIN_ATTEMPTS = 2
LONGEST_PARAMETERS = 102_400
"""Of `sparkSubmitParameters`
(https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_SparkSubmit.html)."""


def run_settings(desired: Desired, release: Release, *, bucket: str) -> dict[str, Any]:
    """The request of `StartJobRun`, but for its client token. `bucket` keeps the artifacts.

    Raises `InvalidDeclaration` if release and desired state do not fit each other.
    """
    problems = list(_misfits(desired, release))
    if problems:
        raise InvalidDeclaration(problems)
    is_following = desired.mode is Mode.FOLLOW
    return {
        "applicationId": desired.application,
        "executionRoleArn": desired.execution_role,
        "name": f"frazil-{desired.job}-{desired.generation}",
        "mode": "STREAMING" if is_following else "BATCH",
        "executionTimeoutMinutes": 0 if is_following else desired.timeout_minutes,
        "retryPolicy": (
            {"maxFailedAttemptsPerHour": FAILED_ATTEMPTS_PER_HOUR} if is_following else {"maxAttempts": DRAIN_ATTEMPTS}
        ),
        "jobDriver": {
            "sparkSubmit": {
                "entryPoint": _at(bucket, release.the(Role.INGEST).key),
                "entryPointArguments": _arguments(desired),
                "sparkSubmitParameters": _submit(spark_settings(desired, release, bucket=bucket)),
            }
        },
        "configurationOverrides": {"monitoringConfiguration": _monitoring(desired)},
        "tags": {
            TAG_JOB: desired.job,
            TAG_GENERATION: str(desired.generation),
            TAG_DESIRED: desired.digest,
            TAG_RELEASE: release.version,
        },
    }


def spark_settings(desired: Desired, release: Release, *, bucket: str) -> dict[str, str]:
    """Spark's settings that must stand before the session begins; the session adds its own (`lake/session.py`)."""
    unpacked = f"./{ENVIRONMENT_FOLDER}"
    python = f"python{release.runtime.python}"
    return {
        "spark.submit.pyFiles": _at(bucket, release.the(Role.PACKAGE).key),
        "spark.archives": f"{_at(bucket, release.the(Role.ENVIRONMENT).key)}#{ENVIRONMENT_FOLDER}",
        "spark.files": ",".join(_at(bucket, key) for key in (desired.document, desired.environment)),
        "spark.jars": ",".join(_at(bucket, jar.key) for jar in release.jars),
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": python,
        "spark.emr-serverless.driverEnv.PYTHONPATH": unpacked,
        "spark.executorEnv.PYTHONPATH": unpacked,
        **_sizes(desired.workers),
    }


def _misfits(desired: Desired, release: Release) -> list[Problem]:
    problems = []
    if desired.label != release.label:
        what = f"the release is for {release.label}, the application is {desired.label}"
        problems.append(Problem("label", what, "Build the release for it, or name the other application"))
    if desired.release != release.key:
        problems.append(Problem("release", f"the manifest is {release.key}'s", "Read the manifest that is named"))
    return problems


def _arguments(desired: Desired) -> list[str]:
    return [
        "--document",
        desired.document.rpartition("/")[2],
        "--environment",
        desired.environment.rpartition("/")[2],
        "--follow" if desired.mode is Mode.FOLLOW else "--once",
        "--run",
        desired.run_prefix,
        *(part for name in desired.stopped for part in ("--without", name)),
        *desired.arguments,
    ]


def _sizes(workers: Workers) -> dict[str, str]:
    return {
        **_size("driver", workers.driver),
        **_size("executor", workers.executor),
        "spark.executor.instances": str(workers.least),
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.initialExecutors": str(workers.least),
        "spark.dynamicAllocation.minExecutors": str(workers.least),
        "spark.dynamicAllocation.maxExecutors": str(workers.most),
    }


def _size(who: str, worker: Worker) -> dict[str, str]:
    return {
        f"spark.{who}.cores": str(worker.cores),
        f"spark.{who}.memory": f"{worker.heap_mb}m",
        f"spark.{who}.memoryOverhead": f"{worker.overhead_mb}m",
        f"spark.emr-serverless.{who}.disk": f"{worker.disk_gb}G",
    }


def _monitoring(desired: Desired) -> dict[str, Any]:
    logs: dict[str, Any] = {"s3MonitoringConfiguration": {"logUri": desired.log_uri}}
    if desired.log_group:
        logs["cloudWatchLoggingConfiguration"] = {
            "enabled": True,
            "logGroupName": desired.log_group,
            "logStreamNamePrefix": desired.job,
            "logTypes": {"SPARK_DRIVER": ["stdout", "stderr"]},
        }
    return logs


def _submit(settings: Mapping[str, str]) -> str:
    """As `--conf key=value`, sorted. EMR splits the text at white space, so no value may have any."""
    for key, value in settings.items():
        if not value or value != "".join(value.split()):
            raise InvalidDeclaration(
                [Problem(key, "its value has white space, or none at all", "Change what it is made of")]
            )
    text = " ".join(f"--conf {key}={value}" for key, value in sorted(settings.items()))
    if len(text) > LONGEST_PARAMETERS:
        raise InvalidDeclaration(
            [Problem("settings", f"they have {len(text)} characters", f"{LONGEST_PARAMETERS} are allowed")]
        )
    return text


def _at(bucket: str, key: str) -> str:
    return f"s3://{bucket}/{key}"
