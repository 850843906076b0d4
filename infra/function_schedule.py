"""A function called by the clock, by EventBridge Scheduler itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

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


class FunctionSchedule(Construct):
    """Calls a function every `minutes` with the same event."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        schedule: str,
        group: str,
        minutes: int,
        event: Mapping[str, str],
        function_arn: str,
        role_arn: str,
        after: Sequence[TerraformResource],
    ) -> None:
        super().__init__(scope, name)
        SchedulerSchedule(
            self,
            "schedule",
            name=schedule,
            group_name=group,
            schedule_expression=f"rate({minutes} minutes)",
            schedule_expression_timezone="UTC",
            state="ENABLED",
            depends_on=list(after),
            flexible_time_window=SchedulerScheduleFlexibleTimeWindow(mode="OFF"),
            target=SchedulerScheduleTarget(
                arn=function_arn,
                role_arn=role_arn,
                input=json.dumps(dict(event)),
                # What is not called within its interval, the next call does.
                retry_policy=SchedulerScheduleTargetRetryPolicy(
                    maximum_event_age_in_seconds=minutes * 60, maximum_retry_attempts=3
                ),
            ),
        )
