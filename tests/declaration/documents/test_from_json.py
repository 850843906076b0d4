from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from frazil.declaration import At, InvalidDeclaration, Offsets, Pipeline
from frazil.declaration.documents.from_json import from_json, members, parsed
from tests.declaration.problems_of import problems_of
from tests.declaration.strategies import json_values

ORDERS: dict[str, Any] = {
    "topic": {"name": "orders", "value": {"type": "avro"}},
    "table": {"identifier": "shop.orders"},
}


def pipeline_with(part: str, **members: Any) -> dict[str, Any]:
    return ORDERS | {part: ORDERS.get(part, {}) | members}


def top(**members: Any) -> dict[str, Any]:
    return ORDERS | members


@pytest.mark.parametrize(
    ("value", "path", "told"),
    [
        ([], "p", "this is a list. Write an object of the fields topic, table, name, write"),
        (ORDERS | {"topic": None}, "p.topic", "this is nothing. Write an object of the fields name, value, key"),
        ({"table": ORDERS["table"]}, "p.topic", "the field is missing. Write an object"),
        (ORDERS | {"tabel": 1}, "p.tabel", "there is no such field. Did you mean table?"),
        (ORDERS | {"zzz": 1}, "p.zzz", "there is no such field. Remove it; the fields are topic, table, name, write"),
        (top(headers="true"), "p.headers", "'true' is text. Write true or false"),
        (
            pipeline_with("topic", value={"type": "Avro"}),
            "p.topic.value.type",
            "'Avro' is not one of its values",
        ),
        (pipeline_with("topic", value="avro"), "p.topic.value", "this is text. Write an object with a type: avro"),
        (pipeline_with("topic", name=["a"]), "p.topic.name", "this is a list. Write text"),
        (
            top(kafka={"options": {"client.rack": 1}}),
            "p.kafka.options['client.rack']",
            "1 is a number",
        ),
        (top(kafka={"options": []}), "p.kafka.options", "this is a list. Write an object"),
        (
            pipeline_with("table", snapshots={"days": 1.0}),
            "p.table.snapshots.days",
            "1.0 is a number with a point. Write a whole number",
        ),
        (
            pipeline_with("table", snapshots={"newest": True}),
            "p.table.snapshots.newest",
            "true is a boolean. Write a whole number",
        ),
        (pipeline_with("table", snapshots={"newest": 0}), "p.table.snapshots.newest", "0 is out of bounds"),
        (pipeline_with("table", partition_by="x"), "p.table.partition_by", "'x' is text. Write a list"),
        (pipeline_with("table", partition_by=["x", "x"]), "p.table.partition_by[1]", "x is given twice"),
        (top(start={}), "p.start.type", "the field is missing. Write one of earliest, latest"),
        (top(start={"type": "last"}), "p.start.type", "'last' is not one of its values"),
        (top(start={"type": "latest", "x": 1}), "p.start.x", "there is no such field"),
        (
            top(engine={"type": "spark", "limits": {"max_rows": 5}}),
            "p.engine.limits.first_rows",
            "it is more than max_rows, 5",
        ),
        (
            top(write={"type": "merge"}),
            "p.write.type",
            "'merge' is not one of its values in this release. Write one of append, upsert",
        ),
        (top(write={"type": "append", "on_tombstone": "x"}), "p.write.on_tombstone", "'x' is not one of its values"),
        (ORDERS | {"name": "Orders"}, "p.name", "'Orders' is not a pipeline's name"),
    ],
)
def test_what_does_not_fit_is_told_with_its_path_and_never_coerced(value, path, told):
    found = problems_of(lambda: from_json(Pipeline, value, "p"))
    assert list(found) == [path]
    assert found[path].startswith(told)


@pytest.mark.parametrize(
    "text", ["2026-01-31", "2026-01-31T00:00:00", "20260131T000000Z", "2026-02-30T00:00:00Z", "now", ""]
)
def test_an_instant_is_complete_or_refused(text):
    assert list(problems_of(lambda: from_json(At, {"timestamp": text}, "p"))) == ["p.timestamp"]


def test_an_instant_may_be_written_in_any_zone():
    assert from_json(At, {"timestamp": "2026-01-31T02:00:00+02:00"}, "p") == At(datetime(2026, 1, 31, tzinfo=UTC))


@pytest.mark.parametrize("name", ["a\nb", "", "a b", "x" * 200, "\x1b[31m", "a.b[0]"])
def test_an_odd_name_of_a_field_does_not_spoil_the_path(name):
    (path,) = problems_of(lambda: from_json(Pipeline, ORDERS | {name: 1}, "p"))
    assert path.isprintable()
    assert len(path) < 100


@pytest.mark.parametrize("key", ["x", "-1", "01", "1.0", "", "٣", 1])
def test_a_partition_is_a_whole_number_in_quotes(key):
    found = problems_of(lambda: from_json(Offsets, {"offsets": {key: 1}}, "p"))
    assert list(found) == [f"p.offsets[{key!r}]"]


def test_a_document_is_an_object_that_has_a_version():
    assert "the field is missing" in problems_of(lambda: members({}, "document"))["version"]
    assert problems_of(lambda: members(b"[]", "document")) == {"document": "this is a list. Write a JSON object"}
    assert members(b'{"version": 1, "$schema": "x", "a": 2}', "document") == {"a": 2}


@given(json_values, json_values, json_values)
def test_whatever_is_read_is_valid_or_refused_as_a_declaration(whole, topic, table):
    for value in (whole, {"topic": topic, "table": table}, ORDERS | {"limits": whole, "name": topic}):
        with suppress(InvalidDeclaration):
            assert isinstance(from_json(Pipeline, value, "p"), Pipeline)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"\xff\xfe{\x00", "byte 0 is not UTF-8"),
        (b'{"a":', "this is not JSON: Expecting value at line 1, column 6"),
        (b"", "this is not JSON: Expecting value at line 1, column 1"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a": ' * 5_000 + b"1" + b"}" * 5_000, "nested too deep"),
        (b'{"a": ' * 401 + b"1" + b"}" * 401, "nested too deep"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "a number has 5000 digits"),
        (b'{"b": {"a": 1, "a": 1}}', "the field 'a' appears twice in one object"),
        (b'\xef\xbb\xbf{"a": 1}', "this is not JSON"),
    ],
)
def test_what_is_not_json_or_ambiguous_is_refused_with_its_place(text, told):
    assert told in problems_of(lambda: parsed(text, "orders.json"))["orders.json"]
