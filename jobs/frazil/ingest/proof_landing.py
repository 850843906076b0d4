"""Land the topic of a state once more, in one batch and into a table on this machine, and compare the rows of both tables.

The table is what many batches, compaction and other drivers made of it; the second landing depends on none of them. The decoders
are the same, so a mistake in these is not found.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.audit.finding import Finding, Flaw
from frazil.audit.verification import Replayed
from frazil.clients.registry.client import Registry
from frazil.declaration import Environment, ErrorMode, Limits, LocalCatalog, Pipeline, Spark
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.envelopes import added_columns
from frazil.declaration.options import Isolation, SchemaEvolution
from frazil.declaration.start import Earliest
from frazil.errors import InvalidInput, KeysMoved, ServiceUnavailable, SparkFailed
from frazil.ingest.guard import guarded
from frazil.ingest.setup.existing_table import layout_of
from frazil.ingest.spark_errors import Cancelled, explained
from frazil.job.context import JobContext
from frazil.lake.catalogs import spark_options
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.layout import shapes
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry_of_head, of
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import lineage
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.row_offsets import quoted_part, snapshot_rows
from frazil.schemas.iceberg import identifier_fields
from frazil.schemas.metadata import DELETED_AT, INGESTED_AT

EXAMPLES = 5
"""So many records are named of each kind of difference."""
_PLACE = ("_kafka_partition", "_kafka_offset")
_HEADERS = "_kafka_headers"
_HELD, _AGAIN = "_frazil_held", "_frazil_again"
_TEXT = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
_LOGS = {"topic-recreated", "log-truncated", "log-truncated-replay"}
_KEEP_ROWS = {*_LOGS, "rolled-back-hold", "ledger-lost", "deletes-lost", ledger.ROWS_DELETED}
_WHAT = {
    Flaw.ROW_ABSENT: "{} keys of the topic have no row",
    Flaw.ROW_LEFT: "{} rows have keys that the topic has not, or has deleted",
    Flaw.ROW_DIFFERS: "{} rows are not those of their keys' last records",
}


def replay(
    pipeline: Pipeline, job: JobContext, registry: Registry | None, environment: Environment, folder: Path
) -> Replayed:
    """Compare a state's rows with what its topic comes to, up to the offsets that the table holds.

    The second table is in `folder`. Rows are equal if all their columns are, but for the time at which they were staged, headers
    and the columns of an event. Rows that are marked as deleted are not compared: compaction removes deletes. What keeps the rows
    from being compared is a finding. Raises `InvalidInput` for a table that is no state, and `ServiceUnavailable`.
    """
    check_is_state(pipeline)
    if not job.iceberg.exists(pipeline.table.identifier):
        return _not_replayed(pipeline, "the table does not exist")
    table = job.iceberg.load(pipeline.table.identifier)
    last = entry_of_head(job.iceberg, table, pipeline.name)
    if last is None or last.end is None:
        return _not_replayed(pipeline, "no snapshot says which offsets the table holds")
    if decided := _decided(job, table, last):
        return _not_replayed(
            pipeline, f"after {decided}, which an operator decided, the rows are not those of the topic"
        )
    if problem := _shaped_otherwise(pipeline, job, table):
        return _not_replayed(pipeline, problem)
    if problem := _lacks(pipeline, job, last.end):
        return _not_replayed(pipeline, problem)
    name, head = f"{job.iceberg.name}.{pipeline.table.identifier}", int(table.currentSnapshot().snapshotId())
    held = _named_now(*snapshot_rows(job.iceberg, name, table, head), table)
    here = _on_this_machine(job, environment, folder)
    count = max(sum(last.end.at.values()), 1)
    again = replace(
        pipeline,
        table=layout_of(job.iceberg, pipeline).declared(pipeline.table),
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
        engine=Spark(limits=Limits(first_rows=count, max_rows=count, max_bytes=2**62)),
    )
    until = last.end.at
    outcome = guarded(again, here, registry, lambda event: None, lambda ingestion: ingestion.drain(until))
    if isinstance(outcome.error, ServiceUnavailable):
        raise outcome.error
    problem = str(outcome.error) if outcome.error else outcome.total.waiting
    had_moves = last.window(ledger.KEYS_MOVED) is not None or (last.keys is not None and last.keys.until > 0)
    if isinstance(outcome.error, KeysMoved) and had_moves:
        problem = (
            "keys changed their partition, and an operator decided up to which records their timestamps say which is newer "
            "(keys-moved); one batch of all records cannot distinguish them from later ones"
        )
    if problem or outcome.total.stopped:
        return _not_replayed(pipeline, problem or "it was interrupted")
    key = identifier_fields(job.iceberg.schema_json(table))
    # Declared later, the last three are null in earlier rows.
    ignored = {INGESTED_AT.name, DELETED_AT.name, _HEADERS, *added_columns(pipeline.envelope)}
    fresh = job.spark.table(f"{here.iceberg.name}.{pipeline.table.identifier}")
    columns = {field["name"] for field in job.iceberg.schema_json(table)["fields"]} | ignored
    try:
        with explained(f"table {pipeline.table.identifier}", stopping=job.stopping, redact=job.redact):
            if problem := _retyped(held, fresh, key, ignored):
                return _not_replayed(pipeline, problem)
            compared = _compared(held, fresh, key, ignored)
            found = _result(pipeline, compared, outcome.total.read)
            if found.findings and _may_be_compacted_away(pipeline, job, found, bool(outcome.total.rejected)):
                return _not_replayed(pipeline, _COMPACTED)
            return replace(found, findings=(*found.findings, *_dropped(pipeline, columns, fresh)))
    except (Cancelled, MemoryError, SparkFailed) as error:
        return _not_replayed(pipeline, str(error))


_WIDER = ({T.IntegerType, T.LongType}, {T.FloatType, T.DoubleType}, {T.IntegerType, T.DoubleType})
_OF_HELD = (Flaw.ROW_LEFT, Flaw.ROW_DIFFERS)
_COMPACTED = (
    "the topic is compacted. A row can be of an earlier record of its key, which may be gone: the last one was rejected, is late "
    "in the declared order, or has another value of the declared key"
)


def _may_be_compacted_away(pipeline: Pipeline, job: JobContext, found: Replayed, has_rejected: bool) -> bool:
    """Return whether the flaws may come from records that compaction removed, which the table's rows are made of."""
    is_any = bool(pipeline.write.order_columns) or pipeline.write.key is not None
    may_be = is_any or (has_rejected and any(one.flaw in _OF_HELD for one in found.findings))
    return may_be and job.kafka.topic(pipeline.topic.name).compacted


def _decided(job: JobContext, table: Java, last: Entry) -> str:
    """Return the decision since which the rows are not all that the topic comes to; empty if none is known."""
    for snapshot in lineage(job.iceberg, table, last.snapshot_id):
        event = of(snapshot).event
        if event in _KEEP_ROWS and snapshot.summary().get(ledger.PIPELINE) == last.summary[ledger.PIPELINE]:
            return event
    if last.keys is not None and last.keys.removed:
        return ledger.ROWS_DELETED
    return "topic-recreated or log-truncated" if last.totals is not None and last.totals.closed else ""


def _named_now(rows: DataFrame, then: Java, table: Java) -> DataFrame:
    """Return the rows, whose names are those of the schema `then`, with the names that the table has now."""
    now = {int(field.fieldId()): str(field.name()) for field in items(table.schema().columns())}
    was = {int(field.fieldId()): str(field.name()) for field in items(then.columns())}
    return rows.select(*(rows[quoted_part(name)].alias(now[number]) for number, name in was.items() if number in now))


def _retyped(held: DataFrame, fresh: DataFrame, key: Sequence[str], ignored: Collection[str]) -> str:
    """Return which column all registered versions make a union, another type or name, which the table was made without."""
    there = {field.name: field.dataType for field in held.schema.fields}
    if renamed := set(key) - set(fresh.columns):
        return f"the table's key has the column {min(renamed)}, and no version does"
    pairs = (held, fresh), (fresh, held)
    names = [sorted({*one.columns} - {*other.columns, *ignored}) for one, other in pairs]
    for one, other in product(*names):  # next to a partition field of its name, a column gets a hash
        if re.fullmatch(r"_[0-9a-f]{6,}", max(one, other, key=len).removeprefix(min(one, other, key=len))):
            return f"the table has the column {one}, which the versions that are registered now make {other}"
    if all(names):  # also a version that renames one, before a run has met it
        return f"the table has the column {names[0][0]}, and the versions that are registered now make {names[1][0]}"
    for field in fresh.schema.fields:
        of = there.get(field.name)
        if of is not None and _is_restructured(of, field.dataType):
            return (
                f"the column {field.name} is {of.simpleString()} in the table, and the versions that are registered now make it "
                f"{field.dataType.simpleString()}"
            )
    return ""


def _is_restructured(held: T.DataType, fresh: T.DataType) -> bool:
    """Return whether a structure is on one side only, or one of the same has lost or renamed a field."""
    match held, fresh:
        case T.StructType(), T.StructType():
            there = {field.name: field.dataType for field in fresh.fields}
            return any(of.name not in there or _is_restructured(of.dataType, there[of.name]) for of in held.fields)
        case T.ArrayType(), T.ArrayType():
            return _is_restructured(held.elementType, fresh.elementType)
        case T.MapType(), T.MapType():
            return _is_restructured(held.valueType, fresh.valueType)
    types = {type(held), type(fresh)}
    return len(types) > 1 and types not in _WIDER


def check_is_state(pipeline: Pipeline) -> None:
    """Raise `InvalidInput` for a pipeline whose table is no state."""
    if not pipeline.write.replaces_rows:
        raise InvalidInput(
            f"{pipeline.name} appends: its table is no state that a topic could be compared with",
            where="--replay",
            do="Verify it without --replay",
        )


def _lacks(pipeline: Pipeline, job: JobContext, end: Offsets) -> str:
    """Return why the topic is not all that the table is made of; empty if it is."""
    if not isinstance(pipeline.start, Earliest):
        return f"the pipeline starts at {pipeline.start.kind}"
    if pipeline.table.schema_evolution is not SchemaEvolution.WIDEN:
        return (
            f"with schema_evolution={pipeline.table.schema_evolution}, the order of records decides which are rejected"
        )
    if pipeline.is_change_data and pipeline.on_error is not ErrorMode.SUSPEND:
        return f"with on_error={pipeline.on_error}, batches decide which changes that omit values are rejected"
    topic = job.kafka.topic(pipeline.topic.name)
    if topic.topic_id != end.topic_id:
        return f"the topic {topic.name} is not the one that the table holds: it was created again"
    spans = job.kafka.offsets(topic.name, pipeline.isolation)
    if gone := [p for p in end.at if p not in spans or spans[p].stable < end.at[p]]:
        there = job.kafka.offsets(topic.name, Isolation.READ_UNCOMMITTED)
        if all(p in there and there[p].stable >= end.at[p] for p in gone):
            return (
                f"partition {gone[0]} of topic {topic.name} has an open transaction before offset {end.at[gone[0]]}: "
                "with read_committed, records behind it are read when it has ended"
            )
        return f"partition {gone[0]} of topic {topic.name} ends before offset {end.at[gone[0]]}"
    if topic.compacted and any(spans[p].stable > offset for p, offset in end.at.items()):
        return f"topic {topic.name} is compacted and has later records, for which earlier ones may be gone. Land them first"
    if begun := [p for p, offset in end.at.items() if offset and spans[p].earliest]:
        return f"partition {begun[0]} of topic {topic.name} begins at offset {spans[begun[0]].earliest}: retention removed records"
    return ""


def _on_this_machine(job: JobContext, environment: Environment, folder: Path) -> JobContext:
    """Return the job with a catalog in `folder`."""
    name = f"replay_{job.new_id()}"  # Spark remembers a catalog by its name
    local = LocalCatalog(path=str(folder / "catalog.db"), warehouse=str(folder / "warehouse"), name=name)
    options = spark_options(replace(environment, catalog=local, object_store=None), lambda secret: "")
    for option, value in options.items():
        if option.startswith(f"spark.sql.catalog.{name}"):
            job.spark.conf.set(option, value)
    return replace(job, iceberg=Iceberg(job.spark, name))


def _compared(held: DataFrame, again: DataFrame, key: Sequence[str], ignored: Collection[str]) -> DataFrame:
    """Return each key with a row in either table: where its records are, and the flaw, null if the rows are equal."""
    names = [name for name in held.columns if name not in ignored]
    rows_held, rows_again = _rows(held, names, key, _HELD, again.schema), _rows(again, names, key, _AGAIN, held.schema)
    both = rows_held.join(rows_again, [*key], "full_outer")
    of_held, of_again = F.col(_HELD), F.col(_AGAIN)
    flaw = F.when(of_held.isNull(), Flaw.ROW_ABSENT.value).when(of_again.isNull(), Flaw.ROW_LEFT.value)
    flaw = flaw.when(of_held["row"] != of_again["row"], Flaw.ROW_DIFFERS.value)
    place: list[Column] = [F.coalesce(of_again[name], of_held[name]).alias(name) for name in _PLACE]
    return both.select(flaw.alias("flaw"), *place)


def _rows(table: DataFrame, names: Sequence[str], key: Sequence[str], alias: str, other: T.StructType) -> DataFrame:
    """Return the key, and as one struct the place of its record and its row as JSON: a map cannot be compared otherwise.

    Values of the type `float` are as in the `other` table, if they are `double` there.
    """
    if DELETED_AT.name in table.columns:
        table = table.where(F.col(DELETED_AT.name).isNull())
    types = {field.name: field.dataType for field in other.fields}
    columns = [
        _by_name(F.col(name), table.schema[name].dataType, types.get(name)).alias(name)
        for name in names
        if name in table.columns
    ]
    row = F.to_json(F.struct(*columns), _TEXT)
    return table.select(*key, F.struct(*_PLACE, F.xxhash64(row).alias("row")).alias(alias))


def _by_name(column: Column, of: T.DataType, other: T.DataType | None) -> Column:
    """Return a value with the fields of its structs in the order of their names, and as wide as the `other` type."""
    match of, other:
        case T.FloatType(), T.DoubleType():
            return column.cast(other)
        case _ if not re.search("struct<|float", of.simpleString()):
            return column
        case T.StructType(), _:
            types = {f.name: f.dataType for f in other.fields} if isinstance(other, T.StructType) else {}
            fields = [
                _by_name(column[f.name], f.dataType, types.get(f.name)).alias(f.name)
                for f in sorted(of, key=lambda f: f.name)
            ]
            return F.when(column.isNotNull(), F.struct(*fields))
        case T.ArrayType(), _:
            element = other.elementType if isinstance(other, T.ArrayType) else None
            return F.transform(column, lambda value: _by_name(value, of.elementType, element))
        case T.MapType(), _:
            inner = other.valueType if isinstance(other, T.MapType) else None
            return F.transform_values(column, lambda _, value: _by_name(value, of.valueType, inner))
        case _:
            return column


def _shaped_otherwise(pipeline: Pipeline, job: JobContext, table: Java) -> str:
    """Return why rows of the table had another shape than a landing now gives them; empty if they had this one."""
    had = shapes(layout_of(job.iceberg, pipeline))
    if len(had) > 1 or had[-1] != to_json(pipeline.shape.of_rows):
        return "the declared shape of its rows was changed"
    types: dict[int, set[str]] = {}
    for schema in table.schemas().values() if had[-1] else ():
        for name in schema.idToName().values():
            field = schema.findField(name)
            if field.type().isPrimitiveType():
                types.setdefault(int(field.fieldId()), set()).add(str(field.type()))
    if any(len(kinds) > 1 for kinds in types.values()):
        return "a column was widened, and an expression may have had another answer in the narrower type"
    return ""


def _dropped(pipeline: Pipeline, held: Collection[str], again: DataFrame) -> list[Finding]:
    """Return the columns with values that the table has no more."""
    lacking = [name for name in again.columns if name not in held]
    counts = again.agg(*(F.count(name).alias(name) for name in lacking)).first() if lacking else None
    dropped = [name for name in lacking if counts is not None and counts[name]]
    if not dropped:
        return []
    what = f"the table lacks columns that its topic has values of: {', '.join(dropped)}"
    return [Finding(flaw=Flaw.ROW_DIFFERS, where=f"table {pipeline.table.identifier}", what=what)]


def _result(pipeline: Pipeline, compared: DataFrame, records: int) -> Replayed:
    compared = compared.persist()
    try:
        counts = {row["flaw"]: int(row["count"]) for row in compared.groupBy("flaw").count().collect()}
        findings = []
        for flaw, what in _WHAT.items():
            if number := counts.get(flaw.value, 0):
                some = compared.where(F.col("flaw") == flaw.value).orderBy(*_PLACE).limit(EXAMPLES).collect()
                where = ", ".join(f"partition {row[_PLACE[0]]} offset {row[_PLACE[1]]}" for row in some)
                text = f"{what.format(number)}: records at {where}{' and others' if number > len(some) else ''}"
                findings.append(Finding(flaw=flaw, where=f"table {pipeline.table.identifier}", what=text, count=number))
    finally:
        compared.unpersist()
    rows = sum(counts.values()) - counts.get(Flaw.ROW_LEFT.value, 0)
    return Replayed(records=records, rows=rows, findings=tuple(findings))


def _not_replayed(pipeline: Pipeline, why: str) -> Replayed:
    where, what = f"table {pipeline.table.identifier}", f"it was not replayed: {why}"
    return Replayed(findings=(Finding(flaw=Flaw.NOT_REPLAYED, where=where, what=what),))
