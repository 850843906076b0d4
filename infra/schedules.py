"""The schedules of EventBridge Scheduler, which start a job run or call a function."""

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
        schedule_target(
            self,
            name=schedule,
            group=group,
            expression=f"rate({minutes} minutes)",
            target_arn=function_arn,
            role_arn=role_arn,
            request=json.dumps(dict(event)),
            minutes=minutes,
            after=after,
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


START_JOB_RUN = "scheduler:::aws-sdk:emrserverless:startJobRun"


class JobSchedule(Construct):
    """Starts one run each time, even when the scheduler tries twice: the token of the run is the execution's id.

    Two runs do not overlap: a run may last as long as the interval, then the service ends it, between two commits or
    within one that is then read again. Should they, the fence lets one of them commit.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        schedule: str,
        group: str,
        partition: str,
        expression: str,
        request: str,
        role_arn: str,
        longest_minutes: int,
        after: Sequence[TerraformResource],
    ) -> None:
        """`request` is the JSON that StartJobRun takes, but for its token and time limit, with members in upper case as the
        scheduler wants them. `longest_minutes` is the interval of `expression`, or less. `after`: what a run needs and
        the request only names: documents, and roles with their rights."""
        super().__init__(scope, name)
        complete = {**json.loads(request), "ClientToken": EXECUTION_ID, "ExecutionTimeoutMinutes": longest_minutes}
        schedule_target(
            self,
            name=schedule,
            group=group,
            expression=expression,
            target_arn=f"arn:{partition}:{START_JOB_RUN}",
            role_arn=role_arn,
            request=json.dumps(complete),
            minutes=longest_minutes,
            after=after,
        )
