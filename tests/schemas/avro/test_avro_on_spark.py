"""What the mapping table of docs/schemas.md says, on real Spark: bytes of another writer, read by our reader schemas."""

from __future__ import annotations

import decimal
import io
import json
import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest
from fastavro.schema import parse_schema
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.decode.avro.avro_decoder import avro_body
from frazil.decode.spark_types import spark_struct
from frazil.schemas import avro
from frazil.schemas.avro.reader_schema import DECODED
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.support.bodies import at_once

pytestmark = [pytest.mark.spark]

MARK = Field(DECODED, Primitive(Kind.BOOLEAN))


def written(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parse_schema(schema), value)
    return out.getvalue()


def record(*fields: dict[str, Any], name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "shop", "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def target_of(*schemas: Any, table: Struct | None = None) -> Struct:
    """Where records of these versions land, in a new table or in one that stands."""
    versions = [(number, avro.row_type(avro.parse(json.dumps(s)))) for number, s in enumerate(schemas)]
    plan = landing(table or Struct(()), versions)
    assert not plan.incompatible
    return plan.target


def rows(spark: SparkSession, schema: Any, target: Struct, *values: Any) -> list[dict[str, Any] | None]:
    return rows_of(spark, schema, target, *(written(schema, value) for value in values))


def rows_of(spark: SparkSession, schema: Any, target: Struct, *bodies: bytes) -> list[dict[str, Any] | None]:
    """Each record's row without `_decoded`; None if it was not decoded."""
    reader = avro.reader(avro.parse(json.dumps(schema)), target)
    records = spark.createDataFrame([(bytearray(body),) for body in bodies], "body binary")
    decoded = records.select(at_once(avro_body(reader, target), F.col("body")).alias("row")).select("row.*")
    assert decoded.schema.simpleString() == spark_struct(Struct((*target.fields, MARK))).simpleString()
    found = [row.asDict(recursive=True) for row in decoded.collect()]
    return [row if row.pop(DECODED) else None for row in found]


def in_one_job(spark: SparkSession, bodies: Mapping[str, tuple[Any, bytes]]) -> dict[str, Any]:
    """The row of each body, which is a record with a field `x` of the given type; None if it was not decoded."""
    columns = []
    for what, (kind, data) in bodies.items():
        schema = record(field("x", kind))
        target = target_of(schema)
        reader = avro.reader(avro.parse(json.dumps(schema)), target)
        columns.append(at_once(avro_body(reader, target), F.lit(bytearray(data))).alias(what))
    decoded = spark.range(1).select(*columns).collect()[0].asDict(recursive=True)
    return {what: row if row is not None and row.pop(DECODED) else None for what, row in decoded.items()}


def logical(base: str, logical_type: str, /, **more: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": logical_type, **more}


POINT = {"type": "record", "name": "Point", "fields": [field("x", "int"), field("y", "int")]}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
HASH = {"type": "fixed", "name": "Hash", "size": 2}
D = decimal.Decimal
NOON = datetime(2024, 2, 29, 12, 0, 0, 123000)


def test_a_field_of_null_only_has_no_column(spark: SparkSession) -> None:
    schema = record(field("nothing", "null"), field("x", "int"), field("none", ["null"]))
    assert rows(spark, schema, target_of(schema), {"nothing": None, "x": 1, "none": None}) == [{"x": 1}]


def test_a_value_that_is_no_record_lands_in_the_column_value(spark: SparkSession) -> None:
    assert rows(spark, "long", target_of("long"), 5) == [{"value": 5}]
    assert rows(spark, ["null", "long"], target_of(["null", "long"]), None) == [{"value": None}]
    both = [record(field("x", "int"), name="A"), record(field("y", "int"), name="B")]
    assert rows(spark, both, target_of(both), ("shop.B", {"y": 1})) == [
        {"value": {"member_a": None, "member_b": {"y": 1}}}
    ]


def test_names_are_folded_at_every_level_without_a_field_lost(spark: SparkSession) -> None:
    inner = {"type": "record", "name": "In", "fields": [field("Größe", "int"), field("größe", "int")]}
    schema = record(
        field("Id", "int"),
        field("id", "int"),
        field("_kafka_offset", "int"),
        field("items", {"type": "array", "items": inner}),
    )
    (row,) = rows(
        spark, schema, target_of(schema), {"Id": 1, "id": 2, "_kafka_offset": 3, "items": [{"Größe": 4, "größe": 5}]}
    )
    assert row is not None
    first, second, third, fourth = row
    assert (first, row[first], row[second], row[third]) == ("id", 1, 2, 3)
    assert second.startswith("id_")
    assert third.startswith("kafka_offset_")
    assert list(row[fourth][0].values()) == [4, 5]


def test_a_type_that_stands_twice_lands_twice(spark: SparkSession) -> None:
    schema = record(field("a", POINT), field("b", {"type": "array", "items": "Point"}), field("c", ["null", "Point"]))
    value = {"a": {"x": 1, "y": 2}, "b": [{"x": 3, "y": 4}], "c": {"x": 5, "y": 6}}
    assert rows(spark, schema, target_of(schema), value) == [value]


# Evolution


def test_all_versions_land_in_the_widest_type(spark: SparkSession) -> None:
    old = record(
        field("n", "int"),
        field("f", "float"),
        field("d", logical("bytes", "decimal", precision=9, scale=2)),
        field("l", {"type": "array", "items": "int"}),
        field("m", {"type": "map", "values": ["null", "int"]}),
    )
    new = record(
        field("n", "long"),
        field("f", "double"),
        field("d", logical("bytes", "decimal", precision=30, scale=2)),
        field("l", {"type": "array", "items": "long"}),
        field("m", {"type": "map", "values": ["null", "long"]}),
    )
    target = target_of(old, new)
    value = {"n": 1, "f": 0.5, "d": D("1.25"), "l": [1], "m": {"a": None, "b": 2}}
    assert rows(spark, old, target, value) == [value]
    assert rows(spark, new, target, {**value, "n": 2**40}) == [{**value, "n": 2**40}]


def test_a_decimal_in_a_fixed_lands_in_a_wider_column(spark: SparkSession) -> None:
    old = record(field("d", ["null", logical("fixed", "decimal", name="Money", size=4, precision=9, scale=2)]))
    new = record(field("d", ["null", logical("fixed", "decimal", name="Money", size=16, precision=30, scale=2)]))
    target = target_of(old, new)
    assert rows(spark, old, target, {"d": D("1.25")}, {"d": None}) == [{"d": D("1.25")}, {"d": None}]
    assert rows(spark, new, target, {"d": D("123456789012.25")}) == [{"d": D("123456789012.25")}]


def test_an_int_lands_in_a_table_of_doubles(spark: SparkSession) -> None:
    schema = record(field("x", "int"))
    table = Struct((Field("x", avro.row_type(avro.parse('"double"')).fields[0].type),))
    assert rows(spark, schema, target_of(schema, table=table), {"x": 3}) == [{"x": 3.0}]


def test_a_nested_field_that_a_version_lacks_is_null(spark: SparkSession) -> None:
    def order(*inner: dict[str, Any]) -> dict[str, Any]:
        line = {"type": "record", "name": "Line", "fields": list(inner)}
        return record(field("lines", {"type": "array", "items": line}), field("by", {"type": "map", "values": "Line"}))

    old, new = order(field("sku", "string")), order(field("qty", "int"), field("sku", "string"))
    target = target_of(old, new)
    assert rows(spark, old, target, {"lines": [{"sku": "a"}], "by": {}}) == [
        {"lines": [{"sku": "a", "qty": None}], "by": {}}
    ]
    line = {"sku": "a", "qty": 2}
    assert rows(spark, new, target, {"lines": [line], "by": {"k": line}}) == [{"lines": [line], "by": {"k": line}}]


def test_an_alias_carries_old_records_to_the_new_name(spark: SparkSession) -> None:
    old = record(field("Amount", "int"), field("at", {"type": "record", "name": "At", "fields": [field("Lat", "int")]}))
    new = record(
        field("Total", "long", aliases=["Amount"]),
        field("at", {"type": "record", "name": "At", "fields": [field("north", "int", aliases=["Lat"])]}),
    )
    target = target_of(old, new)
    assert rows(spark, old, target, {"Amount": 1, "at": {"Lat": 2}}) == [{"total": 1, "at": {"north": 2}}]
    assert rows(spark, new, target, {"Total": 1, "at": {"north": 2}}) == [{"total": 1, "at": {"north": 2}}]


@pytest.mark.long
def test_an_enum_that_becomes_a_string_lands_in_one_column(spark: SparkSession) -> None:
    old, wider, new = (
        record(field("c", COLOUR)),
        record(field("c", {**COLOUR, "symbols": ["BLUE", "RED"]})),
        record(field("c", ["null", "string"])),
    )
    target = target_of(old, wider, new)
    assert rows(spark, old, target, {"c": "RED"}, {"c": "GREEN"}) == [{"c": "RED"}, {"c": "GREEN"}]
    assert rows(spark, wider, target, {"c": "BLUE"}) == [{"c": "BLUE"}]
    assert rows(spark, new, target, {"c": "any"}, {"c": None}) == [{"c": "any"}, {"c": None}]


def test_versions_that_count_time_in_other_units_land_as_the_same_instant(spark: SparkSession) -> None:
    old, new = (record(field("t", ["null", logical("long", f"timestamp-{unit}")])) for unit in ("millis", "micros"))
    target = target_of(old, new)
    assert rows(spark, old, target, {"t": NOON.replace(tzinfo=UTC)}) == rows(
        spark, new, target, {"t": NOON.replace(tzinfo=UTC)}
    )


def test_a_union_that_gains_types_keeps_those_it_had(spark: SparkSession) -> None:
    old = record(field("u", ["null", POINT, "string"]))
    new = record(
        field(
            "u",
            [
                "int",
                COLOUR,
                "string",
                HASH,
                logical("fixed", "decimal", name="Money", size=4, precision=9, scale=2),
                "null",
                {**POINT, "fields": [field("x", "int"), field("z", "int")]},
                {"type": "array", "items": "int"},
            ],
        )
    )
    target = target_of(old, new)
    nothing = {
        "member_int": None,
        "member_point": None,
        "member_string": None,
        "member_colour": None,
        "member_hash": None,
        "member_money": None,
        "member_array": None,
    }
    assert rows(spark, old, target, {"u": "x"}, {"u": None}, {"u": {"x": 1, "y": 2}}) == [
        {"u": {**nothing, "member_string": "x"}}, {"u": None}, {"u": {**nothing, "member_point": {"x": 1, "y": 2, "z": None}}},
    ]  # fmt: skip
    assert rows(spark, new, target, {"u": 1}, {"u": ("shop.Colour", "RED")}, {"u": ("shop.Money", D("1.25"))}, {"u": ("shop.Point", {"x": 1, "z": 3})}, {"u": [7]}) == [
        {"u": {**nothing, "member_int": 1}}, {"u": {**nothing, "member_colour": "RED"}}, {"u": {**nothing, "member_money": D("1.25")}},
        {"u": {**nothing, "member_point": {"x": 1, "y": None, "z": 3}}}, {"u": {**nothing, "member_array": [7]}},
    ]  # fmt: skip


def test_each_type_alone_lands_in_the_member_that_it_is_in_a_union(spark: SparkSession) -> None:
    other = {**POINT, "namespace": "other"}
    number = {"type": "fixed", "name": "Number", "size": 4, "logicalType": "decimal", "precision": 4, "scale": 2}
    a_list, a_map = {"type": "array", "items": "int"}, {"type": "map", "values": POINT}
    alone = {
        "member_boolean": ("boolean", True, True),
        "member_int": ("int", 7, 7),
        "member_long": ("long", 2**40, 2**40),
        "member_float": ("float", 1.5, 1.5),
        "member_double": ("double", 0.1, 0.1),
        "member_string": ("string", "RED", "RED"),
        "member_bytes": ("bytes", b"ab", b"ab"),
        "member_hash": (HASH, b"ab", b"ab"),
        "member_number": (number, D("1.50"), D("1.50")),
        "member_colour": (COLOUR, "RED", "RED"),
        "member_point": (POINT, {"x": 1, "y": 2}, {"x": 1, "y": 2}),
        "member_other_point": (other, {"x": 3, "y": 4}, {"x": 3, "y": 4}),
        "member_array": (a_list, [1], [1]),
        "member_map": (a_map, {"k": {"x": 5, "y": 6}}, {"k": {"x": 5, "y": 6}}),
    }
    kinds = [kind if kind is not a_map else {"type": "map", "values": "Point"} for kind, _, _ in alone.values()]
    union = record(field("x", ["null", *kinds]))
    target, columns = target_of(union), []
    for name, (kind, value, _) in alone.items():
        for place, of in enumerate((kind, ["null", kind])):
            schema = record(field("x", of))
            reader = avro.reader(avro.parse(json.dumps(schema)), target_of(union, schema))
            body = F.lit(bytearray(written(schema, {"x": value})))
            columns.append(at_once(avro_body(reader, target), body)["x"].alias(f"{name}_{place}"))
    found = spark.range(1).select(*columns).collect()[0].asDict(recursive=True)
    (x,) = target.fields
    assert isinstance(x.type, Struct)
    assert sorted(f.name for f in x.type.fields) == sorted(alone)
    for name, (_, _, read_) in alone.items():
        for place in range(2):
            row = found[f"{name}_{place}"]
            assert {n: v for n, v in row.items() if v is not None} == {name: read_}


def test_columns_of_a_table_that_avro_cannot_name_are_read_all_the_same(spark: SparkSession) -> None:
    inner = {"type": "record", "name": "In", "fields": [field("a", "int")]}
    schema = record(field("x", "int"), field("in", ["null", inner]))
    target = target_of(schema)
    renamed = Struct(
        tuple(Field({"x": "the x.y", "in": "in-side"}[f.name], f.type, source=f.source) for f in target.fields)
    )
    assert rows(spark, schema, renamed, {"x": 1, "in": {"a": 2}}) == [{"the x.y": 1, "in-side": {"a": 2}}]


def test_a_column_that_no_version_has_is_null(spark: SparkSession) -> None:
    schema = record(field("x", "int"))
    table = target_of(record(field("note", "string"), field("x", "int"), field("p", POINT)))
    assert rows(spark, schema, target_of(schema, table=table), {"x": 1}) == [{"note": None, "x": 1, "p": None}]


# Recursion

NODE = {"type": "record", "name": "Node", "fields": [field("v", "int"), field("next", ["null", "Node"])]}
TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [field("v", "int"), field("kids", {"type": "array", "items": "Tree"})],
}


def chain(length: int) -> dict[str, Any] | None:
    node = None
    for v in range(length, 0, -1):
        node = {"v": v, "next": node}
    return node


def test_a_recursive_record_is_columns_three_levels_deep_and_json_text_below(spark: SparkSession) -> None:
    target = target_of(NODE)
    assert str(target) == "struct<v: int, next: struct<v: int, next: struct<v: int, next: string>>>"
    three, four, eleven = rows(spark, NODE, target, chain(3), chain(4), chain(11))
    assert three == {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}}
    assert four == {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": '{"v":4}'}}}
    assert eleven is not None
    below = json.loads(eleven["next"]["next"]["next"])
    for v in range(4, 12):
        assert below["v"] == v
        below = below.get("next")
    assert below is None


def test_a_record_that_recurses_deeper_than_the_text_does_is_not_decoded_rather_than_cut(spark: SparkSession) -> None:
    assert [
        row is not None for row in rows(spark, NODE, target_of(NODE), chain(11), chain(12), chain(1), chain(500))
    ] == [True, False, True, False]


@pytest.mark.long
def test_recursion_through_lists_maps_and_unions_lands(spark: SparkSession) -> None:
    schema = record(
        field("tree", TREE),
        field("any", {"type": "record", "name": "Any", "fields": [field("is", ["int", {"type": "map", "values": "Any"}, {"type": "array", "items": "Any"}])]}),
    )  # fmt: skip
    leaf = {"v": 4, "kids": []}
    tree = {"v": 1, "kids": [{"v": 2, "kids": [{"v": 3, "kids": [leaf, leaf]}]}]}
    deep = {"is": {"a": {"is": [{"is": {"b": {"is": 7}}}]}}}
    (row,) = rows(spark, schema, target_of(schema), {"tree": tree, "any": deep})
    assert row is not None
    assert row["tree"]["kids"][0]["kids"][0]["kids"] == '[{"v":4,"kids":[]},{"v":4,"kids":[]}]'
    third = row["any"]["is"]["member_map"]["a"]["is"]["member_array"][0]["is"]
    assert third["member_int"] is None
    assert json.loads(third["member_map"]) == {"b": {"is": {"member_int": 7}}}


def test_text_within_json_text_is_utf_8_or_its_record_is_rejected(spark: SparkSession) -> None:
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [field("s", ["null", "string", COLOUR]), field("m", {"type": "map", "values": "string"}), field("kids", {"type": "array", "items": "Tree"})],
    }  # fmt: skip
    target = target_of(tree)
    good: dict[str, Any] = {"s": "é\ufffd", "m": {"é": "é"}, "kids": []}
    for _ in range(6):
        good = {"s": None, "m": {}, "kids": [good]}
    body = written(tree, good)
    assert body.count("é".encode()) == 3
    broken = [body.replace("é".encode(), b"\xc3(", n) for n in (1, 2, 3)]
    last_only = body[::-1].replace("é".encode()[::-1], b"(\xc3", 1)[::-1]
    row, *rejected = rows_of(spark, tree, target, body, *broken, last_only)
    assert row is not None
    assert '"s":{"member_string":"é\ufffd"}' in row["kids"][0]["kids"][0]["kids"]
    assert rejected == [None] * 4


def test_values_within_json_text_keep_all_their_digits(spark: SparkSession) -> None:
    node = {
        "type": "record",
        "name": "Node",
        "fields": [
            field("at", ["null", logical("long", "timestamp-micros")], default=None),
            field("here", ["null", logical("long", "local-timestamp-micros")], default=None),
            field("cost", ["null", logical("bytes", "decimal", precision=38, scale=10)], default=None),
            field("n", ["null", "long"], default=None),
            field("next", ["null", "Node"]),
        ],
    }
    last = {"at": NOON.replace(microsecond=123456, tzinfo=UTC), "here": NOON.replace(microsecond=123456), "n": 2**63 - 1, "cost": D("1234567890123456789012345678.0000000001")}  # fmt: skip
    value: dict[str, Any] = {**last, "next": None}
    for _ in range(3):
        value = {"next": value}
    (row,) = rows(spark, node, target_of(node), value)
    assert row is not None
    assert row["next"]["next"]["next"] == (
        '{"at":"2024-02-29T12:00:00.123456Z","here":"2024-02-29T12:00:00.123456",'
        '"cost":1234567890123456789012345678.0000000001,"n":9223372036854775807}'
    )


def test_a_record_alone_is_a_member_where_other_versions_have_other_types(spark: SparkSession) -> None:
    union = record(field("x", ["int", {"type": "record", "name": "A", "fields": [field("n", "int")]}]))
    alone = record(field("x", {"type": "record", "name": "B", "fields": [field("p", "boolean")]}))
    target, nothing = target_of(union, alone), {"member_int": None, "member_a": None, "member_b": None}
    assert rows(spark, union, target, {"x": 5}) == [{"x": {**nothing, "member_int": 5}}]
    assert rows(spark, alone, target, {"x": {"p": True}}) == [{"x": {**nothing, "member_b": {"p": True}}}]


# Bodies that are none


def test_a_record_whose_every_column_is_null_is_decoded(spark: SparkSession) -> None:
    schema = record(field("a", ["null", "string"]), field("b", ["null", "long"]))
    assert rows(spark, schema, target_of(schema), {"a": None, "b": None}) == [{"a": None, "b": None}]


WRONG: dict[str, tuple[Any, bytes]] = {
    "union branch out of range": (["null", "int"], b"\x04"),
    "enum symbol out of range": (COLOUR, b"\x04"),
    "negative length": ("string", b"\x01"),
    "number too long": ("long", b"\xff" * 10),
    "instant too far away": (logical("long", "timestamp-millis"), written("long", 2**62)),
    "decimal overflow": (logical("bytes", "decimal", precision=4, scale=2), written("bytes", struct.pack(">i", 10**6))),
    "decimal over 38 digits": (
        logical("bytes", "decimal", precision=64, scale=0),
        written("bytes", (10**38).to_bytes(17, "big")),
    ),
}


def test_a_body_that_is_no_value_of_its_schema_is_not_decoded(spark: SparkSession) -> None:
    assert in_one_job(spark, WRONG) == dict.fromkeys(WRONG)


@pytest.mark.parametrize(
    "kind",
    [
        "string",
        "bytes",
        {"type": "array", "items": "int"},
        {"type": "map", "values": "int"},
        pytest.param({"type": "map", "values": {"type": "map", "values": {"type": "array", "items": "int"}}}, id="maps of maps"),
        pytest.param({"type": "array", "items": {"type": "array", "items": {"type": "array", "items": "int"}}}, id="lists of lists"),
    ],
)  # fmt: skip
def test_a_length_that_no_record_has_is_not_allocated(spark: SparkSession, kind: Any) -> None:
    for name, value in avro.JVM_PROPERTIES.items():  # without them the next lines end the JVM
        assert spark._jvm.java.lang.System.getProperty(name) == value
    schema = record(field("x", kind))
    most = int(avro.JVM_PROPERTIES["org.apache.avro.limits.collectionItems.maxLength"])
    lengths = [10**9, 2**31 - 20, 2**31 - 1, 2**40, most, most + 1]
    bodies = [
        written("long", length) + b"\2a" * is_map + written("long", length) for length in lengths for is_map in (0, 1)
    ]
    assert rows_of(spark, schema, target_of(schema), *bodies) == [None] * len(bodies)


def test_a_list_of_many_elements_lands(spark: SparkSession) -> None:
    schema = record(field("x", {"type": "array", "items": "boolean"}))
    most = int(avro.JVM_PROPERTIES["org.apache.avro.limits.collectionItems.maxLength"])
    body = written("long", most) + bytes(most) + b"\0"
    records = spark.createDataFrame([(bytearray(body),)], "body binary")
    target = target_of(schema)
    row = at_once(avro_body(avro.reader(avro.parse(json.dumps(schema)), target), target), F.col("body"))
    assert records.select(F.size(row["x"])).first() == (most,)
