"""What every envelope must do: one suite, with a `Case` for each form of its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.decode.spark_types import spark_struct
from frazil.envelopes.envelope import Envelope, Operation
from frazil.schemas.evolution.merge import merge
from frazil.schemas.types import Field, Kind, Primitive, Struct


@dataclass(frozen=True, kw_only=True)
class Event:
    """A record as Python values by the names of the source, and the change that it is."""

    record: Mapping[str, Any] | None
    operation: Operation | None
    after: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] | None = None
    time: datetime | None = None
    kind: str | None = None
    unavailable: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Case:
    """An envelope, the type of its records, the columns of a row, and events.

    Each operation that the envelope `knows` of these records occurs; None: one of the source that it does not know.
    """

    envelope: Envelope
    record: Struct
    columns: tuple[str, ...]
    events: Sequence[Event]
    knows: frozenset[Operation | None] = frozenset({Operation.WRITE, Operation.DELETE, None})


def check_row(case: Case) -> None:
    """Check that the row is what is said, and that equal types are unwrapped alike."""
    form, again = case.envelope.unwrapped(case.record), case.envelope.unwrapped(case.record)
    assert tuple(column.source for column in form.row.fields) == case.columns
    assert (form, hash(form)) == (again, hash(again))


def check_record(envelope: Envelope, row: Struct, *marks: Field) -> None:
    """Check that records of declared rows are unwrapped to them, with or without the fields that say what an event does."""
    assert envelope.unwrapped(envelope.record(row)).row == row
    for mark in marks:
        flat = envelope.unwrapped(envelope.record(Struct((*row.fields, mark))))
        assert (flat.row, flat.decoded(row).fields[-1].required) == (row, True)


def check_changes(case: Case, spark: SparkSession) -> None:
    """Check each event, in a table of these columns and another one that the record lacks; and a record that was not decoded."""
    form = case.envelope.unwrapped(case.record)
    merged = merge([(1, form.row)]).type
    target = Struct((*merged.fields, Field("of_another_version", Primitive(Kind.STRING))))
    decoded = form.decoded(target)
    events = [*case.events, Event(record=None, operation=None)]
    rows = [(number, _projected(event.record, decoded)) for number, event in enumerate(events)]
    schema = T.StructType([T.StructField("number", T.IntegerType()), T.StructField("record", spark_struct(decoded))])
    change = form.change(F.col("record"), target)
    assert change.after.keys() | change.about.keys() <= {column.name for column in target.fields}
    assert not (change.order and change.unavailable), "a value that is left out is that of the change before, by offset"
    found = spark.createDataFrame(rows, schema).select(
        "number",
        change.operation.cast("string").alias("operation"),
        F.struct(*(value.alias(name) for name, value in {**change.after, "": F.lit(1)}.items())).alias("after"),
        F.struct(*(value.alias(name) for name, value in {**change.about, "": F.lit(1)}.items())).alias("about"),
        F.struct(*(value.alias(name) for name, value in {**change.unavailable, "": F.lit(1)}.items())).alias(
            "unavailable"
        ),
        (F.lit(None) if change.before is None else change.before).alias("before"),
        (F.lit(None) if change.kind is None else change.kind).cast("string").alias("kind"),
        F.to_utc_timestamp((F.lit(None) if change.time is None else change.time).cast("timestamp"), "UTC").alias(
            "time"
        ),
    )
    for event, row in zip(events, found.orderBy("number").collect(), strict=True):
        if event.record is None:
            continue  # it must not fail, and what it says is not asked
        assert row["operation"] == event.operation, event
        about = row["about"].asDict(recursive=True)
        assert {name: about[name] for name in event.about} == dict(event.about), event
        before = row["before"].asDict(recursive=True) if row["before"] is not None else None
        assert event.operation not in (Operation.WRITE, Operation.DELETE) or before == event.before, event
        if event.operation is Operation.WRITE:
            after = row["after"].asDict(recursive=True)
            assert {name: after[name] for name in event.after} == dict(event.after), event
            assert after.get("of_another_version") is None
            assert event.kind in (None, row["kind"]), event
            marks = row["unavailable"].asDict()
            assert {name for name, is_it in marks.items() if name and is_it} == event.unavailable, event
        if event.time is not None:
            assert row["time"] == event.time.replace(tzinfo=None), event


def check_operations(case: Case) -> None:
    """Check that the events show each operation that the envelope knows, and no other."""
    assert {event.operation for event in case.events} == case.knows


def _projected(value: Mapping[str, Any] | None, of: Struct) -> dict[str, Any] | None:
    """Return the fields that a record is decoded into, by the names of the columns."""
    if value is None:
        return None
    return {
        f.name: _projected(value.get(f.source), f.type) if isinstance(f.type, Struct) else value.get(f.source)
        for f in of.fields
    }
