"""Upsert tables under keys, schemas and partitions that are easy to get wrong."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import ErrorMode, Upsert
from frazil.declaration.options import SchemaEvolution
from frazil.errors import InvalidInput, WriteModeDiffers
from tests.support.jobs import once
from tests.support.keyed_topic import KeyedTopic, Schema, record
from tests.support.keyed_topic import check_column as check
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


class Keyed(KeyedTopic):
    """A topic whose keys and values have schemas."""

    def __init__(self, shop: Shop, key: Any, value: Schema = ORDER) -> None:
        super().__init__(shop, value, key)

    def put(self, key: Any, value: Any, **record: Any) -> None:
        super().put(value, key, **record)


def order(number: int, user: str) -> dict[str, Any]:
    return {"order_id": number, "user": user, "amount": None}


@pytest.fixture
def shop(shop_of: ShopOf) -> Shop:
    return shop_of(write=Upsert(), key_format="avro")


@pytest.mark.long
def test_another_engine_moves_a_column_of_the_key(shop: Shop) -> None:
    keyed = Keyed(shop, record("Key", order_id="long", region="string"))
    for word in ("first", "second"):
        for number in range(3):
            keyed.put({"order_id": number, "region": "r"}, order(number, word))
        shop.drain()
        shop.sql("ALTER TABLE {} ALTER COLUMN region FIRST")
    check(shop, "user", *["second"] * 3)


def test_a_key_column_is_renamed_by_an_alias(shop: Shop) -> None:
    keyed = Keyed(shop, record("Key", order_id="long"))
    for number in range(3):
        keyed.put({"order_id": number}, order(number, "first"))
    shop.drain()
    renamed = {"name": "number", "type": "long", "aliases": ["order_id"]}
    keyed.evolve({**ORDER, "fields": [renamed, *ORDER["fields"][1:]]})
    keyed.put({"order_id": 1}, {"number": 1, "user": "second", "amount": None})
    keyed.put({"order_id": 2}, None)
    shop.drain()
    check(shop, "user", "first", "second")
    assert {row["number"] for row in shop.landed()} == {0, 1}


@pytest.mark.long
def test_keys_beyond_the_type_that_the_columns_had(shop: Shop) -> None:
    """The rows of before are read by the schema of then, in which no key of the batch could be."""
    keyed = Keyed(shop, record("Key", id="int"), record("Value", id="int", word="string"))
    keyed.put({"id": 1}, {"id": 1, "word": "first"})
    shop.drain()
    keyed.evolve(record("Value", id="long", word="string"))
    keyed.evolve_key(record("Key", id="long"))
    for batch in ("second", "third"):
        keyed.put({"id": 2**40}, {"id": 2**40, "word": batch})
        shop.drain()
    check(shop, "word", "first", "third")


@pytest.mark.long
@pytest.mark.parametrize("step", ["stage.done", "publish.decided", "publish.filled"])
@pytest.mark.parametrize(
    "names",
    [(("order_id", "number"),), (("order_id", "was"), ("line", "order_id"), ("was", "line"))],
    ids=["renamed", "exchanged"],
)
def test_another_engine_renames_columns_of_the_key_before_a_commit(
    shop: Shop, step: str, names: tuple[tuple[str, str], ...]
) -> None:
    keyed = Keyed(shop, record("Key", order_id="long"), record("Value", order_id="long", line="long", user="string"))
    for number in range(3):
        keyed.put({"order_id": number}, {"order_id": number, "line": 10 + number, "user": "first"})
    shop.drain()
    keyed.put({"order_id": 1}, {"order_id": 1, "line": 11, "user": "second"})
    keyed.put({"order_id": 2}, None)

    def rename() -> None:
        for old, new in names:
            shop.sql(f"ALTER TABLE {{}} RENAME COLUMN {old} TO {new}")

    # What was found is still there, and rows name their columns by id.
    is_searched = step == "publish.filled" and len(names) == 1
    with nullcontext() if is_searched else pytest.raises(WriteModeDiffers):
        shop.drain(failpoint=once(step, rename))
    check(shop, "user", *(["first", "second"] if is_searched else ["first"] * 3))
    for new, old in reversed(names):
        shop.sql(f"ALTER TABLE {{}} RENAME COLUMN {old} TO {new}")
    shop.drain()
    check(shop, "user", "first", "second")


@pytest.mark.long
@pytest.mark.parametrize("version", [2, 3])
def test_rows_move_between_partitions_of_odd_values(shop_of: ShopOf, version: int) -> None:
    table = {"format_version": version, "partition_by": ("region",)}
    shop = shop_of(write=Upsert(), key_format="avro", table=table)
    keyed = Keyed(shop, record("Key", id="long"), record("Value", id="long", region=["null", "string"], word="string"))
    regions = ("null", None, "a b/ü%2F=", "")
    for number, region in enumerate(regions):
        keyed.put({"id": number}, {"id": number, "region": region, "word": f"first {number}"})
    shop.drain()
    for number, region in enumerate(regions[1:] + regions[:1]):
        keyed.put({"id": number}, {"id": number, "region": region, "word": f"second {number}"})
    shop.drain()
    check(shop, "word", *(f"second {number}" for number in range(4)))


@pytest.mark.long
def test_batches_without_a_row(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.DEAD_LETTER)
    schema_id = shop.register()
    shop.produce([None, None], key=b"k", partition=0)
    shop.drain()
    check(shop, "user")
    shop.produce([b"bad!!"], key=b"k", partition=0)
    shop.drain()
    check(shop, "user")
    shop.produce([frame(schema_id, avro(ORDER, order(1, "first")))], key=b"k", partition=0)
    shop.drain()
    shop.produce([b"bad!!"], key=b"k", partition=0)
    shop.drain()
    check(shop, "user", "first")
    shop.produce([frame(schema_id, avro(ORDER, order(1, "second"))), None], key=b"k", partition=0)
    shop.drain()
    check(shop, "user")
    assert len(shop.dead()) == 2


KEYS = (
    *("", " ", "a", "a ", "A", "\u00e9", "e\u0301", "\x00", "a\x00"),
    *("\U0001f600", "\uffff", "\ud7ff", "x" * 40, "x" * 41),
)


@pytest.mark.long
@pytest.mark.parametrize("format_", ["text", "bytes"])
def test_keys_of_odd_text(shop_of: ShopOf, format_: str) -> None:
    shop = shop_of(write=Upsert(), key_format=format_)
    schema_id = shop.register()
    for word in ("first", "second"):
        for number, key in enumerate(KEYS):
            shop.produce([frame(schema_id, avro(ORDER, order(number, word)))], key=key.encode(), partition=0)
        shop.drain()
    shop.produce([None], key=b"", partition=0)
    shop.drain()
    check(shop, "user", *["second"] * (len(KEYS) - 1))


@pytest.mark.long
@pytest.mark.parametrize("field", ["Id", "id"])
def test_a_value_gains_a_field_with_the_keys_name(shop: Shop, field: str) -> None:
    keyed = Keyed(shop, record("Key", id="long"), record("Value", word="string"))
    keyed.put({"id": 1}, {"word": "first"})
    shop.drain()
    more = record("Value", word="string")
    keyed.evolve({**more, "fields": [*more["fields"], {"name": field, "type": "long", "default": 0}]})
    keyed.put({"id": 1}, {"word": "second", field: 1})
    shop.drain()
    check(shop, "word", "second")


@pytest.mark.long
@pytest.mark.parametrize("format_", ["text", "bytes", "json"])
def test_values_without_a_schema(shop_of: ShopOf, format_: str) -> None:
    shop = shop_of(write=Upsert(), key_format="avro", value_format=format_)
    schema = record("Key", id="long")
    key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(schema))
    for word in ("first", "second"):
        for number in range(3):
            shop.produce([f'"{word}"'.encode()], key=frame(key_id, avro(schema, {"id": number})), partition=0)
        shop.drain()
    shop.produce([None], key=frame(key_id, avro(schema, {"id": 0})), partition=0)
    shop.drain()
    check(shop, "id", 1, 2)


@pytest.mark.long
def test_a_table_is_upgraded_to_version_3(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="avro", table={"format_version": 2})
    keyed = Keyed(shop, record("Key", order_id="long"))
    for word in ("first", "second", "third"):
        for number in range(4):
            if word != "second" or number % 2:
                keyed.put({"order_id": number}, order(number, word))
        shop.drain()
        if word == "second":
            shop.sql("ALTER TABLE {} SET TBLPROPERTIES ('format-version' = '3')")
            shop.pipeline = replace(shop.pipeline, table=replace(shop.pipeline.table, format_version=3))
    check(shop, "user", *["third"] * 4)


@pytest.mark.long
def test_verify_sees_a_doubled_key_beside_deletes_of_a_file_that_is_gone(shop: Shop) -> None:
    keyed = Keyed(shop, record("Key", order_id="long"))
    for numbers in ((0, 1), (2, 3), (0, 2)):  # the last batch has one delete file for both data files
        for number in numbers:
            keyed.put({"order_id": number}, order(number, "x"))
        shop.drain()
    options = "map('rewrite-all', 'true')"
    shop.sql(f"CALL lake.system.rewrite_data_files(table => '{{}}', where => 'order_id < 2', options => {options})")
    check(shop, "order_id", 0, 1, 2, 3)
    shop.sql("INSERT INTO {0} SELECT * FROM {0} WHERE order_id = 3")
    for deep in (False, True):
        proof = shop.verified(deep=deep)
        assert [finding.flaw for finding in proof.findings] == ["doubled"]


@pytest.mark.long
def test_skipped_records_are_counted(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text", on_error=ErrorMode.SKIP)
    schema_id = shop.register()
    for word in ("first", "second"):
        shop.produce([frame(schema_id, avro(ORDER, order(1, word))), b"bad!!"], key=b"k", partition=0)
        shop.produce([frame(schema_id, avro(ORDER, order(2, "no key"))), None], key=None, partition=1)
        shop.produce([None], key=b"\xff", partition=1)
        shop.drain()
    check(shop, "user", "second")


def test_json_text_is_no_key(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="json_schema")
    shop.register()
    schema = {"type": "object", "properties": {"id": {}}}
    shop.registry_admin.register(f"{shop.topic}-key", json.dumps(schema), SchemaType.JSON)
    with pytest.raises(InvalidInput, match="JSON text, which cannot be a key"):
        shop.drain()


def test_a_key_without_fields_is_no_key(shop: Shop) -> None:
    Keyed(shop, record("Key"))
    with pytest.raises(InvalidInput, match="no fields"):
        shop.drain()


@pytest.mark.long
@pytest.mark.parametrize("evolution", [SchemaEvolution.FREEZE, SchemaEvolution.ADD_COLUMNS, SchemaEvolution.WIDEN])
def test_the_key_renames_its_field(shop_of: ShopOf, evolution: SchemaEvolution) -> None:
    shop = shop_of(write=Upsert(), key_format="avro", table={"schema_evolution": evolution})
    keyed = Keyed(shop, record("Key", id="long"), record("Value", word="string"))
    for number in range(3):
        keyed.put({"id": number}, {"word": "first"})
    shop.drain()
    keyed.evolve_key({**record("Key"), "fields": [{"name": "number", "type": "long", "aliases": ["id"]}]})
    keyed.put({"number": 1}, {"word": "second"})
    keyed.put({"number": 2}, None)
    shop.drain()
    check(shop, "word", "first", "second")
