"""A job run started by the clock, by EventBridge Scheduler itself."""

from __future__ import annotations

import json
from collections.abc import Sequence

from infra.tf import (
    Construct,
    SchedulerSchedule,
    SchedulerScheduleFlexibleTimeWindow,
    SchedulerScheduleTarget,
    SchedulerScheduleTargetRetryPolicy,
    TerraformResource,
)

START_JOB_RUN = "arn:aws:scheduler:::aws-sdk:emrserverless:startJobRun"
CLIENT_TOKEN = "<aws.scheduler.execution-id>"  # noqa: S105 # the scheduler fills it in, once an execution


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
        expression: str,
        request: str,
        role_arn: str,
        longest_minutes: int,
        is_on: bool,
        after: Sequence[TerraformResource],
    ) -> None:
        """`request` is the JSON that StartJobRun takes, but for its token and time limit, with members in upper case as the
        scheduler wants them. `longest_minutes` is the interval of `expression`, or less. `after`: what a run needs and
        the request only names: documents, and roles with their rights."""
        super().__init__(scope, name)
        complete = {**json.loads(request), "ClientToken": CLIENT_TOKEN, "ExecutionTimeoutMinutes": longest_minutes}
        SchedulerSchedule(
            self,
            "schedule",
            name=schedule,
            group_name=group,
            schedule_expression=expression,
            schedule_expression_timezone="UTC",
            state="ENABLED" if is_on else "DISABLED",
            depends_on=list(after),
            flexible_time_window=SchedulerScheduleFlexibleTimeWindow(mode="OFF"),
            target=SchedulerScheduleTarget(
                arn=START_JOB_RUN,
                role_arn=role_arn,
                input=json.dumps(complete),
                # An execution that is not started within its interval is the next one's to do.
                retry_policy=SchedulerScheduleTargetRetryPolicy(
                    maximum_event_age_in_seconds=max(60, min(longest_minutes * 60, 86_400)), maximum_retry_attempts=3
                ),
            ),
        )
