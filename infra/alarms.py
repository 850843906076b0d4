"""Alarms on what an operator must know, from the metrics that jobs write (`docs/running.md`) and from the scheduler."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from infra.tf import (
    CloudwatchMetricAlarm,
    CloudwatchMetricAlarmMetricQuery,
    Construct,
    SnsTopic,
    SnsTopicSubscription,
)

OUTAGE_PERIODS = 3
"""The number of periods in a row for which a service must be unavailable, or unread records near their deletion: 15 minutes
for a run that follows its topics."""
RETENTION_USED = 0.5
"""The unread part of what Kafka has of a partition above which an operator must know."""
PIPELINE_ALARMS, GROUP_ALARMS = 8, 9
"""The number of alarms of a pipeline, and of a group."""
LATEST_MINUTES = 180
SEEN = (
    "alarms of a group see the latest three hours "
    "(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-limits.html)"
)


def alarm_topic(scope: Construct, *, topic: str, key_arn: str, emails: Sequence[str]) -> str:
    """Declare the topic of alarms and its subscribers. Return its ARN, known when it exists."""
    alarms = Construct(scope, "alarms")
    made = SnsTopic(alarms, "topic", name=topic, kms_master_key_id=key_arn)
    for email in dict.fromkeys(emails):
        named = hashlib.sha256(email.encode()).hexdigest()[:16]
        SnsTopicSubscription(alarms, f"email-{named}", topic_arn=made.arn, protocol="email", endpoint=email)
    return made.arn


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Whose metrics alarms are on. `freshness_seconds`: how late rows may be. `every_minutes`: how often a run reports."""

    prefix: str
    namespace: str
    topic_arn: str
    group: str | None
    freshness_seconds: int
    every_minutes: int

    @property
    def period(self) -> int:
        """The seconds of a period, in which a run reports at least once."""
        return max(60, self.every_minutes * 60)


@dataclass(frozen=True, slots=True)
class _Rule:
    """An alarm: it is raised by a statistic of a metric that is above `most` for so many periods."""

    what: str
    metric: str
    statistic: str
    most: int | float
    period: int
    periods: int = 1


def _rules(watched: Watched) -> tuple[_Rule, ...]:
    period, longer = watched.period, max(watched.period, 300)
    events = ("decision-required", "pipeline-failed", "schema-incompatible", "rejected", "many-files")
    return (
        _Rule("late", "freshness_seconds", "Maximum", watched.freshness_seconds, period, 2),
        *(_Rule(what, what.replace("-", "_"), "Sum", 0, period) for what in events),
        # A short outage passes by itself, and a run that follows its topic reports it at least each minute.
        _Rule("service-unavailable", "service_unavailable", "Sum", 0, longer, OUTAGE_PERIODS),
        # A backlog, as of a first load or an outage, shrinks by itself.
        _Rule("retention", "retention_used", "Maximum", RETENTION_USED, longer, OUTAGE_PERIODS),
    )


class PipelineAlarms(Construct):
    """The alarms of one pipeline: it is late or silent, waits for an operator, failed, rejects records, lacks a service, loses
    records soon, or makes many files."""

    def __init__(self, scope: Construct, name: str, *, pipeline: str, watched: Watched) -> None:
        """Twice without a report is late, too."""
        super().__init__(scope, name)
        group = {"group": watched.group} if watched.group else {}
        for rule in _rules(watched):
            CloudwatchMetricAlarm(
                self,
                rule.what,
                alarm_name=f"{watched.prefix}-{pipeline}-{rule.what}",
                metric_name=rule.metric,
                statistic=rule.statistic,
                period=rule.period,
                namespace=watched.namespace,
                dimensions={**group, "pipeline": pipeline},
                ok_actions=[watched.topic_arn],
                **_settings(rule, watched, is_silence_bad=rule.what == "late"),
            )


class GroupAlarms(Construct):
    """The alarms of all pipelines of a group: one alarm for each kind, with a time series for each pipeline.

    A series that is missing raises none of them; the reconciler counts silent pipelines (`infra/job_reconciler.py`). A pipeline
    that joins a group, as of a new topic, is watched from its first report.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Create_Metrics_Insights_Alarm.html: each time series is a
    contributor with its own state, and the alarm names those that raise it.
    """

    def __init__(self, scope: Construct, name: str, *, watched: Watched, is_silence_bad: bool = True) -> None:
        """`is_silence_bad`: whether a group of which no pipeline reports raises an alarm."""
        super().__init__(scope, name)
        named = "-".join(filter(None, (watched.prefix, watched.group)))
        for rule in _rules(watched):
            function = {"Maximum": "MAX", "Sum": "SUM"}[rule.statistic]
            # CloudWatch's query language; the names are checked in declarations.
            select = f"SELECT {function}({rule.metric}) FROM {_schema(watched)}"  # noqa: S608
            query = f"{select} GROUP BY pipeline ORDER BY {function}() DESC"
            self._alarm(named, rule, query, watched)
        if not is_silence_bad:
            return
        silent = _Rule("silent", "freshness_seconds", "Sum", 0, watched.period, 2)
        query = " ".join(["SELECT COUNT(freshness_seconds) FROM", _schema(watched)])
        self._alarm(
            named, silent, query, watched, is_silence_bad=True, comparison_operator="LessThanOrEqualToThreshold"
        )

    def _alarm(
        self, named: str, rule: _Rule, query: str, watched: Watched, *, is_silence_bad: bool = False, **more: Any
    ) -> None:
        CloudwatchMetricAlarm(
            self,
            rule.what,
            alarm_name=f"{named}-{rule.what}",
            metric_query=[
                CloudwatchMetricAlarmMetricQuery(id="pipelines", expression=query, period=rule.period, return_data=True)
            ],
            ok_actions=[watched.topic_arn],
            **{**_settings(rule, watched, is_silence_bad=is_silence_bad), **more},
        )


def _schema(watched: Watched) -> str:
    """Return the source of a query: the metrics with exactly these dimensions, of the group if there is one."""
    if watched.group is None:
        return f'SCHEMA("{watched.namespace}", pipeline)'
    return f"""SCHEMA("{watched.namespace}", "group", pipeline) WHERE "group" = '{watched.group}'"""


def _settings(rule: _Rule, watched: Watched, *, is_silence_bad: bool) -> dict[str, Any]:
    meaning, anchor = _MEANINGS[rule.what]
    return {
        "alarm_description": f"{meaning}. {_GUIDE}#{anchor}",
        "comparison_operator": "GreaterThanThreshold",
        "threshold": rule.most,
        "evaluation_periods": rule.periods,
        "treat_missing_data": "breaching" if is_silence_bad else "notBreaching",
        "alarm_actions": [watched.topic_arn],
    }


_GUIDE = "docs/guides/alarms.md"
"""The page with a runbook for each alarm, at the lower-case name that the same alarm has for Prometheus."""
_MEANINGS: Mapping[str, tuple[str, str]] = {
    "late": (
        "Rows come later than was declared, or no run reports. frazil status, frazil jobs list",
        "frazilfreshness",
    ),
    "silent": (
        "No run of the group reports. frazil jobs list lists runs, frazil jobs logs prints their log",
        "frazilnodriver",
    ),
    "decision-required": (
        "The pipeline stopped until an operator decides. The log names the command",
        "frazilsuspended",
    ),
    "pipeline-failed": ("An error ended a pipeline's run. The log has its message", "frazilfailed"),
    "rejected": ("Records were rejected. frazil dead-letters list shows them, with reasons", "frazildeadletters"),
    "service-unavailable": (
        "Kafka, the registry, the catalog or a secret stayed unavailable; retried",
        "frazilserviceunavailable",
    ),
    "schema-incompatible": ("A version of the schema cannot land in this table", "frazilschemaincompatible"),
    "retention": (
        "Kafka deletes unread records soon: more than half of what it has is unread. frazil status shows the lag",
        "frazilretention",
    ),
    "many-files": (
        "The table's files are too small. frazil maintain compacts them; the log names a better partitioning",
        "frazilsmallfiles",
    ),
}
"""The meaning of each alarm, and its anchor on the page."""


def schedule_alarm(scope: Construct, *, group: str, prefix: str, topic_arn: str) -> None:
    """Declare the alarm that the scheduler could not start a run."""
    CloudwatchMetricAlarm(
        Construct(scope, "alarm-schedules"),
        "not-started",
        alarm_name=f"{prefix}-not-started",
        alarm_description="EventBridge Scheduler could not start a job run: its role, the application, or a quota.",
        comparison_operator="GreaterThanThreshold",
        namespace="AWS/Scheduler",
        metric_name="TargetErrorCount",
        dimensions={"ScheduleGroup": group},
        statistic="Sum",
        threshold=0,
        period=300,
        evaluation_periods=1,
        treat_missing_data="notBreaching",
        alarm_actions=[topic_arn],
    )
