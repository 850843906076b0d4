"""The desired state of the ingest job, and the request of maintenance that the scheduler sends to EMR Serverless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.release.manifest import Release, Role
from frazil.rollout.desired import Desired
from frazil.rollout.group_jobs import INGEST, job_name
from frazil.rollout.job_run_request import TAG_DESIRED, TAG_JOB, TAG_RELEASE, run_settings
from stacks.spec.deployments import Deployment
from stacks.stacks.environment_document import APPLICATION, ENVIRONMENT_DIGEST


def desired_state(
    deployment: Deployment, release: Release, *, group: str | None, document: str, log_bucket: str
) -> Desired:
    """Return the desired state of a group's ingest job, with placeholders for the values that Terraform fills in."""
    runs, names, job = deployment.jobs_of(group), deployment.names, job_name(INGEST, group)
    return Desired(
        job=job,
        generation=deployment.generation,
        label=deployment.label,
        application=APPLICATION,
        release=release.key,
        document=document,
        environment=f"documents/{ENVIRONMENT_DIGEST}.json",
        execution_role=names.role_arn(job),
        log_uri=f"s3://{log_bucket}/{job}/",
        log_group=names.log_group(job),
        mode=runs.mode,
        workers=runs.ingest,
        timeout_minutes=runs.ingest_minutes,
    )


def maintenance_request(
    desired: Desired, release: Release, bucket: str, *, job: str, role_arn: str, log_group: str
) -> dict[str, Any]:
    """Return the request of a maintenance run of the same release, documents and workers. It removes orphan files."""
    run = run_settings(desired, release, bucket=bucket)
    submit = run["jobDriver"]["sparkSubmit"]
    documents = submit["entryPointArguments"][:4]  # --document D --environment E
    monitoring = run["configurationOverrides"]["monitoringConfiguration"]
    logs = {**monitoring["cloudWatchLoggingConfiguration"], "logGroupName": log_group}
    return for_scheduler(
        {
            **run,
            "name": f"frazil-{job}",
            "executionRoleArn": role_arn,
            "jobDriver": {
                "sparkSubmit": {
                    **submit,
                    "entryPoint": f"s3://{bucket}/{release.the(Role.MAINTAIN).key}",
                    "entryPointArguments": [*documents, "--once", "--orphans"],
                }
            },
            "configurationOverrides": {
                "monitoringConfiguration": {**monitoring, "cloudWatchLoggingConfiguration": logs}
            },
            # Not the tags of the ingest job: the reconciler would cancel the run.
            "tags": {TAG_JOB: job, TAG_RELEASE: release.version, TAG_DESIRED: "scheduled"},
        }
    )


_KEYS_ARE_VALUES = {"tags", "logTypes"}


def for_scheduler(request: Mapping[str, Any]) -> dict[str, Any]:
    """Write the members of a request with a capital first letter, as EventBridge Scheduler's universal targets do.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-universal.html
    """
    return {_upper(key): value if key in _KEYS_ARE_VALUES else _renamed(value) for key, value in request.items()}


def _renamed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return for_scheduler(value)
    return [_renamed(part) for part in value] if isinstance(value, list) else value


def _upper(key: str) -> str:
    return key[:1].upper() + key[1:]
