"""The metrics of a run. Names, units and labels are a contract: dashboards and alarms of users depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The kind of a metric, as Prometheus has it: a counter only grows during a run, a gauge is a value of now."""

    COUNTER = "counter"
    GAUGE = "gauge"


class Unit(StrEnum):
    """A unit, as CloudWatch writes it."""

    COUNT = "Count"
    BYTES = "Bytes"
    SECONDS = "Seconds"
    NONE = "None"


OF_PIPELINE = ("pipeline", "topic", "group")
"""The labels of each metric of a pipeline; a pipeline without a group has an empty one, which Prometheus omits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric. `labels` are those besides `OF_PIPELINE`, which a metric of the process does not have.

    `fact` is the member of an event with its value, `emf` its name in CloudWatch: empty for a metric that CloudWatch does not have.
    """

    name: str
    kind: Kind
    unit: Unit
    meaning: str
    labels: tuple[str, ...] = ()
    is_of_process: bool = False
    fact: str = ""
    emf: str = ""

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The names of all labels."""
        return self.labels if self.is_of_process else (*OF_PIPELINE, *self.labels)


def _counter(name: str, unit: Unit, meaning: str, *labels: str, fact: str = "", emf: str = "") -> Metric:
    return Metric(name=name, kind=Kind.COUNTER, unit=unit, meaning=meaning, labels=labels, fact=fact, emf=emf)


def _gauge(name: str, unit: Unit, meaning: str, *labels: str, fact: str = "", emf: str = "") -> Metric:
    return Metric(name=name, kind=Kind.GAUGE, unit=unit, meaning=meaning, labels=labels, fact=fact, emf=emf)


READ = _counter("frazil_records_read_total", Unit.COUNT, "Records read and committed.", fact="read", emf="read")
LANDED = _counter(
    "frazil_records_landed_total",
    Unit.COUNT,
    "Rows written. A record that replaces or deletes another row of its batch writes none.",
    fact="written",
    emf="written",
)
REJECTED = _counter(
    "frazil_records_rejected_total", Unit.COUNT, "Dead letters by reason.", "reason", fact="rejected", emf="rejected"
)
SKIPPED = _counter(
    "frazil_records_skipped_total", Unit.COUNT, "Records skipped as declared.", "reason", fact="skipped", emf="skipped"
)
FILTERED = _counter(
    "frazil_records_filtered_total",
    Unit.COUNT,
    "Records filtered by a condition or a route.",
    "reason",
    fact="filtered",
    emf="filtered",
)
LATE = _counter("frazil_records_late_total", Unit.COUNT, "Rows whose event is late.", fact="late_events")
MASKED = _counter("frazil_records_masked_total", Unit.COUNT, "Rows written with masked columns.", fact="masked")
READ_BYTES = _counter("frazil_read_bytes_total", Unit.BYTES, "Bytes of records read.", fact="bytes", emf="bytes")
COMMITS = _counter("frazil_commits_total", Unit.COUNT, "Batches committed.")
BATCH_SECONDS = _counter(
    "frazil_batch_seconds_total",
    Unit.SECONDS,
    "Time of batches by step: `stage` reads, decodes and writes files, `commit` publishes them, `all` is both with waits.",
    "step",
)
EVENTS = _counter("frazil_events_total", Unit.COUNT, "Events that need attention, by name.", "event")
LAG = _gauge("frazil_lag_offsets", Unit.COUNT, "Offsets that are not landed yet.", fact="lag", emf="lag")
FRESHNESS = _gauge(
    "frazil_freshness_seconds",
    Unit.SECONDS,
    "Age of the newest landed record while records wait, 0 if none waits. While a driver has not looked at the topic for two "
    "minutes: the age of the last look.",
    fact="freshness_seconds",
    emf="freshness_seconds",
)
LAST_LOOK = _gauge(
    "frazil_last_look_timestamp_seconds",
    Unit.SECONDS,
    "Time at which a batch was committed, or none was needed; at first, of the start.",
)
LAST_REJECTED = _gauge(
    "frazil_last_rejected_timestamp_seconds", Unit.SECONDS, "Time of the newest dead letter by reason.", "reason"
)
LAST_EVENT = _gauge(
    "frazil_last_event_timestamp_seconds", Unit.SECONDS, "Time of the newest event that needs attention.", "event"
)
RETENTION = _gauge(
    "frazil_retention_used_ratio",
    Unit.NONE,
    "Unread part of what Kafka still has of a partition that it deleted records of; the highest of all partitions. At 1 records "
    "are lost next.",
    fact="retention_used",
    emf="retention_used",
)
STATE = _gauge("frazil_pipeline_state", Unit.NONE, "1 for the state that the pipeline is in.", "state")
ROWS = _gauge("frazil_table_rows", Unit.COUNT, "Rows in data files, deleted ones included.", fact="table_rows")
TABLE_BYTES = _gauge("frazil_table_bytes", Unit.BYTES, "Bytes of data and delete files.", fact="table_bytes")
FILES = _gauge("frazil_table_files", Unit.COUNT, "Files by content: `data` or `deletes`.", "content")
RUN = Metric(
    name="frazil_run_info",
    kind=Kind.GAUGE,
    unit=Unit.NONE,
    meaning="1, with the run and its version.",
    labels=("run", "version"),
    is_of_process=True,
)
CPU = Metric(
    name="frazil_cpu_seconds_total",
    kind=Kind.COUNTER,
    unit=Unit.SECONDS,
    meaning="CPU time of the driver, Spark's JVM included. A file does not have it.",
    is_of_process=True,
)
METRICS = (
    *(READ, LANDED, REJECTED, SKIPPED, FILTERED, LATE, MASKED, READ_BYTES, COMMITS, BATCH_SECONDS, EVENTS),
    *(LAG, FRESHNESS, LAST_LOOK, LAST_REJECTED, LAST_EVENT, RETENTION, STATE, ROWS, TABLE_BYTES, FILES, RUN, CPU),
)
"""All metrics."""

SAMPLES = {"duration_seconds": "all", "stage_seconds": "stage", "commit_seconds": "commit"}
"""The step of `BATCH_SECONDS` by the member of an event; CloudWatch has the first two by these names."""
COUNTED = (
    *("fenced", "decision_required", "pipeline_failed", "pipeline_retried", "service_unavailable", "batch_retried"),
    *("schema_incompatible", "many_files"),
)
"""The events that are counted by name: CloudWatch has a metric for each."""
