"""Resume a pipeline: make its tables exist, finish what an earlier driver left open, and find where to continue."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence

from frazil.declaration import Pipeline
from frazil.errors import Fenced
from frazil.ingest.plan.plan import Span
from frazil.ingest.reporting.events import Event, Reporter
from frazil.ingest.setup import existing_table, table_setup
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters.decide import finish_open
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.offsets import Offsets
from frazil.schemas.types import Field, Struct, Type


def resume(
    pipeline: Pipeline,
    job: JobContext,
    report: Reporter,
    row: Struct,
    key: Type | None,
    row_key: Collection[str] = (),
    more: Sequence[Field] = (),
) -> Entry:
    """Return the newest entry of the table's ledger, which has offsets. A new table gets its declared start.

    Raises what `columns_to_add`, `read_ledger` and `finish_open` raise.
    """
    existing = table_setup.make_tables(job, pipeline, row, key, row_key, more)
    if existing is not None:
        existing_table.restore_columns(pipeline, job, report, key, existing)
        _finish_open(pipeline, job, report)
    newest = table_setup.read_ledger(job.iceberg, pipeline)
    if newest is None:
        _begin(pipeline, job)
        newest = table_setup.read_ledger(job.iceberg, pipeline)
    # Another driver may have decided since: no commit may be on top of a decision that is open, for a side table that
    # has reached a later offset counts as finished. What is decided from here on fences this driver.
    _finish_open(pipeline, job, report)
    assert newest is not None
    return newest


def start_of(pipeline: Pipeline, job: JobContext, spans: Mapping[int, Span]) -> dict[int, int]:
    """Return the declared start, as an offset of each partition."""
    topic = pipeline.topic
    return table_setup.resolve_start(
        pipeline.start,
        spans,
        lambda ms: job.kafka.offsets_at(topic.name, ms, pipeline.isolation),
        topic=topic.name,
    )


def _finish_open(pipeline: Pipeline, job: JobContext, report: Reporter) -> None:
    table = pipeline.table
    finished = finish_open(job, table.identifier, table.dead_letters, pipeline.name)
    if finished:
        report(Event.DEAD_LETTERS_RECOVERED, dead_letters=finished)


def _begin(pipeline: Pipeline, job: JobContext) -> None:
    topic = pipeline.topic
    start = start_of(pipeline, job, job.kafka.offsets(topic.name, pipeline.isolation))
    state = job.kafka.topic(topic.name)
    offsets = Offsets(topic.name, state.topic_id, start)
    job.failpoint("begin.resolved")
    with contextlib.suppress(Fenced):  # another driver began; its start counts
        table_setup.initialise_ledger(job, pipeline, offsets, compacted=state.compacted)
