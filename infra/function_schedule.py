"""A function called by the clock, by EventBridge Scheduler itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from infra.scheduled_target import schedule_target
from infra.tf import Construct, TerraformResource


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
