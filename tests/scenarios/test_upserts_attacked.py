"""Upsert tables under keys, schemas and partitions that are easy to get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from frazil.audit.verify import verify
from frazil.clients.registry.schemas import SchemaType
from frazil.clients.secrets import Secrets
from frazil.declaration import ErrorMode, Upsert
from frazil.declaration.options import SchemaEvolution
from frazil.errors import InvalidInput, KeysMoved, WriteModeDiffers
from frazil.lake.read.stored_tables import Lake
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Accepted
from tests.support.keyed_topic import KeyedTopic, Schema, record
from tests.support.keyed_topic import check_column as check
from tests.support.shop import ORDER, Shop, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]


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
def test_the_order_of_the_keys_fields_does_not_matter(shop: Shop) -> None:
    keyed = Keyed(shop, record("Key", region="string", order_id="long"))
    for number in range(3):
        keyed.put({"region": "r", "order_id": number}, order(number, "first"))
    shop.drain()
    keyed.put({"region": "r", "order_id": 1}, order(1, "second"))
    keyed.put({"region": "r", "order_id": 2}, None)
    shop.drain()
    check(shop, "user", "first", "second")


@pytest.mark.long
def test_another_engine_moves_a_column_of_the_key(shop: Shop) -> None:
    keyed = Keyed(shop, record("Key", order_id="long", region="string"))
    for word in ("first", "second"):
        for number in range(3):
            keyed.put({"order_id": number, "region": "r"}, order(number, word))
        shop.drain()
        shop.spark.sql(f"ALTER TABLE lake.{shop.pipeline.table.identifier} ALTER COLUMN region FIRST")
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


STEPS = ["stage.done", "publish.decided", "publish.filled"]


def statements(shop: Shop, step: str, *texts: str) -> Callable[[str], None]:
    """Return a failpoint at which another engine runs these once; `{table}` is the pipeline's table."""
    left = list(texts)

    def failpoint(here: str) -> None:
        while here == step and left:
            shop.spark.sql(left.pop(0).format(table=f"lake.{shop.pipeline.table.identifier}"))

    return failpoint


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
@pytest.mark.parametrize("step", STEPS)
def test_another_engine_renames_a_column_of_the_key_before_a_commit(shop: Shop, step: str) -> None:
    keyed = Keyed(shop, record("Key", order_id="long"))
    for number in range(3):
        keyed.put({"order_id": number}, order(number, "first"))
    shop.drain()
    keyed.put({"order_id": 1}, order(1, "second"))
    keyed.put({"order_id": 2}, None)
    rename = "ALTER TABLE {table} RENAME COLUMN order_id TO number"
    is_searched = step == "publish.filled"  # what was found is still there, and rows name their columns by id
    with nullcontext() if is_searched else pytest.raises(WriteModeDiffers):
        shop.drain(failpoint=statements(shop, step, rename))
    check(shop, "user", *(["first", "second"] if is_searched else ["first"] * 3))
    shop.spark.sql(f"ALTER TABLE lake.{shop.pipeline.table.identifier} RENAME COLUMN number TO order_id")
    shop.drain()
    check(shop, "user", "first", "second")


@pytest.mark.long
@pytest.mark.parametrize("step", STEPS)
def test_another_column_takes_the_name_of_a_keys_column_before_a_commit(shop: Shop, step: str) -> None:
    keyed = Keyed(shop, record("Key", order_id="long"), record("Value", order_id="long", line="long", user="string"))
    for number in range(3):
        keyed.put({"order_id": number}, {"order_id": number, "line": 10 + number, "user": "first"})
    shop.drain()
    keyed.put({"order_id": 1}, {"order_id": 1, "line": 11, "user": "second"})
    keyed.put({"order_id": 2}, None)
    names = ("order_id", "was"), ("line", "order_id"), ("was", "line")
    swap = [f"ALTER TABLE {{table}} RENAME COLUMN {old} TO {new}" for old, new in names]
    with pytest.raises(WriteModeDiffers):
        shop.drain(failpoint=statements(shop, step, *swap))
    check(shop, "user", *["first"] * 3)
    for statement in ("line TO was", "order_id TO line", "was TO order_id"):
        shop.spark.sql(f"ALTER TABLE lake.{shop.pipeline.table.identifier} RENAME COLUMN {statement}")
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
    "",
    " ",
    "a",
    "a ",
    "A",
    "\u00e9",
    "e\u0301",
    "\x00",
    "a\x00",
    "\U0001f600",
    "\uffff",
    "\ud7ff",
    "x" * 40,
    "x" * 41,
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
def test_keys_of_many_types(shop: Shop) -> None:
    key = record(
        "Key",
        at={"type": "long", "logicalType": "timestamp-micros"},
        local={"type": "long", "logicalType": "local-timestamp-micros"},
        day={"type": "int", "logicalType": "date"},
        price={"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 9},
        yes="boolean",
        raw="bytes",
        small="int",
    )
    keyed = Keyed(shop, key, record("Value", word="string"))

    def of(number: int) -> dict[str, Any]:
        return {
            "at": datetime(1899 + number, 3, 4, 5, 6, 7, 123457, tzinfo=UTC),
            "local": datetime(1850 + number, 3, 4, 5, 6, 7, 999999),
            "day": date(1500 + number, 2, 28),
            "price": Decimal(number - 1) / 1_000_000_000,
            "yes": bool(number % 2),
            "raw": bytes(range(number)),
            "small": -number,
        }

    for number in range(4):
        keyed.put(of(number), {"word": "first"})
    shop.drain()
    for number in range(4):
        keyed.put(of(number), {"word": f"second {number}"})
    keyed.put(of(3), None)
    shop.drain()
    check(shop, "word", "second 0", "second 1", "second 2")


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
            table = f"lake.{shop.pipeline.table.identifier}"
            shop.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '3')")
            shop.pipeline = replace(shop.pipeline, table=replace(shop.pipeline.table, format_version=3))
    check(shop, "user", *["third"] * 4)


@pytest.mark.long
def test_a_key_of_one_number(shop: Shop) -> None:
    keyed = Keyed(shop, {"type": "int"})
    for word in ("first", "second"):
        for number in (-5, 0, 7):
            keyed.put(number, order(number, word))
        shop.drain()
    keyed.put(0, None)
    shop.drain()
    check(shop, "user", "second", "second")


@pytest.mark.long
def test_verify_sees_a_doubled_key_beside_deletes_of_a_file_that_is_gone(shop: Shop) -> None:
    keyed = Keyed(shop, record("Key", order_id="long"))
    for numbers in ((0, 1), (2, 3), (0, 2)):  # the last batch has one delete file for both data files
        for number in numbers:
            keyed.put({"order_id": number}, order(number, "x"))
        shop.drain()
    table = shop.pipeline.table.identifier
    shop.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', where => 'order_id < 2', "
        "options => map('rewrite-all', 'true'))"
    )
    check(shop, "order_id", 0, 1, 2, 3)
    shop.spark.sql(f"INSERT INTO lake.{table} SELECT * FROM lake.{table} WHERE order_id = 3")
    for deep in (False, True):
        proof = verify(shop.pipeline, Lake(shop.lake, Secrets({}).read), deep=deep)
        assert [finding.flaw for finding in proof.findings] == ["doubled"]


@pytest.mark.long
def test_a_later_life_of_a_topic_has_partitions_too(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="text")
    schema_id = shop.register()

    def put(word: str, partition: int) -> None:
        shop.produce([frame(schema_id, avro(ORDER, order(1, word)))], key=b"k", partition=partition)

    put("of the first life", 1)
    shop.drain()
    shop.delete()
    shop.create(2)
    shop.new_producer(2)
    accept(shop.pipeline, Accepted.TOPIC_RECREATED, "as the test says", shop.job())
    put("second life", 0)
    shop.drain()
    put("of another partition", 1)
    with pytest.raises(KeysMoved):
        shop.drain()
    check(shop, "user", "second life")


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "transform"),
    [(2, "bucket(4, id)"), (3, "truncate(2, name)"), (3, "bucket(4, id)"), (2, "truncate(2, name)")],
)
def test_a_table_is_partitioned_by_a_part_of_the_key(shop_of: ShopOf, version: int, transform: str) -> None:
    table = {"format_version": version, "partition_by": (transform,), "sort_by": ("word",)}
    shop = shop_of(write=Upsert(), key_format="avro", table=table)
    keyed = Keyed(shop, record("Key", id="int", name="string"), record("Value", id="long", word="string"))
    for word in ("first", "second"):
        for number in range(-3, 4):
            keyed.put({"id": number, "name": f"ä/{number}"}, {"id": number, "word": f"{word} {number}"})
        shop.drain()
    shop.spark.sql(f"DELETE FROM lake.{shop.pipeline.table.identifier} WHERE id = 1")
    keyed.put({"id": 1, "name": "ä/1"}, None)
    keyed.put({"id": 2, "name": "ä/2"}, None)
    shop.drain()
    assert sorted(row["word"] for row in shop.landed()) == sorted(f"second {n}" for n in (-3, -2, -1, 0, 3))


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


@pytest.mark.long
def test_a_key_in_json_schema(shop_of: ShopOf) -> None:
    shop = shop_of(write=Upsert(), key_format="json_schema")
    value_id = shop.register()
    schema = {"type": "object", "properties": {"Region": {"type": "string"}, "order_id": {"type": "integer"}}}
    key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(schema), SchemaType.JSON)
    keys = ('{"order_id": 1, "Region": "\u00e9"}', '{"Region":"\\u00e9","order_id":1}', '{"Region":"e","order_id":1.0}')
    for number, key in enumerate(keys):
        body = frame(value_id, avro(ORDER, order(1, f"{number}")))
        shop.produce([body], key=frame(key_id, key.encode()), partition=0)
        shop.drain()
    check(shop, "user", "1", "2")


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
