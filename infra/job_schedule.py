"""A job run started by the clock, by EventBridge Scheduler itself."""

from __future__ import annotations

import json
from collections.abc import Sequence

from infra.scheduled_target import EXECUTION_ID, schedule_target
from infra.tf import Construct, TerraformResource

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
