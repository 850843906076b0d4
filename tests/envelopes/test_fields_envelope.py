"""Records with fields for operation, key and order, by the suite of all envelopes: what it asks of envelopes beside Debezium's."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from frazil.envelopes.envelope import Operation
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.envelopes.conformance import Case, Event, check_changes, check_operations, check_row
from tests.envelopes.fields_envelope import Fields, FieldsEvents

TEXT, LONG = Primitive(Kind.STRING), Primitive(Kind.LONG)
RECORD = Struct((Field("op", TEXT), Field("Shop", TEXT), Field("id", LONG), Field("seq", LONG), Field("name", TEXT)))
COLUMNS = ("Shop", "id", "seq", "name")


def record(op: str | None, name: str | None = None) -> dict[str, object]:
    return {"op": op, "Shop": "s", "id": 1, "seq": 7, "name": name}


KEY, ORDER = {"shop": "s", "id": 1}, {"seq": 7}
CASES = {
    "with key and order": Case(
        envelope=FieldsEvents(Fields(operation="op", key=("Shop", "id"), order=("seq",))),
        record=RECORD,
        columns=COLUMNS,
        events=(
            Event(
                record=record("insert", "ann"), operation=Operation.WRITE, after={"name": "ann"}, key=KEY, order=ORDER
            ),
            Event(record=record("update", None), operation=Operation.WRITE, after={"name": None}, key=KEY, order=ORDER),
            Event(record=record("delete"), operation=Operation.DELETE, key=KEY, order=ORDER),
            Event(record=record("truncate"), operation=Operation.TRUNCATE),
            Event(record=record("ping"), operation=Operation.NOTHING),
            Event(record=record("merge"), operation=None),
            Event(record=record(None), operation=None),
        ),
        knows=frozenset({*Operation, None}) - {Operation.LACKS_BEFORE},
    ),
    "without them": Case(
        envelope=FieldsEvents(Fields(operation="op")),
        record=RECORD,
        columns=COLUMNS,
        events=(
            Event(record=record("insert", "ann"), operation=Operation.WRITE, after={"seq": 7, "name": "ann"}),
            Event(record=record("delete"), operation=Operation.DELETE),
            Event(record=record("truncate"), operation=Operation.TRUNCATE),
            Event(record=record("ping"), operation=Operation.NOTHING),
            Event(record=record("merge"), operation=None),
        ),
        knows=frozenset({*Operation, None}) - {Operation.LACKS_BEFORE},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_type_of_a_record_says_what_its_row_is(case: Case) -> None:
    check_row(case)
    check_operations(case)


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_event_is_the_change_that_it_says(case: Case, spark: SparkSession) -> None:
    check_changes(case, spark)


def test_a_case_that_shows_less_than_the_envelope_knows_is_found() -> None:
    case = CASES["with key and order"]
    for left_out in case.knows:
        events = tuple(event for event in case.events if event.operation is not left_out)
        less = Case(envelope=case.envelope, record=RECORD, columns=COLUMNS, events=events, knows=case.knows)
        with pytest.raises(AssertionError):
            check_operations(less)
