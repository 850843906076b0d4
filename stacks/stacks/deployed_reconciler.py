"""The deployed reconciler of a job: its function, role, schedules and alarms. One for each job."""

from __future__ import annotations

import json
from collections.abc import Sequence

from frazil.release.manifest import Release, Role
from frazil.rollout.desired import Mode
from frazil.rollout.function_settings import EXECUTION, Settings
from infra.iam_role import ExecutionRole
from infra.job_reconciler import ReconcilerAlarms, ReconcilerFunction
from infra.schedules import EXECUTION_ID, Schedule
from infra.tf import Construct, TerraformResource
from policies.documents import fill, placeholders
from policies.documents.filling import Value
from stacks.spec.deployments import AlarmsOf, Deployment, Jobs
from stacks.stacks.foundation import FoundationOutputs, offered_days
from stacks.stacks.operator_roles import reconciler_values

EVERY_MINUTES = 5
"""The interval of passes without an event: they see what waited too long, and a new desired state."""


def function_name(deployment: Deployment, job: str) -> str:
    """Return the name of a job's function, known before it is made."""
    return deployment.names.role(f"reconcile-{job}")


def deploy_reconciler(
    stack: Construct,
    *,
    job: str,
    deployment: Deployment,
    foundation: FoundationOutputs,
    release: Release,
    runs: Jobs,
    scheduler_arn: str,
    after: Sequence[TerraformResource],
) -> None:
    """Declare the reconciler of a job in a stack. `after`: what its first pass needs, desired state and roles.

    The schedule of drains calls it too, so no schedule names a release: after a rollback, the next call starts the
    generation before.
    """
    names, function = deployment.names, function_name(deployment, job)
    # Otherwise each pipeline's alarm `late` is raised by silence.
    is_counting = deployment.monitoring.alarms is AlarmsOf.GROUP
    log_group = names.log_group(f"reconcile-{job}")
    rights: dict[str, Value] = {
        **reconciler_values(deployment, foundation, jobs=[job]),
        "log_prefix": [],
        "function_log_groups": [log_group],
    }
    role = ExecutionRole(
        stack,
        f"{job}-reconciler-role",
        names=names,
        role=function,
        trust=fill("function_trust", {"account": deployment.account}, partition=names.partition),
        policy=fill("reconciler", {key: rights[key] for key in placeholders("reconciler")}, partition=names.partition),
        description=f"The reconciler of the {job} job.",
    )
    # As long as rows may be late, and two reports more.
    silent_minutes = runs.freshness_minutes + 2 * (runs.ingest_minutes if runs.mode is Mode.DRAIN else EVERY_MINUTES)
    made = ReconcilerFunction(
        stack,
        f"{job}-reconciler",
        function=function,
        bucket=foundation.artifact_bucket,
        program=release.the(Role.RECONCILER).key,
        architecture=deployment.emr.architecture,
        role_arn=role.arn,
        variables=Settings(
            job=job,
            bucket=foundation.artifact_bucket,
            metrics_namespace=names.metrics_namespace,
            trusted_keys=tuple(deployment.access.trusted_keys),
            silent_seconds=silent_minutes * 60 if is_counting else None,
        ).variables(),
        application_ids=foundation.application_ids,
        log_group=log_group,
        log_days=offered_days(deployment.monitoring.log_days),
        key_arn=foundation.key_arn,
        after=[*role.ready, *after],
    )
    calls = {"reconcile": (EVERY_MINUTES, {"job": job})}
    if runs.mode is Mode.DRAIN:
        calls[job] = (runs.ingest_minutes, {"job": job, EXECUTION: EXECUTION_ID})
    for what, (minutes, event) in calls.items():
        Schedule(
            stack,
            f"{what}-schedule" if what == job else f"{job}-{what}-schedule",
            schedule=f"{names.prefix}-{job}" if what == job else function,  # the group `a-reconcile` next to `a`
            group=names.schedule_group,
            expression=f"rate({minutes} minutes)",
            request=json.dumps(event),
            minutes=minutes,
            target_arn=made.arn,
            role_arn=scheduler_arn,
            after=after,
        )
    ReconcilerAlarms(
        stack,
        f"{job}-reconciler-alarms",
        function=function,
        job=job,
        namespace=names.metrics_namespace,
        prefix=names.prefix,
        topic_arn=foundation.alarm_topic_arn,
        is_counting=is_counting,
    )
