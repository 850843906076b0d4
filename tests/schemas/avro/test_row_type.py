from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from frazil.errors import UnreadableSchema
from frazil.schemas import avro
from frazil.schemas.avro.row_type import FIELD_LIMIT
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.schemas.avro.schemas import SCHEMAS


def row(tree: Any) -> Struct:
    return avro.row_type(avro.parse(json.dumps(tree)))


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def test_names_docs_and_aliases_are_the_sources() -> None:
    tree = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "Amount", "type": ["null", "int"], "doc": "in cents", "aliases": ["Total"]}],
    }
    assert row(tree) == Struct(
        (Field("Amount", Primitive(Kind.INT), doc="in cents", source="Amount", aliases=("Total",)),)
    )


def test_what_may_be_null_is_not_required() -> None:
    tree = record(
        ("a", "int"),
        ("b", ["int", "null"]),
        ("c", {"type": "array", "items": ["null", "int"]}),
        ("d", {"type": "map", "values": "int"}),
    )
    a, b, c, d = row(tree).fields
    assert (a.required, b.required, c.required, d.required) == (True, False, True, True)
    assert not c.type.element_required  # type: ignore[union-attr]
    assert d.type.value_required  # type: ignore[union-attr]


def test_recursion_is_counted_over_all_records_that_contain_each_other() -> None:
    b = record(("a", ["null", "A"]), name="B")
    assert str(row(record(("b", ["null", b]), name="A"))) == "struct<b: struct<a: struct<b: string>>>"


def test_a_recursive_record_inside_another_has_its_three_levels_too() -> None:
    node = record(("v", "int"), ("next", ["null", "Node"]), name="Node")
    third = "struct<v: int, next: string>"
    assert str(row(record(("n", node)))) == f"struct<n: struct<v: int, next: struct<v: int, next: {third}>>>"


def test_the_field_that_leads_to_the_text_is_marked() -> None:
    tree = record(("kids", {"type": "array", "items": "Tree"}), name="Tree")
    field = row(tree).fields[0]
    for _ in range(2):
        field = field.type.element.fields[0]  # type: ignore[union-attr]
    assert (field.type, field.as_json) == (Primitive(Kind.STRING), True)


def test_too_many_columns_are_refused_however_short_the_schema() -> None:
    tree: Any = record(*((f"f{i}", "int") for i in range(8)), name="T0")
    for level in range(1, 8):
        tree = record(("first", tree), *((f"f{i}", f"T{level - 1}") for i in range(8)), name=f"T{level}")
    with pytest.raises(UnreadableSchema, match=f"more than {FIELD_LIMIT} columns"):
        row(tree)


def test_records_that_are_nested_by_name_are_limited_too() -> None:
    links = [record(("f", f"T{i + 1}"), name=f"T{i}") for i in range(150)] + [record(("f", "int"), name="T150")]
    references = {f"T{i}": json.dumps(link) for i, link in enumerate(links)}
    with pytest.raises(UnreadableSchema, match="nested"):
        avro.row_type(avro.parse(json.dumps(["null", *[f"T{i}" for i in reversed(range(151))]]), references))


@settings(deadline=None)
@given(SCHEMAS)
def test_every_schema_has_a_row_type_without_empty_structs(tree: Any) -> None:
    def check(of: Any) -> None:
        match of:
            case Struct(fields):
                assert fields
                for field in fields:
                    check(field.type)
            case _:
                for inner in ("element", "value"):
                    if hasattr(of, inner):
                        check(getattr(of, inner))

    for field in row(tree).fields:
        check(field.type)
