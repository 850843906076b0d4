"""Debezium's events by the suite of all envelopes, and what is no change of a row."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from pyspark.sql import SparkSession

from frazil.declaration import Debezium
from frazil.envelopes.debezium import DebeziumEvents
from frazil.envelopes.envelope import Operation
from frazil.errors import InvalidInput
from frazil.schemas.types import Field, Kind, Primitive, Struct, Type
from tests.envelopes.conformance import Case, Event, check_changes, check_operations, check_record, check_row

TEXT, LONG = Primitive(Kind.STRING), Primitive(Kind.LONG)
ROW = Struct((Field("id", LONG), Field("Name", TEXT)))
SOURCE = Struct((Field("connector", TEXT), Field("ts_ms", LONG), Field("txId", LONG)))
PLACE = {"connector": "postgresql", "ts_ms": 1_795_337_513_714, "txId": 7}
AT = datetime(2026, 11, 22, 8, 51, 53, 714000)
GONE = "__debezium_unavailable_value"
PLAIN = Struct(
    (
        Field("before", ROW),
        Field("after", ROW),
        Field("source", SOURCE),
        Field("transaction", Struct((Field("id", TEXT),))),
        Field("op", TEXT),
        Field("ts_ms", LONG),
    )
)
FLAT = Struct((*ROW.fields, Field("__deleted", TEXT), Field("__op", TEXT), Field("__source_ts_ms", LONG)))
ANN, EVE = {"id": 1, "Name": "ann"}, {"id": 1, "name": "ann"}


def event(op: str | None, after: dict | None = None, **more) -> dict:
    return {"before": {"id": 1, "Name": ""}, "after": after, "source": PLACE, "op": op, "ts_ms": 9, **more}


KNOWN = frozenset({*Operation, None}) - {Operation.LACKS_BEFORE}
OTHERS = (Event(record=event("t"), operation=Operation.TRUNCATE), Event(record=event("m"), operation=Operation.NOTHING))
WRITE = {"operation": Operation.WRITE, "after": EVE, "time": AT}
CASES = {
    "plain": Case(
        envelope=DebeziumEvents(Debezium()),
        record=PLAIN,
        columns=("id", "Name"),
        events=(
            *(Event(record=event(op, ANN), kind=op, **WRITE) for op in "rcu"),
            Event(
                record=event("u", {"id": 1, "Name": GONE}), operation=Operation.WRITE, unavailable=frozenset({"name"})
            ),
            Event(record=event("d"), operation=Operation.DELETE, time=AT),
            Event(record=event("t"), operation=Operation.TRUNCATE, time=AT),
            Event(record=event("m"), operation=Operation.NOTHING),
            Event(record=event("x", ANN), operation=None),
            Event(record=event("C", ANN), operation=None),
            Event(record=event(None, ANN), operation=None),
            Event(record=event("c"), operation=None),
            Event(record=event("c", ANN, source=None), operation=Operation.WRITE, after=EVE),
            Event(record=event("d", source={"ts_ms": 2**63 - 1}), operation=Operation.DELETE),
        ),
        knows=KNOWN,
    ),
    "with the columns that it can add": Case(
        envelope=DebeziumEvents(Debezium(operation_column=True, source_column=True)),
        record=PLAIN,
        columns=("id", "Name", "_op", "_source"),
        events=(
            Event(
                record=event("u", ANN),
                about={"_op": "u", "_source": {"connector": "postgresql", "ts_ms": PLACE["ts_ms"], "txid": 7}},
                **WRITE,
            ),
            Event(record=event("d"), operation=Operation.DELETE, about={"_op": "d"}, time=AT),
            Event(record=event("c", ANN, source=None), operation=Operation.WRITE, about={"_op": "c", "_source": None}),
            Event(record=event("?"), operation=None),
            *OTHERS,
        ),
        knows=KNOWN,
    ),
    "with the row before": Case(
        envelope=DebeziumEvents(Debezium(replica_identity="full")),
        record=PLAIN,
        columns=("id", "Name", "_before"),
        events=(
            Event(record=event("u", ANN, before={"id": 1, "Name": None}), before={"id": 1, "name": None}, **WRITE),
            Event(record=event("d", before=ANN), operation=Operation.DELETE, before=EVE),
            Event(record=event("c", ANN), **WRITE),
            Event(record=event("t"), operation=Operation.TRUNCATE),
            Event(record=event("u", ANN, before=None), operation=Operation.LACKS_BEFORE),
            Event(record=event("u", ANN, before={"id": 1, "Name": GONE}), operation=Operation.LACKS_BEFORE),
            Event(record=event("d", before=None), operation=Operation.LACKS_BEFORE),
            Event(record=event("u", before=None), operation=None),
            Event(record=event("m"), operation=Operation.NOTHING),
        ),
        knows=frozenset({*Operation, None}),
    ),
    "another placeholder": Case(
        envelope=DebeziumEvents(Debezium(unavailable_value="?é")),
        record=PLAIN,
        columns=("id", "Name"),
        events=(
            Event(
                record=event("u", {"id": 1, "Name": "?é"}), operation=Operation.WRITE, unavailable=frozenset({"name"})
            ),
            Event(record=event("u", {"id": 1, "Name": GONE}), operation=Operation.WRITE, after={"name": GONE}),
            Event(record=event("d"), operation=Operation.DELETE),
            Event(record=event("?"), operation=None),
            *OTHERS,
        ),
        knows=KNOWN,
    ),
    "flattened": Case(
        envelope=DebeziumEvents(Debezium()),
        record=FLAT,
        columns=("id", "Name", "__source_ts_ms"),
        events=(
            Event(record={**ANN, "__deleted": "false", "__op": "c", "__source_ts_ms": PLACE["ts_ms"]}, **WRITE),
            Event(record={**ANN, "__op": "d", "__source_ts_ms": PLACE["ts_ms"]}, operation=Operation.DELETE, time=AT),
            Event(record={**ANN, "__deleted": "true", "__op": "u"}, operation=Operation.DELETE),
            Event(record={"id": 1, "Name": GONE}, operation=Operation.WRITE, unavailable=frozenset({"name"})),
            Event(record={**ANN, "__op": "x"}, operation=None),
            Event(record={**ANN, "__op": "t"}, operation=Operation.TRUNCATE),
            Event(record={**ANN, "__op": "m"}, operation=Operation.NOTHING),
        ),
        knows=KNOWN,
    ),
    "flattened, by tombstones alone": Case(
        envelope=DebeziumEvents(Debezium()),
        record=ROW,
        columns=("id", "Name"),
        events=(Event(record=ANN, operation=Operation.WRITE, after=EVE),),
        knows=frozenset({Operation.WRITE}),
    ),
    "flattened, with the operation": Case(
        envelope=DebeziumEvents(Debezium(operation_column=True)),
        record=FLAT,
        columns=("id", "Name", "__source_ts_ms", "_op"),
        events=(
            Event(record={**ANN, "__op": "u"}, operation=Operation.WRITE, kind="u", after=EVE, about={"_op": "u"}),
            Event(record={**ANN, "__op": "d"}, operation=Operation.DELETE, about={"_op": "d"}),
            Event(record={**ANN, "__op": "?"}, operation=None),
            Event(record={**ANN, "__op": "t"}, operation=Operation.TRUNCATE),
            Event(record={**ANN, "__op": "m"}, operation=Operation.NOTHING),
        ),
        knows=KNOWN,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_type_of_a_record_says_what_its_row_is(case: Case) -> None:
    check_row(case)
    check_operations(case)


def test_a_declared_row_says_what_its_records_are() -> None:
    check_record(DebeziumEvents(Debezium()), ROW, Field("__op", TEXT), Field("__deleted", Primitive(Kind.BOOLEAN)))


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_event_is_the_change_that_it_says(case: Case, spark: SparkSession) -> None:
    check_changes(case, spark)


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("schema changes", ("source", "ts_ms", "databaseName", "schemaName", "ddl", "tableChanges")),
        ("transactions", ("status", "id", "event_count", "data_collections", "ts_ms")),
        ("heartbeats", ("ts_ms",)),
        ("logical decoding messages", ("op", "ts_ms", "source", "message")),
    ],
)
def test_other_topics_of_a_connector_are_refused(what: str, names: tuple[str, ...]) -> None:
    structs = {"source": SOURCE, "message": Struct((Field("prefix", TEXT), Field("content", Primitive(Kind.BINARY))))}
    fields = [Field(name, structs.get(name, LONG if name == "ts_ms" else TEXT)) for name in names]
    with pytest.raises(InvalidInput, match=what) as refused:
        DebeziumEvents(Debezium()).unwrapped(Struct(tuple(fields)))
    assert "PREFIX.SCHEMA.TABLE" in refused.value.do


@pytest.mark.parametrize(
    ("name", "of"), [("source", SOURCE), ("before", ROW)], ids=["rows as text, as MongoDB's", "without a source"]
)
def test_events_of_another_form_are_refused(name: str, of: Type) -> None:
    """Taken as flattened ones, their deletes would be rows."""
    fields = (Field("op", TEXT), Field("ts_ms", LONG), Field("after", TEXT), Field(name, of))
    with pytest.raises(InvalidInput, match="not the form that Debezium gives"):
        DebeziumEvents(Debezium()).unwrapped(Struct(fields))


def test_a_row_may_have_fields_of_these_names() -> None:
    row = Struct((*(Field(name, TEXT) for name in ("after", "op", "source", "message", "ddl")), Field("ts_ms", LONG)))
    assert DebeziumEvents(Debezium()).unwrapped(row).row == row


def test_columns_that_events_cannot_fill_are_refused() -> None:
    for declared in (Debezium(source_column=True), Debezium(operation_column=True), Debezium(replica_identity="full")):
        with pytest.raises(InvalidInput, match="flattened events do not have"):
            DebeziumEvents(declared).unwrapped(ROW)
    without = Struct(tuple(field for field in PLAIN.fields if field.name != "before"))
    with pytest.raises(InvalidInput, match="do not have the row before"):
        DebeziumEvents(Debezium(replica_identity="full")).unwrapped(without)


@pytest.mark.parametrize("name", ["_op", "_source", "_before"])
def test_a_column_of_the_source_is_not_replaced(name: str) -> None:
    row = Struct((*ROW.fields, Field(name, TEXT)))
    record = Struct(tuple(replace(f, type=row) if f.name in {"before", "after"} else f for f in PLAIN.fields))
    assert DebeziumEvents(Debezium()).unwrapped(record).row == row
    every = Debezium(operation_column=True, source_column=True, replica_identity="full")
    with pytest.raises(InvalidInput, match=f"has a column {name} itself"):
        DebeziumEvents(every).unwrapped(record)
