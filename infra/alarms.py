"""Alarms on what an operator must know, from the metrics that jobs write (`docs/running.md`) and from the scheduler."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from infra.tf import CloudwatchMetricAlarm, Construct, SnsTopic, SnsTopicSubscription, unique_name

OUTAGE_PERIODS = 3
"""How many periods in a row a service must be unavailable: 15 minutes for a run that follows its topics."""


class AlarmTopic(Construct):
    """Where alarms go, and whom they reach."""

    def __init__(self, scope: Construct, name: str, *, topic: str, key_arn: str, emails: Sequence[str]) -> None:
        super().__init__(scope, name)
        self._topic = SnsTopic(self, "topic", name=topic, kms_master_key_id=key_arn)
        for number, email in enumerate(dict.fromkeys(emails)):
            named = hashlib.sha256(email.encode()).hexdigest()[:16]
            subscription = SnsTopicSubscription(
                self, f"email-{named}", topic_arn=self._topic.arn, protocol="email", endpoint=email
            )
            # 0.1.0 numbered them.
            subscription.move_from_id(f"aws_sns_topic_subscription.{unique_name(name, f'email-{number}')}")

    @property
    def arn(self) -> str:
        """The topic's ARN, known when it exists."""
        return self._topic.arn


class PipelineAlarms(Construct):
    """The alarms of one pipeline: it is late or silent, waits for an operator, failed, rejects records, or lacks a service."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        pipeline: str,
        prefix: str,
        namespace: str,
        topic_arn: str,
        freshness_seconds: int,
        every_minutes: int,
    ) -> None:
        """`freshness_seconds`: how late rows may be. `every_minutes`: how often a run reports; twice without a report is
        an alarm too."""
        super().__init__(scope, name)
        self._namespace, self._pipeline, self._topic_arn = namespace, pipeline, topic_arn
        self._named = f"{prefix}-{pipeline}"
        period = max(60, every_minutes * 60)
        self._alarm("late", "freshness_seconds", "Maximum", freshness_seconds, period, 2, is_silence_bad=True)
        self._alarm("decision-required", "decision_required", "Sum", 0, period, 1)
        self._alarm("pipeline-failed", "pipeline_failed", "Sum", 0, period, 1)
        self._alarm("schema-incompatible", "schema_incompatible", "Sum", 0, period, 1)
        self._alarm("rejected", "rejected", "Sum", 0, period, 1)
        # A short outage passes by itself, and a run that follows its topic reports it at least each minute.
        self._alarm("service-unavailable", "service_unavailable", "Sum", 0, max(period, 300), OUTAGE_PERIODS)

    def _alarm(
        self,
        what: str,
        metric: str,
        statistic: str,
        most: int,
        period_seconds: int,
        periods: int,
        *,
        is_silence_bad: bool = False,
    ) -> None:
        CloudwatchMetricAlarm(
            self,
            what,
            alarm_name=f"{self._named}-{what}",
            alarm_description=_MEANINGS[what],
            comparison_operator="GreaterThanThreshold",
            metric_name=metric,
            statistic=statistic,
            threshold=most,
            period=period_seconds,
            evaluation_periods=periods,
            treat_missing_data="breaching" if is_silence_bad else "notBreaching",
            namespace=self._namespace,
            dimensions={"pipeline": self._pipeline},
            alarm_actions=[self._topic_arn],
            ok_actions=[self._topic_arn],
        )


_MEANINGS: Mapping[str, str] = {
    "late": "Rows come later than was declared, or no run reports. frazil show, frazil runs",
    "decision-required": "The pipeline stopped until an operator decides. The log names the command; docs/running.md",
    "pipeline-failed": "An error ended a pipeline's run. The log has its message; docs/running.md",
    "rejected": "Records were rejected. frazil dead-letters list shows them, with reasons; docs/bad-input.md",
    "service-unavailable": "Kafka, the registry, the catalog or a secret stayed unavailable; retried; docs/running.md",
    "schema-incompatible": "A version of the schema cannot land in this table; docs/schemas.md",
}


class ScheduleAlarm(Construct):
    """The scheduler could not start a run."""

    def __init__(self, scope: Construct, name: str, *, group: str, prefix: str, topic_arn: str) -> None:
        super().__init__(scope, name)
        CloudwatchMetricAlarm(
            self,
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
