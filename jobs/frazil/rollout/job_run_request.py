"""The request of a job run: all settings of Spark and EMR Serverless, computed from release and desired state.

In a run, the package is on Python's path as a zip file; the environment is unpacked as `./environment`, which is on the
path too; the two documents are in the working folder under the last parts of their keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.release.manifest import Release, Role
from frazil.rollout.desired import Desired, Mode, Worker, Workers

TAG_JOB = "frazil:job"
TAG_GENERATION = "frazil:generation"
TAG_DESIRED = "frazil:desired"
TAG_RELEASE = "frazil:release"
"""Tags of a run: its job, and the generation, digest and release of the desired state that it was started from."""

ENVIRONMENT_FOLDER = "environment"
FAILED_ATTEMPTS_PER_HOUR = 5
UNPROVEN_ATTEMPTS_PER_HOUR = 1
"""Of a continuous run whose generation has not proven itself: the reconciler counts its failures and rolls back."""
DRAIN_ATTEMPTS = 2
LONGEST_PARAMETERS = 102_400
"""The longest `sparkSubmitParameters`, in characters
(https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_SparkSubmit.html)."""


def names_of_runs(job: str) -> str:
    """Return a regular expression of the names of a job's runs, which are not names of another job's."""
    return rf"frazil-{job}(-\d+)?"


def run_settings(desired: Desired, release: Release, *, bucket: str, is_proven: bool = True) -> dict[str, Any]:
    """Return the request of `StartJobRun` without its client token. `bucket` is the artifact bucket.

    `is_proven` says whether the generation has proven itself. Raises `InvalidDeclaration` if the release does not match the
    desired state.
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
        "retryPolicy": _retries(is_following=is_following, is_proven=is_proven),
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


def _retries(*, is_following: bool, is_proven: bool) -> dict[str, int]:
    if not is_following:
        return {"maxAttempts": DRAIN_ATTEMPTS}
    return {"maxFailedAttemptsPerHour": FAILED_ATTEMPTS_PER_HOUR if is_proven else UNPROVEN_ATTEMPTS_PER_HOUR}


def spark_settings(desired: Desired, release: Release, *, bucket: str) -> dict[str, str]:
    """Return the Spark settings that must be set before the session starts; the session adds its own (`lake/spark_session.py`)."""
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
        what = f"the release is for {release.label}, the application has {desired.label}"
        problems.append(Problem("label", what, "Build the release for this label, or use another application"))
    if desired.release != release.key:
        problems.append(Problem("release", f"the manifest belongs to {release.key}", "Read the manifest of this key"))
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
    """Return the settings as `--conf key=value`, sorted. EMR splits the text at white space, so no value may have any."""
    for key, value in settings.items():
        if not value or value != "".join(value.split()):
            raise InvalidDeclaration([Problem(key, "its value is empty or has white space", "Change the value")])
    text = " ".join(f"--conf {key}={value}" for key, value in sorted(settings.items()))
    if len(text) > LONGEST_PARAMETERS:
        raise InvalidDeclaration(
            [Problem("settings", f"they have {len(text)} characters", f"Use at most {LONGEST_PARAMETERS}")]
        )
    return text


def _at(bucket: str, key: str) -> str:
    return f"s3://{bucket}/{key}"
