"""The events of an ingest run. One event is one JSON line of the log; metrics are made of the same facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from frazil.lake.ledger.totals import Counts

Sink = Callable[[Mapping[str, Any]], None]


class Event(StrEnum):
    """The events of a run, by the name in the log.

    `JOB_STARTED`: the versions that the job runs on.
    `PIPELINE_STARTED` and `PIPELINE_FINISHED` frame a pipeline's run. `BATCH_COMMITTED`: a batch is in the table. `IDLE`:
    nothing to read. `SCHEMA_EVOLVED`: the table's schema changed. `DEAD_LETTERS_RECOVERED`: dead letters of an earlier commit
    were appended. `DEAD_LETTERS_REPLAYED`: a replay has tried so many dead letters so far.
    `BATCH_RETRIED`: a batch was dropped and is staged again.
    `SCHEMA_LOOKED_UP`: a batch was staged again because a record had a new schema id. `FENCED`: another driver committed first.
    `TABLE_DIFFERS`: a field of the declaration says something else than the table has; `is_applied` says whether the run changed
    the table. `MANY_FILES`: a batch made many files of few rows each.
    `FOREIGN_COMMIT`: another engine wrote rows of an upsert table, which has two writers then.
    `SCHEMA_INCOMPATIBLE`: records of a writer schema cannot land. `PROPERTIES_OMITTED`: a writer schema describes properties that
    land in no column. `SNAPSHOTS_EXPIRED`: old snapshots left the metadata.

    `FILES_COMPACTED`: the driver of an upsert table rewrote data files without their deleted rows, or why it did not.
    `KEY_INDEX_BUILT`: keys are found by an index on the driver's disk from now on. `KEY_INDEX_DROPPED`: they are not, and why.
    `KEYS_MAY_BE_FRAMED`: keys of bytes begin as a registry's serialiser writes; two versions of one key would be two rows.
    `PROOF_UNWRITTEN`: the run's proof for the reconciler could not be written, and is written later.
    `TOPICS_MATCHED`: how many topics match a pattern. It is an event of the pattern, as `SERVICE_UNAVAILABLE` is if they cannot be
    listed. `TYPES_MATCHED`: how many types of a routed topic match.
    `TOPIC_GONE`: a topic that matched does not exist any more, and its table stays.
    `METRICS_SERVED`: the address of a run's metrics. `METRICS_UNSENT`: a receiver of metrics does not take them; once in a run.
    `LOG_UNVERIFIED`: the last record that was read of a partition is gone, so a truncated log would not be noticed.
    `PIPELINE_RETRIED`: an error that is neither an outage nor a decision; the pipeline starts again after a pause.

    Three events report an error, each with one meaning. `SERVICE_UNAVAILABLE`: a service does not answer; a pipeline that
    follows its topic retries. `DECISION_REQUIRED`: the pipeline stops until an operator decides; the message names the command.
    `PIPELINE_FAILED`: any other error; it ended the pipeline, and is reported each minute while other pipelines go on.
    """

    JOB_STARTED = "job_started"
    PIPELINE_STARTED = "pipeline_started"
    PIPELINE_FINISHED = "pipeline_finished"
    BATCH_COMMITTED = "batch_committed"
    IDLE = "idle"
    SCHEMA_EVOLVED = "schema_evolved"
    DEAD_LETTERS_RECOVERED = "dead_letters_recovered"
    DEAD_LETTERS_REPLAYED = "dead_letters_replayed"
    BATCH_RETRIED = "batch_retried"
    SCHEMA_LOOKED_UP = "schema_looked_up"
    FENCED = "fenced"
    TABLE_DIFFERS = "table_differs"
    MANY_FILES = "many_files"
    FOREIGN_COMMIT = "foreign_commit"
    SCHEMA_INCOMPATIBLE = "schema_incompatible"
    PROPERTIES_OMITTED = "properties_omitted"
    PIPELINE_RETRIED = "pipeline_retried"
    DECISION_REQUIRED = "decision_required"
    PIPELINE_FAILED = "pipeline_failed"
    SERVICE_UNAVAILABLE = "service_unavailable"
    SNAPSHOTS_EXPIRED = "snapshots_expired"
    FILES_COMPACTED = "files_compacted"
    KEY_INDEX_BUILT = "key_index_built"
    KEY_INDEX_DROPPED = "key_index_dropped"
    KEYS_MAY_BE_FRAMED = "keys_may_be_framed"
    TOPICS_MATCHED = "topics_matched"
    TYPES_MATCHED = "types_matched"
    TOPIC_GONE = "topic_gone"
    LOG_UNVERIFIED = "log_unverified"
    PROOF_UNWRITTEN = "proof_unwritten"
    METRICS_SERVED = "metrics_served"
    METRICS_UNSENT = "metrics_unsent"


@dataclass(slots=True)
class Total:
    """The totals of one pipeline in one run so far.

    `fenced`: another driver landed. `stopped`: the run was asked to end before it was done. `waiting`: what the pipeline
    lacks, so that existing records were not read.
    """

    read: int = 0
    written: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    filtered: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    fenced: bool = False
    stopped: bool = False
    waiting: str = ""

    def add(self, counts: Counts) -> None:
        """Count one landed batch."""
        self.read += counts.read
        self.written += counts.written
        self.batches += 1
        self.rejected.update(counts.rejected)
        self.skipped.update(counts.skipped)
        self.filtered.update(counts.filtered)


@dataclass(frozen=True, slots=True)
class Reporter:
    """Says what happens to one pipeline: every event carries pipeline, topic and run, and the group if it has one."""

    sink: Sink
    pipeline: str
    topic: str
    run: str
    clock: Callable[[], float]
    group: str | None = None

    def __call__(self, event: Event, **facts: Any) -> None:
        """Emit one event."""
        self.sink(
            {
                "time": round(self.clock(), 3),
                "event": event.value,
                "pipeline": self.pipeline,
                **({"group": self.group} if self.group else {}),
                "topic": self.topic,
                "run": self.run,
                **facts,
            }
        )
