"""A schedule of EventBridge Scheduler, which starts a job run or calls a function."""

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
START_JOB_RUN = "scheduler:::aws-sdk:emrserverless:startJobRun"


class Schedule(Construct):
    """A call of a target at a rate. A call that fails for `minutes` is left to the next execution."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        schedule: str,
        group: str,
        expression: str,
        target_arn: str,
        role_arn: str,
        request: str,
        minutes: int,
        after: Sequence[TerraformResource],
    ) -> None:
        """`request` is the JSON for the target. `after`: what a run needs and the request only names: documents, and roles."""
        super().__init__(scope, name)
        SchedulerSchedule(
            self,
            "schedule",
            name=schedule,
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
