"""What the alarms of pipelines watch: the metric of one pipeline, or a query over those of a group."""

from __future__ import annotations

import re
from dataclasses import dataclass

from policies.resources import Resource

TYPE = "aws_cloudwatch_metric_alarm"
_QUERY = re.compile(
    r"SELECT [A-Z]+\((?P<metric>\w+)\) FROM SCHEMA\([^)]*\)(?: WHERE \"group\" = '(?P<group>[^']*)')?(?P<by> GROUP BY )?"
)


@dataclass(frozen=True, slots=True)
class Watch:
    """What one alarm watches: a metric of a pipeline, or of all pipelines of a group; `group` is None for those without."""

    metric: str
    pipeline: str | None = None
    group: str | None = None

    def covers(self, pipeline: str, group: str | None) -> bool:
        """Return whether the alarm is about a pipeline of a group."""
        return self.pipeline == pipeline if self.pipeline is not None else self.group == group


def watch(alarm: Resource) -> Watch | None:
    """Return what an alarm watches; None if that is no metric of pipelines."""
    pipeline = (alarm.values.get("dimensions") or {}).get("pipeline")
    if pipeline:
        return Watch(alarm.text("metric_name"), pipeline=str(pipeline))
    for query in alarm.blocks("metric_query"):
        if found := _QUERY.match(str(query.get("expression") or "")):
            return Watch(found["metric"], group=found["group"])
    return None
