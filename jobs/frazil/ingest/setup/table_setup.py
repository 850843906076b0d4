"""The steps before the first batch: the table exists, its ledger is known, and an earlier driver's decisions are finished."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence

from frazil.clients.kafka import Span
from frazil.dead_letters.rejected_rows import COLUMNS as DEAD_LETTER_COLUMNS
from frazil.declaration import Pipeline
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.options import MetadataColumns
from frazil.declaration.partitioning import PartitionField, Transform
from frazil.declaration.start import At, Earliest, Latest
from frazil.declaration.start import Offsets as StartOffsets
from frazil.errors import (
    ColumnsMissing,
    DeadLetterTableMismatch,
    Fenced,
    ForeignTable,
    InvalidInput,
    LedgerLost,
    RolledBack,
)
from frazil.ingest.reporting.events import Event, Reporter
from frazil.ingest.setup import existing_table
from frazil.ingest.setup.letter_check import first_replaced
from frazil.ingest.setup.table_masks import MASK_SECRETS, check_secrets, secret_marks
from frazil.job.context import JobContext
from frazil.lake import layout, tables
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.dead_letters.decide import decide, finish_open, must_clear, part
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.request import CommitRequest, Committer, Extra
from frazil.lake.data_location import check_puffin
from frazil.lake.evolve import evolve
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.layout import Layout
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entries_of, entry, entry_of_head
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import head_follows
from frazil.lake.ledger.next_offsets import Offsets, canonical
from frazil.lake.stage import empty_commit
from frazil.schemas.evolution.schema_changes import AddColumn
from frazil.schemas.iceberg import field_ids, schema_json
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.sources import check_order, check_sources
from frazil.schemas.types import Field, Struct, Type


def make_tables(
    job: JobContext,
    pipeline: Pipeline,
    row: Struct,
    key: Type | None = None,
    row_key: Collection[str] = (),
    more: Sequence[Field] = (),
) -> Layout | None:
    """Create the table and its dead-letter table where they are missing; return the layout of a table that existed.

    `key` is the type of its decoded keys, if they are decoded; `row_key` are the columns that identify a row, and `more` those
    that its write mode adds. Raises `ForeignTable` if another engine made the table, `WriteModeDiffers` for a table that was
    made for another write mode, and `InvalidInput` if the declaration partitions or sorts by a column that does not exist, or
    if the store refuses the deletes of a new table.
    """
    iceberg = job.iceberg
    is_changelog = pipeline.write.keeps_changes  # many rows have one key; that of a truncate is null
    columns = new_columns(pipeline, row, key, more)
    actual = existing_table.layout_of(iceberg, pipeline) if iceberg.exists(pipeline.table.identifier) else None
    table = pipeline.table if actual is None else actual.declared(pipeline.table)
    check_order(table.partition_fields, columns, table=table.identifier, field="partition_by")
    check_order(table.sort_fields, columns, table=table.identifier, field="sort_by")
    if table.sort_fields:
        known = {**field_ids(schema_json(columns)), **(actual.columns if actual is not None else {})}
        check_sources(table.sort_fields, known, table=table.identifier, field="sort_by")
    made = tables.create(
        iceberg,
        table.identifier,
        columns,
        partition_by=table.partition_fields,
        properties={
            **layout.declared_properties(pipeline),
            **_mode_properties(pipeline, columns, row_key),
            layout.START: layout.start_property(pipeline),
            **({layout.SHAPES: canonical([shape])} if (shape := to_json(pipeline.shape.of_rows)) else {}),
            **(
                {MASK_SECRETS: canonical(marks)}
                if (marks := secret_marks(pipeline, lambda secret: job.secret(secret)))
                else {}
            ),
        },
        key=() if is_changelog else row_key,
        required=row_key if is_changelog and not pipeline.is_change_data else _required(pipeline, row),
    )
    if made and table.sort_fields:
        tables.change_layout(iceberg, table.identifier, table.sort_fields, {}, [], True)
    if not made and actual is None:  # another driver made it in between, or it is a view
        actual = existing_table.layout_of(iceberg, pipeline)
    if actual is not None:
        existing_table.check_write_mode(pipeline, actual)
        check_secrets(pipeline, job, actual)
    if pipeline.write.replaces_rows:
        check_puffin(iceberg, table.identifier)
    make_dead_letters(job, pipeline)
    return actual


def _required(pipeline: Pipeline, row: Struct) -> tuple[str, ...]:
    """Return the columns that are never null, as each row is a record that has a value for them."""
    is_sure = layout.is_kept_required(pipeline) and pipeline.topic.value.columns
    return tuple(field.name for field in row.fields if field.required) if is_sure else ()


def new_columns(pipeline: Pipeline, row: Struct, key: Type | None, more: Sequence[Field]) -> Struct:
    """Return the columns of a new table; the arguments are those of `make_tables`."""
    is_struct = pipeline.table.metadata_columns is MetadataColumns.STRUCT
    return Struct((*row.fields, *metadata_fields(struct=is_struct, key=key), *more))


def _mode_properties(pipeline: Pipeline, columns: Struct, row_key: Collection[str]) -> dict[str, str]:
    envelope = pipeline.envelope.kind if pipeline.envelope else None
    ids = field_ids(schema_json(columns))  # as Iceberg gives them to a new table
    key = [ids[name] for name in row_key] if pipeline.write.keeps_changes else ()
    return ledger.mode_properties(pipeline.write.kind, pipeline.write.order_columns, envelope, key)


def make_dead_letters(job: Committer, pipeline: Pipeline) -> None:
    """Create the dead-letter table if it is missing, and the columns that were dropped from it."""
    table = pipeline.table
    wanted = layout.properties(
        format_version=2,
        target_file_size_bytes=table.target_file_size_bytes,
        keep_snapshots=table.snapshots.newest,
        offset_columns=("topic", "partition", "offset"),
        declared={},
    )
    if job.iceberg.exists(table.dead_letters):
        _check_dead_letters(job, pipeline, wanted)
    made = tables.create(
        job.iceberg,
        table.dead_letters,
        DEAD_LETTER_COLUMNS,
        partition_by=(PartitionField(Transform.DAYS, "rejected_at"),),
        properties={**wanted, **({layout.TYPE: of} if (of := _new_type(pipeline)) else {})},
    )
    if not made:
        evolve(job, table.dead_letters, _dropped)


def _new_type(pipeline: Pipeline) -> str:
    """Return the type of a pipeline that a pattern of types made; empty for another one."""
    route = pipeline.shape.route
    return route.types[0] if route is not None and len(route.types) == 1 and route.is_new(route.types[0]) else ""


def _check_dead_letters(job: Committer, pipeline: Pipeline, wanted: Mapping[str, str]) -> None:
    """Give an existing dead-letter table its properties back.

    Raises `ForeignTable` if another engine made the table, and `ColumnsMissing` if one renamed columns of it.
    """
    iceberg, name = job.iceberg, pipeline.table.dead_letters
    actual = layout.Layout.of(iceberg.metadata(iceberg.load(name)))
    if not {"reason", "topic", "offset"} <= {*actual.columns, *actual.former}:
        raise ForeignTable.of(pipeline.name, name)
    names = [field.name for field in DEAD_LETTER_COLUMNS.fields if field.name not in actual.columns]
    if renamed := {column: now for column in names if (now := actual.name_now(column)) is not None}:
        raise ColumnsMissing.of(pipeline.name, name, renamed)
    differ = {key: value for key, value in wanted.items() if actual.properties.get(key, value) != value}
    tables.change_layout(iceberg, name, (), differ, [], False)


def _dropped(columns: Struct) -> list[AddColumn]:
    there = {field.name for field in columns.fields}
    return [AddColumn((field.name,), field.type) for field in DEAD_LETTER_COLUMNS.fields if field.name not in there]


def read_ledger(iceberg: Iceberg, pipeline: Pipeline) -> Entry | None:
    """Return the newest entry of the table's ledger (see `ledger.Entry`); None for a table without snapshots.

    Raises `LedgerLost` for a table that has rows and no entry, `RolledBack` if its head was moved to before the newest one.
    """
    table = iceberg.load(pipeline.table.identifier)
    newest = entry(table, pipeline.name)
    if newest is None:
        if table.currentSnapshot() is None:
            return None
        raise LedgerLost.of(pipeline.name, pipeline.table.identifier, is_state=pipeline.write.replaces_rows)
    if not head_follows(iceberg, table, newest):
        if pipeline.write.replaces_rows and entry_of_head(iceberg, table, pipeline.name) is None:
            raise RolledBack.of_replaced(pipeline.name, pipeline.table.identifier, newest.snapshot_id)
        raise RolledBack.of_table(pipeline.name, pipeline.table.identifier)
    return newest


def initialise_ledger(job: JobContext, pipeline: Pipeline, offsets: Offsets, *, compacted: bool = False) -> None:
    """Commit an empty snapshot that holds the resolved start, so that `start=latest` is decided once.

    Dead letters of a dropped table of the same name are removed: their records are landed again. Raises `Fenced` if another
    driver began first, `DeadLetterTableMismatch` if there are dead letters whose records this start does not land again: a
    `compacted` topic may not have them any more, nor a log that was truncated.
    """
    iceberg, table = job.iceberg, pipeline.table
    side = empty_commit(iceberg, table.dead_letters, at=job.clock())
    is_clear = must_clear(iceberg, pipeline.name, table.dead_letters, offsets, compacted=compacted)
    of = iceberg.load(table.dead_letters).properties().get(layout.TYPE) if is_clear else None
    if of is not None and of != _new_type(pipeline):  # its records do not land in this table
        raise DeadLetterTableMismatch.of_earlier_table(pipeline.name, table.dead_letters)
    if is_clear and first_replaced(pipeline, job.kafka, iceberg.spark.table(f"{iceberg.name}.{table.dead_letters}")):
        raise DeadLetterTableMismatch.of_earlier_table(pipeline.name, table.dead_letters)
    request = CommitRequest(
        pipeline=pipeline.name,
        run=job.run,
        version=job.version,
        start=offsets,
        end=offsets,
        committed=None,
        topic_id=offsets.topic_id,
    )
    staged = empty_commit(iceberg, table.identifier, at=job.clock())
    if not is_clear:
        commit(job, staged, request, Extra(summary={ledger.DECISION: "0"}))
        return
    parts = [{**part(side), "clear": True}]
    decide(job, staged, parts, request, Extra())


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
    existing = make_tables(job, pipeline, row, key, row_key, more)
    if existing is not None:
        existing_table.restore_columns(pipeline, job, report, key, existing)
        _finish_open(pipeline, job, report)
    newest = read_ledger(job.iceberg, pipeline)
    if newest is None:
        _begin(pipeline, job)
        newest = read_ledger(job.iceberg, pipeline)
    # Another driver may have decided since: no commit may be on top of a decision that is open, for a side table that
    # has reached a later offset counts as finished. What is decided from here on fences this driver.
    _finish_open(pipeline, job, report)
    assert newest is not None
    return newest


def after_replays(pipeline: Pipeline, job: JobContext, settled: int | None) -> int:
    """Finish what replays of dead letters decided since the snapshot `settled`; return the snapshot of the newest one.

    Raises `StageAgain` if an operator decided since.
    """
    table = pipeline.table
    loaded = job.iceberg.load(table.identifier)
    newest = entry(loaded, pipeline.name)
    for one in entries_of(loaded, pipeline.name, newest.snapshot_id) if newest is not None else ():
        if one.event is not None or newest is None:
            break
        if one.snapshot_id == settled or not one.is_replay:
            finish_open(job, table.identifier, table.dead_letters, pipeline.name)
            return newest.snapshot_id
    raise StageAgain("an operator decided since the batch was planned", where=f"pipeline {pipeline.name}")


def start_of(pipeline: Pipeline, job: JobContext, spans: Mapping[int, Span]) -> dict[int, int]:
    """Return the declared start as an offset of each partition; one that explicit offsets omit starts at its earliest."""
    match pipeline.start:
        case Earliest():
            return {p: span.earliest for p, span in sorted(spans.items())}
        case Latest():
            return {p: span.stable for p, span in sorted(spans.items())}
        case At(timestamp=timestamp):
            ms = round(timestamp.timestamp() * 1000)
            return dict(sorted(job.kafka.offsets_at(pipeline.topic.name, ms, pipeline.isolation).items()))
        case StartOffsets(offsets=given):
            wrong = {p: o for p, o in given.items() if p not in spans or not spans[p].earliest <= o <= spans[p].stable}
            if wrong:
                there = {p: (span.earliest, span.stable) for p, span in spans.items()}
                raise InvalidInput(
                    f"the declared start {wrong} is not within what the topic has: {there}",
                    where=f"topic {pipeline.topic.name}, start",
                    do="Declare offsets between the first and the next one of each partition",
                )
            return {p: given.get(p, span.earliest) for p, span in sorted(spans.items())}


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
        initialise_ledger(job, pipeline, offsets, compacted=state.compacted)
