"""A schedule of EventBridge Scheduler, which calls a target at each interval."""

from __future__ import annotations

from collections.abc import Sequence

from infra.tf import (
    Construct,
    SchedulerSchedule,
    SchedulerScheduleFlexibleTimeWindow,
    SchedulerScheduleTarget,
    SchedulerScheduleTargetRetryPolicy,
    TerraformResource,
)

EXECUTION_ID = "<aws.scheduler.execution-id>"
"""The scheduler fills in the id of the execution, which stays the same if it tries again."""


def schedule_target(
    scope: Construct,
    *,
    name: str,
    group: str,
    expression: str,
    target_arn: str,
    role_arn: str,
    request: str,
    minutes: int,
    after: Sequence[TerraformResource],
) -> None:
    """Declare a schedule. `request` is the JSON for the target. A call that fails for `minutes` is left to the next execution."""
    SchedulerSchedule(
        scope,
        "schedule",
        name=name,
        group_name=group,
        schedule_expression=expression,
        schedule_expression_timezone="UTC",
        state="ENABLED",
        depends_on=list(after),
        flexible_time_window=SchedulerScheduleFlexibleTimeWindow(mode="OFF"),
        target=SchedulerScheduleTarget(
            arn=target_arn,
            role_arn=role_arn,
            input=request,
            retry_policy=SchedulerScheduleTargetRetryPolicy(
                maximum_event_age_in_seconds=max(60, min(minutes * 60, 86_400)), maximum_retry_attempts=3
            ),
        ),
    )
