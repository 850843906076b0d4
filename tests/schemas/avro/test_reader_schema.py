from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from frazil.errors import IncompatibleSchema
from frazil.schemas import avro
from frazil.schemas.avro.reader_schema import DECODED
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.types import Field, Kind, MapOf, Primitive, Struct
from tests.schemas.avro.schemas import SCHEMAS, body, nameless, read


def parsed(tree: Any) -> avro.AvroSchema:
    return avro.parse(json.dumps(tree))


def reader(tree: Any, *others: Any) -> avro.Reader:
    rows = [(i, avro.row_type(parsed(t))) for i, t in enumerate([*others, tree])]
    return avro.reader(parsed(tree), landing(Struct(()), rows).target)


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def types(schema: str) -> dict[str, Any]:
    return {f["name"]: f["type"] for f in json.loads(schema)["fields"]}


def test_the_reader_has_the_targets_columns_in_their_order_and_then_the_mark() -> None:
    found = reader(record(("B", "int"), ("A", "string")), record(("A", "string"), ("new", "int")))
    assert list(types(found.reader)) == ["a", "new", "b", DECODED]
    assert list(types(found.writer)) == ["b", "a"]
    assert found.conforms


def test_what_the_writer_always_has_is_not_wrapped_in_a_union() -> None:
    assert types(reader(record(("a", "int"), ("b", ["null", "int"]), ("c", ["int", "null"]))).reader) == {
        "a": "int", "b": ["null", "int"], "c": ["int", "null"], DECODED: "boolean",
    }  # fmt: skip


def test_what_the_writer_lacks_is_null() -> None:
    found = json.loads(reader(record(("a", "int")), record(("b", {"type": "array", "items": "long"}))).reader)
    assert found["fields"][0] == {"name": "b", "type": ["null", {"type": "array", "items": "long"}], "default": None}


def test_the_mark_is_true_by_default_and_last() -> None:
    assert json.loads(reader(record()).reader)["fields"] == [{"name": DECODED, "type": "boolean", "default": True}]


def test_what_remains_to_be_done_is_told_by_what_is_yielded() -> None:
    found = reader(record(("e", record(name="Empty")), ("x", "int")))
    assert found.yields == Struct((Field("e", Struct(()), as_json=True), Field("x", Primitive(Kind.INT))))
    assert not found.conforms


def test_text_that_a_writer_lacks_is_text_already() -> None:
    found = reader(record(("x", "int")), record(("x", "int"), ("e", record(name="Empty"))))
    assert not found.yields.fields[1].as_json
    assert found.conforms


def test_a_name_that_avro_refuses_stands_in_by_another() -> None:
    target = Struct((Field("a.b", Primitive(Kind.INT), source="a"), Field("column0", Primitive(Kind.INT))))
    found = avro.reader(parsed(record(("a", "int"))), target)
    assert [f.name for f in found.yields.fields] == ["column1", "column0"]
    assert not found.conforms


@pytest.mark.parametrize(
    ("tree", "column"),
    [
        ("int", Primitive(Kind.STRING)),
        ("long", Primitive(Kind.INT)),
        ("int", Struct((Field("a", Primitive(Kind.INT)),))),
        (["int", "string"], Primitive(Kind.INT)),
        (["int", "string"], Struct((Field("member_int", Primitive(Kind.INT)),))),
        ({"type": "array", "items": "int"}, MapOf(Primitive(Kind.STRING), Primitive(Kind.INT))),
        (record(("a", "int"), name="In"), Primitive(Kind.STRING)),
    ],
)
def test_a_writer_that_does_not_fit_its_column_is_refused(tree: Any, column: Any) -> None:
    with pytest.raises(IncompatibleSchema, match="^x"):
        avro.reader(parsed(record(("x", tree))), Struct((Field("x", column),)))


def test_a_type_that_is_called_like_a_primitive_is_told_from_it() -> None:
    found = reader(record(("u", [record(("a", "int"), name="String"), "string", record(("a", "int"), name="branch0")])))
    members = found.yields.fields[0].type
    assert isinstance(members, Struct)
    assert len({f.name for f in members.fields}) == 3
    assert members.fields[1].name == "member_string"


@settings(deadline=None)
@given(SCHEMAS, st.randoms(use_true_random=False))
def test_the_writer_anew_reads_the_bytes_as_they_were_written(tree: Any, random: Random) -> None:
    written = body(tree, random)
    anew = json.loads(reader(tree).writer)
    assert nameless(read(written, anew)) == nameless(read(written, _without_logical_types(tree)))


@pytest.mark.long
@settings(deadline=None)
@given(SCHEMAS, SCHEMAS, st.randoms(use_true_random=False))
@example(  # a column that holds a union of one version and a record of the other, whose fields have one type
    record(
        ("a_b", {"type": "map", "values": [record(("n", "int"), name="N"), record(name="O"), "int"]}), ("Id", "boolean")
    ),
    record(
        ("A_B", "boolean"),
        ("a_b", {"type": "map", "values": record(("id", "boolean"), ("Id", "boolean"), name="T")}),
        name="T0",
    ),
    Random(0),
)
@example(
    record(
        ("a_b", {"type": "map", "values": ["R", record(name="O")]}),
        ("id", {"type": "array", "items": "R"}),
        ("Id", "boolean"),
    ),
    record(
        ("A_B", "boolean"),
        ("a_b", {"type": "map", "values": record(("id", "boolean"), ("Id", "boolean"), name="T")}),
        name="T0",
    ),
    Random(1),
)
def test_a_record_is_read_into_every_target_that_its_version_is_part_of(
    first: Any, second: Any, random: Random
) -> None:
    versions = [(i, avro.row_type(parsed(tree))) for i, tree in enumerate((first, second))]
    plan = landing(Struct(()), versions)
    for schema_id, tree in enumerate((first, second)):
        if schema_id in plan.incompatible:
            continue
        found = avro.reader(parsed(tree), plan.target)
        written = body(tree, random)
        row = read(written, json.loads(found.writer), json.loads(found.reader))
        assert row.pop(DECODED) is True
        assert set(row) == {f.name for f in found.yields.fields}
        columns = {f.source: f.name for f in plan.target.fields}
        for name, value in read(written, tree).items():
            if isinstance(value, int | str | bytes | float | bool) and name in columns:
                assert row[columns[name]] == value


def _without_logical_types(tree: Any) -> Any:
    match tree:
        case dict():
            return {key: _without_logical_types(value) for key, value in tree.items() if key != "logicalType"}
        case list():
            return [_without_logical_types(inner) for inner in tree]
    return tree
