"""The deployed resources of an environment, as their AWS services describe them. It reads, and raises an alarm on request."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from frazil.clients.aws_account import AwsCalls, account_clients
from frazil.errors import AccountUnavailable

_DO = "Use a role that may read it: the deployer's, as docs/policies.md lists it"
_REFUSED = ("AccessDenied", "AccessDeniedException")
_MOST_QUERIES = 500
"""https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html"""
_PERIOD_SECONDS = 300
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric, and the statistic of it."""

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    statistic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm as CloudWatch reports it. `since` is when it entered its state."""

    name: str
    state: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function. `state` is `Active` if it can be called; `changed_at` is when its code or its settings last changed."""

    state: str
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action of an alarm, like a message to a topic, as CloudWatch's history has it."""

    at: datetime
    is_done: bool
    summary: str


class DeployedResources:
    """Log groups, functions, schedules, metrics, alarms, topics and tables.

    Every method raises `AccountUnavailable` if AWS refuses or does not answer, and returns None for what does not exist.
    """

    def __init__(self, client: Callable[[str], Any], *, region: str | None = None, endpoint: str | None = None) -> None:
        self._aws, self._region, self._endpoint = AwsCalls(cache(client), _DO), region, endpoint

    def log_streams(self, group: str) -> tuple[str, ...] | None:
        """Return the names of the newest streams of a log group."""
        found = self._aws.found(
            "logs", "describe_log_streams", logGroupName=group, orderBy="LastEventTime", descending=True
        )
        return None if found is None else tuple(each["logStreamName"] for each in found["logStreams"])

    def function(self, name: str) -> Function | None:
        """Return a function."""
        found = self._aws.found("lambda", "get_function", FunctionName=name)
        if found is None:
            return None
        settings = found["Configuration"]
        changed_at = datetime.fromisoformat(settings["LastModified"])
        return Function(state=str(settings.get("State") or "Active"), changed_at=changed_at)

    def schedule_state(self, group: str, name: str) -> str | None:
        """Return the state of a schedule, `ENABLED` or `DISABLED`."""
        found = self._aws.found("scheduler", "get_schedule", GroupName=group, Name=name)
        return None if found is None else str(found["State"])

    def rule_state(self, name: str) -> str | None:
        """Return the state of a rule for events, `ENABLED` or `DISABLED`."""
        found = self._aws.found("events", "describe_rule", Name=name)
        return None if found is None else str(found["State"])

    def topic(self, arn: str) -> Mapping[str, str] | None:
        """Return the attributes of a topic."""
        found = self._aws.found("sns", "get_topic_attributes", TopicArn=arn)
        return None if found is None else dict(found["Attributes"])

    def sums(self, metrics: Sequence[Metric], *, now: datetime, within: timedelta) -> tuple[float, ...]:
        """Return the sum of the statistic of each metric, for the time before now; 0 for a metric without data."""
        found: list[float] = []
        for at in range(0, len(metrics), _MOST_QUERIES):
            asked = [_query(number, each) for number, each in enumerate(metrics[at : at + _MOST_QUERIES])]
            sums = dict.fromkeys((each["Id"] for each in asked), 0.0)
            request = {"MetricDataQueries": asked, "StartTime": now - within, "EndTime": now}
            for each in self._aws.listed("cloudwatch", "get_metric_data", "MetricDataResults", **request):
                sums[each["Id"]] += sum(each["Values"])
            found += sums.values()
        return tuple(found)

    def alarms(self, prefix: str) -> tuple[Alarm, ...]:
        """Return the alarms whose names begin with a prefix."""
        found = self._aws.listed("cloudwatch", "describe_alarms", "MetricAlarms", AlarmNamePrefix=prefix)
        return tuple(
            Alarm(name=each["AlarmName"], state=each["StateValue"], since=each["StateUpdatedTimestamp"])
            for each in found
        )

    def newest_action(self, alarm: str) -> Action | None:
        """Return the newest action of an alarm."""
        newest = {"AlarmName": alarm, "HistoryItemType": "Action", "ScanBy": "TimestampDescending", "MaxRecords": 1}
        for each in self._aws.ask("cloudwatch", "describe_alarm_history", **newest)["AlarmHistoryItems"]:
            said, summary = json.loads(each.get("HistoryData") or "{}"), each["HistorySummary"]
            is_done = said.get("actionState", "Succeeded") == "Succeeded" and not summary.startswith("Fail")
            return Action(at=each["Timestamp"], is_done=is_done, summary=str(said.get("error") or summary))
        return None

    def raise_alarm(self, name: str, reason: str) -> None:
        """Have CloudWatch raise an alarm until its next evaluation, with its actions."""
        self._aws.ask("cloudwatch", "set_alarm_state", AlarmName=name, StateValue="ALARM", StateReason=reason)

    def as_role(self, role: str) -> DeployedResources | None:
        """Return the same services as a role; None if these credentials may not assume it."""
        try:
            given = self._aws.ask("sts", "assume_role", RoleArn=role, RoleSessionName="frazil-smoke")["Credentials"]
        except AccountUnavailable as error:
            if error.what.endswith(_REFUSED):
                return None
            raise
        keys = (given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
        client = account_clients(self._region, endpoint=self._endpoint, keys=keys)
        return DeployedResources(client, region=self._region, endpoint=self._endpoint)

    def table_metadata(self, namespace: str, table: str) -> str | None:
        """Return the uuid of an Iceberg table, read by Glue's entry from its file of metadata on S3."""
        found = self._aws.found("glue", "get_table", DatabaseName=namespace, Name=table)
        if found is None:
            return None
        bucket, _, key = found["Table"]["Parameters"]["metadata_location"].removeprefix("s3://").partition("/")
        content = self._aws.ask("s3", "get_object", Bucket=bucket, Key=key)["Body"].read()
        is_compressed = content.startswith(_GZIP)  # as `write.metadata.compression-codec` says
        return str(json.loads(gzip.decompress(content) if is_compressed else content)["table-uuid"])


def _query(number: int, metric: Metric) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions.items()]
    named = {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": dimensions}
    return {"Id": f"m{number}", "MetricStat": {"Metric": named, "Period": _PERIOD_SECONDS, "Stat": metric.statistic}}
