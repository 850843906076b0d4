"""The deployed resources of an environment, as their AWS services describe them. It reads, and raises an alarm on request."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from frazil.clients.aws_account import account_clients, found_or_none, translated

_DO = "Use a role that may read it: the deployer's, as docs/policies.md lists it"
_REFUSED = {"AccessDenied", "AccessDeniedException"}
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
        self._client, self._region, self._endpoint = cache(client), region, endpoint

    def log_streams(self, group: str) -> tuple[str, ...] | None:
        """Return the names of the newest streams of a log group."""
        found = self._found(
            "logs", "describe_log_streams", logGroupName=group, orderBy="LastEventTime", descending=True
        )
        return None if found is None else tuple(each["logStreamName"] for each in found["logStreams"])

    def function(self, name: str) -> Function | None:
        """Return a function."""
        found = self._found("lambda", "get_function", FunctionName=name)
        if found is None:
            return None
        settings = found["Configuration"]
        changed_at = datetime.fromisoformat(settings["LastModified"])
        return Function(state=str(settings.get("State") or "Active"), changed_at=changed_at)

    def schedule_state(self, group: str, name: str) -> str | None:
        """Return the state of a schedule, `ENABLED` or `DISABLED`."""
        found = self._found("scheduler", "get_schedule", GroupName=group, Name=name)
        return None if found is None else str(found["State"])

    def rule_state(self, name: str) -> str | None:
        """Return the state of a rule for events, `ENABLED` or `DISABLED`."""
        found = self._found("events", "describe_rule", Name=name)
        return None if found is None else str(found["State"])

    def topic(self, arn: str) -> Mapping[str, str] | None:
        """Return the attributes of a topic."""
        found = self._found("sns", "get_topic_attributes", TopicArn=arn)
        return None if found is None else dict(found["Attributes"])

    def sums(self, metrics: Sequence[Metric], *, now: datetime, within: timedelta) -> tuple[float, ...]:
        """Return the sum of the statistic of each metric, for the time before now; 0 for a metric without data."""
        found: list[float] = []
        for at in range(0, len(metrics), _MOST_QUERIES):
            asked = [_query(number, each) for number, each in enumerate(metrics[at : at + _MOST_QUERIES])]
            sums = dict.fromkeys((each["Id"] for each in asked), 0.0)
            with translated("cloudwatch", _DO):
                pages = self._client("cloudwatch").get_paginator("get_metric_data")
                for page in pages.paginate(MetricDataQueries=asked, StartTime=now - within, EndTime=now):
                    for each in page["MetricDataResults"]:
                        sums[each["Id"]] += sum(each["Values"])
            found += sums.values()
        return tuple(found)

    def alarms(self, prefix: str) -> tuple[Alarm, ...]:
        """Return the alarms whose names begin with a prefix."""
        with translated("cloudwatch", _DO):
            pages = self._client("cloudwatch").get_paginator("describe_alarms").paginate(AlarmNamePrefix=prefix)
            return tuple(
                Alarm(name=each["AlarmName"], state=each["StateValue"], since=each["StateUpdatedTimestamp"])
                for page in pages
                for each in page.get("MetricAlarms", ())
            )

    def newest_action(self, alarm: str) -> Action | None:
        """Return the newest action of an alarm."""
        with translated("cloudwatch", _DO):
            found = self._client("cloudwatch").describe_alarm_history(
                AlarmName=alarm, HistoryItemType="Action", ScanBy="TimestampDescending", MaxRecords=1
            )
        for each in found["AlarmHistoryItems"]:
            said = json.loads(each.get("HistoryData") or "{}")
            is_done = said.get("actionState", "Succeeded") == "Succeeded" and not each["HistorySummary"].startswith(
                "Fail"
            )
            return Action(
                at=each["Timestamp"], is_done=is_done, summary=str(said.get("error") or each["HistorySummary"])
            )
        return None

    def raise_alarm(self, name: str, reason: str) -> None:
        """Have CloudWatch raise an alarm until its next evaluation, with its actions."""
        with translated("cloudwatch", _DO):
            self._client("cloudwatch").set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason=reason)

    def as_role(self, role: str) -> DeployedResources | None:
        """Return the same services as a role; None if these credentials may not assume it."""
        from botocore.exceptions import ClientError

        with translated("sts", _DO):
            try:
                given = self._client("sts").assume_role(RoleArn=role, RoleSessionName="frazil-smoke")["Credentials"]
            except ClientError as error:
                if error.response["Error"]["Code"] in _REFUSED:
                    return None
                raise
        keys = (given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
        client = account_clients(self._region, endpoint=self._endpoint, keys=keys)
        return DeployedResources(client, region=self._region, endpoint=self._endpoint)

    def table_metadata(self, namespace: str, table: str) -> str | None:
        """Return the uuid of an Iceberg table, read by Glue's entry from its file of metadata on S3."""
        found = self._found("glue", "get_table", DatabaseName=namespace, Name=table)
        if found is None:
            return None
        bucket, _, key = found["Table"]["Parameters"]["metadata_location"].removeprefix("s3://").partition("/")
        with translated("s3", _DO):
            content = self._client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        is_compressed = content.startswith(_GZIP)  # as `write.metadata.compression-codec` says
        return str(json.loads(gzip.decompress(content) if is_compressed else content)["table-uuid"])

    def _found(self, service: str, operation: str, **request: Any) -> Any:
        return found_or_none(self._client, service, _DO, operation, **request)


def _query(number: int, metric: Metric) -> dict[str, Any]:
    dimensions = [{"Name": name, "Value": value} for name, value in metric.dimensions.items()]
    named = {"Namespace": metric.namespace, "MetricName": metric.name, "Dimensions": dimensions}
    return {"Id": f"m{number}", "MetricStat": {"Metric": named, "Period": _PERIOD_SECONDS, "Stat": metric.statistic}}
