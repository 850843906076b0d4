"""Upsert tables whose key is columns of the value, on a real broker and registry."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import Append, ErrorMode, Upsert
from frazil.declaration.options import SchemaEvolution
from frazil.errors import InvalidInput, KeysMissing, WriteModeDiffers
from tests.support.keyed_topic import KeyedTopic, Schema, check_column, record
from tests.support.shop import Shop, ShopOf, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
LONG = pytest.mark.long


LINE = record("Line", order_id="long", line="int", word="string")
NUMBER = {"name": "number", "type": "int", "aliases": ["line"]}
RENAMED = {**LINE, "fields": [LINE["fields"][0], NUMBER, LINE["fields"][2]]}
"""A later version, whose column of the key has another name."""


class Lines(KeyedTopic):
    def __init__(self, shop: Shop, value: Schema = LINE, key: Any = None) -> None:
        super().__init__(shop, value, key)


def line(order: int, number: int, word: str) -> dict[str, Any]:
    return {"order_id": order, "line": number, "word": word}


def keys_of(shop: Shop) -> set[str]:
    schema = shop.stored.schema()
    names = {schema.find_column_name(number) for number in schema.identifier_field_ids}
    assert all(schema.find_field(name).required for name in names)
    return names


BY_LINE = Upsert(key=("order_id", "line"))


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=LONG)])
def test_columns_of_the_value_are_the_key(shop_of: ShopOf, version: int) -> None:
    shop = shop_of(write=BY_LINE, table={"format_version": version})
    lines = Lines(shop)
    for number in range(4):
        lines.put(line(1, number, f"first {number}"))
    lines.put(line(1, 3, "again"), key=b"whatever")
    shop.drain()
    check_column(shop, "word", "first 0", "first 1", "first 2", "again")
    lines.put(line(1, 1, "second"), key=b"another")
    lines.put(line(2, 1, "of another order"))
    shop.drain()
    check_column(shop, "word", "first 0", "second", "first 2", "again", "of another order")
    assert keys_of(shop) == {"order_id", "line"}


@pytest.mark.long
def test_a_tombstone_names_no_row_if_the_key_lacks_the_columns(shop_of: ShopOf) -> None:
    shop = shop_of(write=BY_LINE, on_error=ErrorMode.DEAD_LETTER)
    lines = Lines(shop)
    lines.put(line(1, 1, "stays"), key=b"1")
    lines.put(None, key=b"1")
    lines.put(None)
    assert shop.drain().rejected == {"tombstone_names_no_row": 2}
    check_column(shop, "word", "stays")
    assert {row["reason"] for row in shop.dead()} == {"tombstone_names_no_row"}


@pytest.mark.long
def test_a_record_key_with_the_columns_deletes_and_is_compared(shop_of: ShopOf) -> None:
    shop = shop_of(write=BY_LINE, key_format="avro", on_error=ErrorMode.DEAD_LETTER)
    lines = Lines(shop, key=record("Key", shop="string", line="int", order_id=["null", "int"]))

    def key(order: int | None, number: int) -> dict[str, Any]:
        return {"shop": "s", "line": number, "order_id": order}

    for number in range(4):
        lines.put(line(1, number, f"first {number}"), key(1, number))
    lines.put(line(1, 9, "without a key"))
    shop.drain()
    lines.put(None, key(1, 0))
    lines.put(None, key(7, 0))  # was never there
    lines.put(None, key(None, 1))
    lines.put(None)
    lines.put(line(1, 1, "of another key"), key(1, 2))
    lines.put(line(1, 1, "by a key with a null"), key(None, 1))
    lines.put(line(1, 2, "second"), key(1, 2))
    total = shop.drain()
    assert total.rejected == {"key_null": 1, "key_missing": 1, "key_mismatch": 1}
    check_column(shop, "word", "by a key with a null", "second", "first 3", "without a key")
    assert {"shop"}.isdisjoint(shop.landed()[0])


@pytest.mark.long
def test_a_record_key_that_gains_a_column_is_compared_where_it_has_it(shop_of: ShopOf) -> None:
    shop = shop_of(write=BY_LINE, key_format="avro", on_error=ErrorMode.DEAD_LETTER)
    lines = Lines(shop, key=record("Key", order_id="int"))
    lines.put(line(1, 1, "first"), {"order_id": 1})
    shop.drain()
    later = Lines(shop, key=record("Key", order_id="int", line=["null", "int"]))
    later.put(line(1, 2, "of the later key"), {"order_id": 1, "line": 2})
    lines.put(line(1, 1, "second"), {"order_id": 1})
    later.put(line(1, 2, "of another"), {"order_id": 1, "line": 3})
    assert shop.drain().rejected == {"key_mismatch": 1}
    check_column(shop, "word", "second", "of the later key")


@pytest.mark.long
def test_a_record_key_with_one_of_the_columns_is_not_compared(shop_of: ShopOf) -> None:
    shop = shop_of(write=BY_LINE, key_format="avro", on_error=ErrorMode.DEAD_LETTER)
    lines = Lines(shop, key=record("Key", order_id="long"))
    lines.put(line(1, 1, "first"), {"order_id": 1})
    lines.put(line(1, 1, "second"), {"order_id": 2})
    lines.put(None, {"order_id": 1})
    assert shop.drain().rejected == {"tombstone_names_no_row": 1}
    check_column(shop, "word", "second")


@pytest.mark.long
@pytest.mark.parametrize("mode", [ErrorMode.DEAD_LETTER, ErrorMode.SUSPEND])
def test_a_topic_without_keys_stops_at_the_first_batch(shop_of: ShopOf, mode: ErrorMode) -> None:
    shop = shop_of(write=Upsert(), on_error=mode)
    lines = Lines(shop)
    for number in range(3):
        lines.put(line(1, number, "x"))
    shop.produce([b"bad!!!"], key=None)
    for _ in range(2):
        with pytest.raises(KeysMissing, match=r"none of the first 4 records has a key.*Upsert\(key=…\)"):
            shop.drain()
    assert (shop.landed(), shop.dead()) == ([], [])


@pytest.mark.long
def test_a_json_key_is_fine_beside_columns_of_the_value(shop_of: ShopOf) -> None:
    shop = shop_of(write=BY_LINE, key_format="json")
    lines = Lines(shop)
    for word, key in (("first", b'{"order_id":1,"line":1}'), ("second", b'{"line": 1, "order_id": 1}')):
        lines.put(line(1, 1, word), key=key)
        shop.drain()
    check_column(shop, "word", "second")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("double", "is of type double, which cannot be a key"),
        pytest.param({"type": "array", "items": "int"}, "is of type list<int>", marks=LONG),
        pytest.param({"type": "map", "values": "null"}, "is JSON text, which cannot be a key", marks=LONG),
        ({"type": "bytes", "logicalType": "big-decimal"}, "holds numbers that each have a scale of their own"),
        pytest.param(
            ["null", {"type": "bytes", "logicalType": "big-decimal"}], "holds numbers that each have", marks=LONG
        ),
        pytest.param(
            record("io.debezium.data.VariableScaleDecimal", scale="int", value="bytes"), "is of type struct", marks=LONG
        ),
    ],
)
def test_what_is_no_key_is_refused(shop_of: ShopOf, kind: Any, said: str) -> None:
    shop = shop_of(write=Upsert(key="id"))
    Lines(shop, record("Value", id=kind, word="string"))
    with pytest.raises(InvalidInput, match=f"id {said}.*Upsert\\(key=…\\)"):
        shop.drain()
    assert not shop.job().iceberg.exists(shop.pipeline.table.identifier)


def test_a_column_that_no_version_has_is_refused(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(key=("oder_id", "line")))
    Lines(shop)
    with pytest.raises(InvalidInput, match="no version of the value has oder_id; .*Did you mean order_id?"):
        shop.drain()
    assert not shop.job().iceberg.exists(shop.pipeline.table.identifier)


@pytest.mark.long
def test_the_key_of_a_table_never_changes(shop_of: ShopOf) -> None:
    shop = shop_of(write=BY_LINE)
    lines = Lines(shop)
    lines.put(line(1, 1, "first"), key=b"k")
    shop.drain()
    for other in (Upsert(key="order_id"), Upsert(key=("order_id", "line", "word")), Upsert(), Append()):
        with pytest.raises(WriteModeDiffers, match=r"made for .*upsert"):
            shop.drain(replace(shop.pipeline, write=other))
    shop.pipeline = replace(shop.pipeline, write=Upsert(key=("line", "order_id")))  # the same columns
    lines.put(line(1, 1, "second"))
    shop.drain()
    check_column(shop, "word", "second")


@pytest.mark.long
def test_the_records_key_and_the_same_columns_of_the_value_are_one_key(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="avro")
    lines = Lines(shop, key=record("Key", line="int", order_id="int"))
    for mode, word in ((Upsert(), "first"), (BY_LINE, "second"), (Upsert(), "third")):
        shop.pipeline = replace(shop.pipeline, write=mode)
        for number in range(4):
            lines.put(line(1, number, word), {"line": number, "order_id": 1})
        lines.put(None, {"line": 3, "order_id": 1})
        shop.drain()
        check_column(shop, "word", *[word] * 3)
    assert keys_of(shop) == {"order_id", "line"}


def test_a_type_that_the_columns_do_not_hold_is_refused(shop_of: ShopOf) -> None:
    shop = shop_of(write=BY_LINE, key_format="avro")
    Lines(shop, key=record("Key", order_id="string", line="int"))
    with pytest.raises(InvalidInput, match="the field order_id in another type than the value.*keys of format bytes"):
        shop.drain()


# ── Schemas change ──────────────────────────────────────────────────────────────────────────────
@pytest.mark.long
@pytest.mark.parametrize("evolution", list(SchemaEvolution))
def test_a_key_column_is_renamed_by_an_alias(shop_of: ShopOf, evolution: SchemaEvolution) -> None:
    shop = shop_of(write=BY_LINE, table={"schema_evolution": evolution})
    lines = Lines(shop)
    for number in range(3):
        lines.put(line(1, number, "first"))
    shop.drain()
    lines.evolve(RENAMED)
    lines.put({"order_id": 1, "number": 1, "word": "second"})
    shop.drain()
    check_column(shop, "word", "first", "second", "first")
    assert keys_of(shop) == {"order_id", "line" if evolution is SchemaEvolution.FREEZE else "number"}
    shop.pipeline = replace(shop.pipeline, write=Upsert(key=("order_id", "number")))
    lines.put({"order_id": 1, "number": 2, "word": "third"})
    shop.drain()
    check_column(shop, "word", "first", "second", "third")


@pytest.mark.long
def test_a_version_without_a_key_column_is_rejected(shop_of: ShopOf) -> None:
    shop = shop_of(write=BY_LINE, on_error=ErrorMode.DEAD_LETTER)
    lines = Lines(shop)
    lines.put(line(1, 1, "first"))
    shop.drain()
    shorter = record("Line", order_id="long", word="string")
    lines.evolve(shorter)
    lines.put({"order_id": 1, "word": "without a line"})
    assert shop.drain().rejected == {"key_null": 1}
    lines.evolve({**shorter, "fields": [*shorter["fields"], {"name": "line", "type": "int", "default": 1}]})
    lines.put(line(1, 1, "third"))
    shop.drain()
    check_column(shop, "word", "third")
    assert keys_of(shop) == {"order_id", "line"}


@pytest.mark.long
def test_a_default_fills_no_key(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(key=("id", "region")), on_error=ErrorMode.DEAD_LETTER)
    lines = Lines(shop, record("Value", id="long", word="string"))
    lines.put({"id": 1, "word": "of no region"})
    more = {"name": "region", "type": "string", "default": "eu"}
    fields = record("Value", id="long", word="string")["fields"]
    lines.evolve({"type": "record", "name": "Value", "fields": [*fields, more]})
    lines.put({"id": 1, "word": "first", "region": "eu"})
    assert shop.drain().rejected == {"key_null": 1}
    check_column(shop, "word", "first")


@pytest.mark.long
def test_a_field_that_takes_the_earlier_name_of_a_key_column_does_not_fit(shop_of: ShopOf) -> None:
    shop = shop_of(write=BY_LINE, on_error=ErrorMode.DEAD_LETTER)
    lines = Lines(shop)
    for number in range(2):
        lines.put(line(1, number, "first"))
    shop.drain()
    lines.evolve(RENAMED)
    lines.put({"order_id": 1, "number": 1, "word": "second"})
    shop.drain()
    other = {"name": "line", "type": "int", "default": 0}
    lines.evolve({**RENAMED, "fields": [*RENAMED["fields"], other]})
    lines.put({"order_id": 1, "number": 1, "word": "third", "line": 0})
    assert shop.drain().rejected == {"incompatible_schema": 1}
    check_column(shop, "word", "first", "second")
    assert keys_of(shop) == {"order_id", "number"}


@pytest.mark.long
def test_a_key_of_a_protobuf_value(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(key=("id", "at")), value_format="protobuf", on_error=ErrorMode.DEAD_LETTER)
    text = (
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; '
        "message Line { int32 id = 1; string word = 2; google.protobuf.Timestamp at = 3; }"
    )
    schema_id = shop.registry_admin.register(f"{shop.topic}-value", text, SchemaType.PROTOBUF)
    at, cut = b"\x1a\x05\x08\x01\x10\xd8\x36", b"\x1a\x04\x08\x01\x10\x07"  # 1.000007 s, 1.000000007 s
    for body in (at, b"\x08\x01" + at, b"\x08\x01\x12\x01b" + at, b"\x08\x01\x12\x01c", cut):  # one has no time
        shop.produce([frame(schema_id, b"\x00" + body)], key=None, partition=0)
        shop.drain()
    check_column(shop, "word", "", "b")  # proto3 writes no zero: its key is 0
    assert sorted(row["reason"] for row in shop.dead()) == ["key_null", "undecodable"]


def _decimal(precision: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("transform", "narrow", "wide"),
    [
        ("bucket(4, id)", "int", "long"),
        ("truncate(10, id)", "int", "long"),
        ("bucket(4, id)", _decimal(4), _decimal(12)),
        ("truncate(1000, id)", _decimal(4), _decimal(12)),
    ],
)
def test_a_key_column_widens_across_partitions(
    shop_of: ShopOf, version: int, transform: str, narrow: Any, wide: Any
) -> None:
    shop = shop_of(write=Upsert(key="id"), table={"format_version": version, "partition_by": (transform,)})
    lines = Lines(shop, record("Value", id=narrow, word="string"))
    is_decimal = isinstance(narrow, dict)

    def id_of(number: int) -> Any:
        return Decimal(number) / 4 if is_decimal else number

    numbers = (-17, -3, 0, 3, 12, 17)
    for number in numbers:
        lines.put({"id": id_of(number), "word": f"first {number}"})
    shop.drain()
    lines.evolve(record("Value", id=wide, word="string"))
    for number in (*numbers[:-1], 2**33):
        lines.put({"id": id_of(number), "word": f"second {number}"})
    shop.drain()
    check_column(shop, "word", "first 17", *(f"second {number}" for number in (*numbers[:-1], 2**33)))


@pytest.mark.long
def test_the_records_key_widens_the_columns(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(key="id"), key_format="avro")
    lines = Lines(shop, record("Value", id="int", word="string"), key=record("Key", id="int"))
    for number in range(3):
        lines.put({"id": number, "word": f"first {number}"}, {"id": number})
    shop.drain()
    lines.evolve_key(record("Key", id="long"))
    lines.put({"id": 1, "word": "second"}, {"id": 1})
    lines.put(None, {"id": 2})
    lines.put(None, {"id": 2**40})
    shop.drain()
    check_column(shop, "word", "first 0", "second")


# ── Odd names and values ────────────────────────────────────────────────────────────────────────
@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "column"),
    [
        ("Order Id", "order_id"),
        ("ORDER", "order"),
        ("a.b", "a_b"),
        ("`select`", "_select_"),
        ("Größe", "gro_e"),
        ("1st", "_1st"),
        ("key", "key"),
        ("value", "value"),
        ("partition", "partition"),
        ("_", "_"),
    ],
)
def test_a_key_of_an_odd_name(shop_of: ShopOf, source: str, column: str) -> None:
    shop = shop_of(write=Upsert(key=column), value_format="json_schema")
    schema = {"type": "object", "properties": {source: {"type": "string"}, "word": {"type": "string"}}}
    schema_id = shop.registry_admin.register(f"{shop.topic}-value", json.dumps(schema), SchemaType.JSON)
    words = ("", " ", "é", "e\u0301", "A", "a", "a ")
    for word in ("first", "second"):
        for text in words:
            body = json.dumps({source: text, "word": f"{word} {text}"}).encode()
            shop.produce([frame(schema_id, body)], key=None, partition=0)
        shop.drain()
    check_column(shop, "word", *(f"second {text}" for text in words))


@pytest.mark.long
def test_a_text_is_its_own_key(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(key="value"), value_format="text")
    for _ in range(2):
        for text in ("a", "b"):
            shop.produce([text.encode()], key=None, partition=0)
        shop.drain()
    check_column(shop, "value", "a", "b")
