from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import UnreadableSchema
from frazil.schemas import avro
from frazil.schemas.avro.parser import NESTING_LIMIT, TEXT_LIMIT
from frazil.schemas.avro.schema import Fixed, Named, Record, Simple
from frazil.schemas.types import Decimal


def parsed(tree: Any, **references: Any) -> avro.AvroSchema:
    return avro.parse(json.dumps(tree), {name: json.dumps(text) for name, text in references.items()})


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields), **more}


def types_of(*kinds: Any, **more: Any) -> list[Any]:
    return [
        f.type for f in parsed(record(*({"name": f"f{i}", "type": k} for i, k in enumerate(kinds)), **more)).root.fields
    ]


def test_a_record_is_read_with_docs_and_aliases() -> None:
    schema = parsed(record({"name": "a", "type": "int", "doc": " what a is ", "aliases": ["b"], "default": 3}))
    (field,) = schema.root.fields
    assert (field.name, field.type, field.doc, field.aliases) == ("a", Simple("int"), "what a is", ("b",))


def test_names_are_resolved_in_their_namespaces() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A"]}
    schema = parsed(
        record({"name": "a", "type": inner}, {"name": "b", "type": "E"}, {"name": "c", "type": "n.E"}, namespace="n")
    )
    assert set(schema.types) == {"n.R", "n.E"}
    assert {f.type for f in schema.root.fields} == {Named("n.E")}


def test_a_full_name_sets_the_namespace_of_what_is_inside() -> None:
    inner = {
        "type": "record",
        "name": "x.y.In",
        "fields": [{"name": "f", "type": {"type": "fixed", "name": "F", "size": 1}}],
    }
    assert set(parsed(record({"name": "a", "type": inner})).types) == {"R", "x.y.In", "x.y.F"}


def test_a_name_may_be_of_the_null_namespace() -> None:
    outer = {"type": "enum", "name": "E", "symbols": ["A"]}
    inner = {"type": "record", "name": "n.In", "fields": [{"name": "f", "type": "E"}]}
    schema = parsed(record({"name": "a", "type": outer}, {"name": "b", "type": inner}))
    assert schema.types["n.In"] == Record("n.In", (schema.root.fields[0].__class__("f", Named("E")),))


def test_logical_types_are_kept_where_avro_knows_them() -> None:
    found = types_of(
        {"type": "int", "logicalType": "date"},
        {"type": "string", "logicalType": "date"},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
        {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 4},
        {"type": "bytes", "logicalType": "decimal"},
        {"type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"type": "string", "avro.java.string": "String"},
    )
    assert found == [
        Simple("int", "date"), Simple("string"), Simple("bytes", "decimal", Decimal(4, 2)), Simple("bytes", "decimal", Decimal(4, 4)),
        Simple("bytes", "decimal", Decimal(38, 0)),
        Simple("long", "timestamp-millis"), Simple("string"),
    ]  # fmt: skip


def test_a_fixed_is_a_decimal_whatever_its_size() -> None:
    def fixed(name: str, size: int, precision: int) -> dict[str, Any]:
        return {"type": "fixed", "name": name, "size": size, "logicalType": "decimal", "precision": precision}

    schema = parsed(
        record(
            {"name": "a", "type": fixed("A", 4, 9)},
            {"name": "b", "type": fixed("B", 4, 10)},
            {"name": "c", "type": fixed("C", 2**31 - 1, 10)},
        )
    )
    assert schema.types["A"] == Fixed("A", 4, Decimal(9, 0))
    assert schema.types["B"] == Fixed("B", 4, Decimal(10, 0))
    assert schema.types["C"] == Fixed("C", 2**31 - 1, Decimal(10, 0))


@pytest.mark.parametrize(
    "text",
    [
        '"long"',
        "long",
        '["null","string"]',
        '{"type":"array","items":"int"}',
        '{"type":"enum","name":"E","symbols":["A"]}',
    ],
)
def test_a_value_that_is_no_record_becomes_the_field_value_of_one(text: str) -> None:
    assert [f.name for f in avro.parse(text).root.fields] == ["value"]


def test_recursive_records_are_known() -> None:
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    a = {
        "type": "record",
        "name": "A",
        "fields": [
            {
                "name": "b",
                "type": {
                    "type": "array",
                    "items": {"type": "record", "name": "B", "fields": [{"name": "a", "type": "A"}]},
                },
            }
        ],
    }
    schema = parsed(record({"name": "n", "type": node}, {"name": "a", "type": a}))
    assert schema.recursive == {"Node", "A", "B"}


def test_references_are_found_by_name_in_any_order_and_through_each_other() -> None:
    order = record({"name": "c", "type": "shop.Customer"}, {"name": "m", "type": "shop.Money"})
    customer = {"type": "record", "name": "Customer", "namespace": "shop", "fields": [{"name": "m", "type": "Money"}]}
    money = {"type": "fixed", "name": "shop.Money", "size": 8}
    schema = parsed(order, **{"shop.Money": money, "shop.Customer": customer})
    assert set(schema.types) == {"R", "shop.Customer", "shop.Money"}


def test_a_reference_may_be_called_otherwise_than_the_type_it_brings() -> None:
    money = {"type": "fixed", "name": "shop.Money", "size": 8}
    assert "shop.Money" in parsed(record({"name": "m", "type": "shop.Money"}), money_ref=money).types


def test_a_reference_may_use_the_type_that_refers_to_it() -> None:
    line = {"type": "record", "name": "Line", "fields": [{"name": "of", "type": ["null", "R"]}]}
    assert parsed(record({"name": "l", "type": "Line"}), Line=line).recursive == {"R", "Line"}


ENUM = {"type": "enum", "name": "E", "symbols": ["A"]}


@pytest.mark.parametrize(
    ("tree", "says"),
    [
        pytest.param(record({"name": "a", "type": "Nope"}), "R.a: there is no type 'Nope'", id="unknown type"),
        pytest.param(record({"name": "a", "type": {"type": "array", "items": {"type": "map"}}}), "R.a[]: map without `values`", id="map of nothing"),
        pytest.param(record({"name": "a"}), "R.a: null is not a type", id="field without type"),
        pytest.param(record({"type": "int"}), "R: a field without `name`", id="field without name"),
        pytest.param({"type": "record", "name": "R"}, "record without `fields`", id="record without fields"),
        pytest.param({"type": "record", "fields": []}, "record without `name`", id="record without name"),
        pytest.param(record({"name": "a", "type": "int"}, {"name": "a", "type": "int"}), "R.a: the record has this field twice", id="field twice"),
        pytest.param(record({"name": "a", "type": ENUM}, {"name": "b", "type": ENUM}), "R.b: 'E' is defined twice", id="type twice"),
        pytest.param(record({"name": "a", "type": ["int", "int"]}), "R.a: a union that has one type twice", id="union of one type"),
        pytest.param(record({"name": "a", "type": ["int", ["string"]]}), "R.a: a union directly in a union", id="union in union"),
        pytest.param(record({"name": "a", "type": []}), "R.a: a union without branches", id="empty union"),
        pytest.param(record({"name": "a", "type": {**ENUM, "symbols": ["A", "A"]}}), "R.a: a symbol occurs twice", id="symbol twice"),
        pytest.param(record({"name": "a", "type": {**ENUM, "symbols": ["a-b"]}}), "R.a: 'a-b' is no symbol", id="illegal symbol"),
        pytest.param(record({"name": "a", "type": {"type": "fixed", "name": "F", "size": -1}}), "R.a: `size` is not a number of bytes", id="negative size"),
        pytest.param(record({"name": "a", "type": 5}), "R.a: 5 is not a type", id="number"),
        pytest.param(record({"name": "a", "type": {}}), "R.a: a type without `type`", id="empty type"),
    ],
)  # fmt: skip
def test_a_broken_schema_is_told_with_its_path(tree: Any, says: str) -> None:
    with pytest.raises(UnreadableSchema) as problem:
        parsed(tree)
    assert str(problem.value).startswith(says)


def test_a_broken_reference_is_told_with_its_name() -> None:
    with pytest.raises(UnreadableSchema, match=r"\(reference Money\) .*without `size`"):
        parsed(record({"name": "m", "type": "Money"}), Money={"type": "fixed", "name": "Money"})


@pytest.mark.parametrize(
    "text", ["", "{", "nonsense", "null", "5", '{"type":"record"', "[" * 100_000, '{"type":' * 50_000]
)
def test_what_is_no_schema_is_unreadable_whatever_it_is(text: str) -> None:
    with pytest.raises(UnreadableSchema):
        avro.parse(text)


def test_a_schema_that_is_too_long_or_too_deep_is_refused() -> None:
    with pytest.raises(UnreadableSchema, match="longer than"):
        avro.parse('"' + "x" * TEXT_LIMIT + '"')
    tree: Any = "int"
    for _ in range(NESTING_LIMIT + 1):
        tree = {"type": "array", "items": tree}
    with pytest.raises(UnreadableSchema, match="nested more than"):
        parsed(tree)


def test_lists_deeper_than_a_file_is_read_are_refused() -> None:
    deep: Any = "int"
    for _ in range(46):
        deep = {"type": "array", "items": deep}
    with pytest.raises(UnreadableSchema, match="deep: types are nested more than 90 levels deep in a file"):
        avro.row_type(parsed(record({"name": "deep", "type": deep})))
    assert avro.row_type(parsed(record({"name": "deep", "type": deep["items"]["items"]}))).fields


def test_half_a_surrogate_pair_is_no_name_and_no_comment() -> None:
    for field in ({"name": "a\ud800", "type": "int"}, {"name": "a", "type": "int", "doc": "\udc00"}):
        with pytest.raises(UnreadableSchema, match="half a surrogate pair"):
            parsed(record(field))
    assert parsed(record({"name": "a", "type": "string", "default": "\ud800"}))


def test_references_that_lead_on_for_ever_are_refused() -> None:
    chain = {
        f"T{i}": {"type": "record", "name": f"T{i}", "fields": [{"name": "f", "type": f"T{i + 1}"}]}
        for i in range(2000)
    }
    with pytest.raises(UnreadableSchema, match="nested too deeply"):
        parsed(record({"name": "a", "type": "T0"}), **chain)


def test_a_field_name_that_java_refuses_is_no_matter() -> None:
    assert [
        f.name for f in parsed(record({"name": "a-b", "type": "int"}, {"name": "c d", "type": "int"})).root.fields
    ] == ["a-b", "c d"]


NOTHING = {"type": "record", "name": "Nothing", "fields": []}


@pytest.mark.parametrize(
    "items",
    [
        "null",
        NOTHING,
        {"type": "record", "name": "Only", "fields": [{"name": "a", "type": "null"}, {"name": "b", "type": NOTHING}]},
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": "Itself", "fields": [{"name": "a", "type": "Itself"}]},
    ],
)
def test_a_list_of_elements_that_take_no_bytes_is_refused(items: Any) -> None:
    """A record of 12 bytes can have billions of them."""
    with pytest.raises(UnreadableSchema, match="take no bytes") as refused:
        parsed(record({"name": "x", "type": {"type": "array", "items": items}}))
    assert refused.value.where == "R.x[]"


@pytest.mark.parametrize(
    "of",
    [
        *({"type": "array", "items": items} for items in ("int", ["null"], {"type": "fixed", "name": "F", "size": 1})),
        {"type": "map", "values": NOTHING},  # its keys take bytes
    ],
)
def test_a_list_or_map_whose_elements_take_bytes_is_read(of: Any) -> None:
    assert parsed(record({"name": "x", "type": of}))


@pytest.mark.parametrize("logical", [[], {}, None, 7])
def test_a_logical_type_that_is_no_name_is_ignored(logical: Any) -> None:
    fixed = {"type": "fixed", "name": "F", "size": 4, "logicalType": logical}
    fields = [{"name": "a", "type": fixed}, {"name": "b", "type": {"type": "long", "logicalType": logical}}]
    read = avro.parse(json.dumps({"type": "record", "name": "R", "fields": fields}))
    assert [str(field.type) for field in avro.row_type(read).fields] == ["binary", "long"]
