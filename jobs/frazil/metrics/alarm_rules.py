"""The alarms for Prometheus, as rules that `promtool` checks. `infra/alarms.py` has the same in CloudWatch.

Freshness is an objective: rows are fresh in 99 % of the time. Its alarms follow the burn rates of Google's SRE workbook, chapter 5
(https://sre.google/workbook/alerting-on-slos/): 14.4 times the budget in an hour, or 6 times in six hours, and still now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

RUNBOOKS = "docs/guides/alarms.md"
FRESHNESS_SECONDS = 300
"""The default objective."""
SMALL_BYTES, MANY_FILES = 8 * 1024 * 1024, 500
"""A table of more files than that, which are smaller on average, is slow to plan and to read."""
_OF = "pipeline, topic, group"
_LATE = "frazil:late:bool"
_DRIVER = f"{_OF}, instance, job"
"""The labels of a driver: the file of a run that ended explains nothing of another one."""
_EXPLAINED = f'on ({_OF}) frazil_pipeline_state{{state=~"suspended|failed|retrying"}}'
_NOT_LOOKING = f'on ({_DRIVER}) frazil_pipeline_state{{state=~"suspended|failed|retrying|waiting|finished"}}'
_DONE = f'on ({_DRIVER}) frazil_pipeline_state{{state="finished"}}'
_RECENT = 600
"""The seconds for which an alarm of a single event is raised."""


class Severity(StrEnum):
    """The time until a person must look: `PAGE` at once, `TICKET` on a working day."""

    PAGE = "page"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm: `expression` is in PromQL, and lasts for `minutes` before the alarm is raised. `summary` is for one series."""

    name: str
    expression: str
    minutes: int
    severity: Severity
    summary: str

    @property
    def runbook(self) -> str:
        """The place of its runbook."""
        return f"{RUNBOOKS}#{self.name.lower()}"


def _state(name: str) -> str:
    return f'frazil_pipeline_state{{state="{name}"}} == 1'


def _burns(times: float, hours: int, short: str) -> str:
    """Return whether the budget of 1 % burns so many times as fast, in the hours and still in the short time.

    The minutes that are late are divided by all minutes: a pipeline that is new has been late in few of them.
    """
    most = f"{times / 100:g}"
    late = f"sum_over_time({_LATE}[{hours}h]) / {hours * 60} > {most} and avg_over_time({_LATE}[{short}]) > {most}"
    return f"({late}) unless {_EXPLAINED}"


def _recent(series: str) -> str:
    """Return whether something happened in the last minutes. An increase would miss what happens at first, or after a restart."""
    return f"time() - {series} < {_RECENT}"


ALARMS = (
    Alarm(
        name="FrazilFreshness",
        expression=_burns(14.4, 1, "5m"),
        minutes=2,
        severity=Severity.PAGE,
        summary="rows come later than the objective",
    ),
    Alarm(
        name="FrazilFreshnessSlow",
        expression=f"({_burns(6, 6, '30m')}) unless ({_burns(14.4, 1, '5m')})",
        minutes=5,
        severity=Severity.TICKET,
        summary="rows come later than the objective again and again",
    ),
    Alarm(
        name="FrazilDeadLetters",
        expression=_recent("frazil_last_rejected_timestamp_seconds"),
        minutes=0,
        severity=Severity.TICKET,
        summary="records were rejected ({{ $labels.reason }})",
    ),
    Alarm(
        name="FrazilSuspended",
        expression=_state("suspended"),
        minutes=0,
        severity=Severity.PAGE,
        summary="the pipeline stopped until an operator decides",
    ),
    Alarm(
        name="FrazilFailed",
        expression=_state("failed"),
        minutes=0,
        severity=Severity.PAGE,
        summary="an error ended the pipeline",
    ),
    Alarm(
        name="FrazilServiceUnavailable",
        expression=_state("retrying"),
        minutes=15,
        severity=Severity.PAGE,
        summary="a service is unavailable, or attempts fail",
    ),
    Alarm(
        name="FrazilSchemaIncompatible",
        expression=_recent('frazil_last_event_timestamp_seconds{event="schema_incompatible"}'),
        minutes=0,
        severity=Severity.TICKET,
        summary="records of a schema version do not fit the table",
    ),
    Alarm(
        name="FrazilNoProgress",
        expression=f"time() - frazil_last_look_timestamp_seconds > 900 unless {_NOT_LOOKING}",
        minutes=0,
        severity=Severity.PAGE,
        summary="no batch was committed for 15 minutes, and the topic was not seen empty",
    ),
    Alarm(
        name="FrazilNoDriver",
        expression=f'group by ({_OF}) (last_over_time(frazil_pipeline_state{{state!="finished"}}[1d])) '
        f"unless group by ({_OF}) (frazil_pipeline_state) or group by ({_OF}) ("
        f'time() - frazil_last_look_timestamp_seconds > 86400 and on ({_OF}) frazil_pipeline_state{{state=~"finished|waiting"}})',
        minutes=5,
        severity=Severity.PAGE,
        summary="no driver lands the pipeline any more",
    ),
    Alarm(
        name="FrazilRetention",
        expression="frazil_retention_used_ratio > 0.5",
        minutes=15,
        severity=Severity.PAGE,
        summary="Kafka deletes unread records soon: {{ $value | humanizePercentage }} of a partition waits",
    ),
    Alarm(
        name="FrazilSmallFiles",
        expression=f"sum without (content) (frazil_table_files) > {MANY_FILES} and "
        f"frazil_table_bytes / sum without (content) (frazil_table_files) < {SMALL_BYTES}",
        minutes=60,
        severity=Severity.TICKET,
        summary="the table has many small files",
    ),
)
"""All alarms. An alarm on freshness is not raised for a pipeline whose state says more."""


def rules(freshness_seconds: int = FRESHNESS_SECONDS) -> str:
    """Return the file of rules for Prometheus, in YAML. Rows are late after `freshness_seconds`."""
    return "\n".join(_lines(freshness_seconds)) + "\n"


def _lines(freshness_seconds: int) -> Iterator[str]:
    yield "groups:"
    yield "  - name: frazil-late"
    yield "    interval: 1m"
    yield "    rules:"
    yield f"      - record: {_LATE}"
    yield f"        expr: max by ({_OF}) (frazil_freshness_seconds > bool {freshness_seconds} unless {_DONE})"
    yield "  - name: frazil"
    yield "    rules:"
    for alarm in ALARMS:
        yield f"      - alert: {alarm.name}"
        yield f"        expr: {json.dumps(alarm.expression)}"
        yield f"        for: {alarm.minutes}m"
        yield f"        labels: {{severity: {alarm.severity}}}"
        yield "        annotations:"
        yield f"          summary: {json.dumps('{{ $labels.pipeline }}: ' + alarm.summary)}"
        yield f"          runbook_url: {alarm.runbook}"
