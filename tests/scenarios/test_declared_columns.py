"""JSON with declared columns on a real broker and table, without a registry."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from frazil.declaration import ErrorMode, Upsert
from frazil.errors import IncompatibleSchema
from tests.support.shop import Shop, ShopOf
from tests.support.topics import bodies, redeclared

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
COLUMNS = (
    "orderId long",
    "price decimal(10, 2)",
    "at timestamptz",
    "local timestamp",
    "day io.debezium.time.Date",
    "since org.apache.kafka.connect.data.Timestamp",
    "raw binary",
    "ok boolean",
    "tags list<string>",
    "stock map<string, int>",
    "place struct<`Street No`: int, x: double>",
    "`Ship To` string",
    "extra json",
)
FULL = {
    "orderId": 2**53 + 1,
    "price": 12.34,
    "at": "2024-02-29T12:00:00.25+02:00",
    "local": "2024-02-29T12:00:00.000001",
    "day": 20_454,
    "since": 1_709_208_000_123,
    "raw": "AP8=",
    "ok": True,
    "tags": ["a", None],
    "stock": {"a": 1},
    "place": {"Street No": 7, "x": 0.1, "unknown": 1},
    "Ship To": "é",
    "extra": {"gift": [True, None]},
    "unknown": [1],
}
LANDED = {
    "orderid": 2**53 + 1,
    "price": Decimal("12.34"),
    "at": datetime(2024, 2, 29, 10, 0, 0, 250_000, tzinfo=UTC),
    "local": datetime(2024, 2, 29, 12, 0, 0, 1),
    "day": date(2026, 1, 1),
    "since": datetime(2024, 2, 29, 12, 0, 0, 123_000, tzinfo=UTC),
    "raw": b"\x00\xff",
    "ok": True,
    "tags": ["a", None],
    "stock": [("a", 1)],
    "place": {"street_no": 7, "x": 0.1},
    "ship_to": "é",
    "extra": '{"gift":[true,null]}',
}


def landed(shop: Shop) -> list[dict[str, Any]]:
    """The rows by offset, without the columns of their records."""
    rows = sorted(shop.landed(), key=lambda row: (row["_kafka_partition"], row["_kafka_offset"]))
    return [
        {name: value for name, value in row.items() if not name.startswith(("_kafka", "_ingested"))} for row in rows
    ]


def test_each_column_is_what_the_declaration_says(shop_of: ShopOf) -> None:
    shop = shop_of(value_format="json", columns=COLUMNS)
    wrong = (
        {"orderId": "1"},
        {"price": 1.234},
        {"price": "1.23"},
        {"at": "infinity"},
        {"day": 2**31 - 1},
        {"day": "x"},
    )
    places = (
        {"place": {"x": "1"}},
        {"stock": {"a": 1.5}},
        {"raw": "%"},
        [],
        7,
        b"{",
        b'{"orderId": 1} {}',
        b"\xff",
        None,
    )
    shop.produce(bodies(FULL, {}, {"orderId": None, "price": 7}, b'{"orderId": 1.0}', *wrong, *places), partition=0)
    assert shop.drain().rejected == {"undecodable": len(wrong) + len(places) - 1, "tombstone": 1}
    empty = dict.fromkeys(LANDED)
    assert landed(shop) == [LANDED, empty, {**empty, "price": Decimal("7.00")}, {**empty, "orderid": 1}]
    assert list(landed(shop)[0]) == list(LANDED)
    assert {row["_kafka_schema_id"] for row in shop.landed()} == {None}


@pytest.mark.long
def test_unknown_fields_are_kept_from_their_declaration_on(shop_of: ShopOf) -> None:
    """Rows of a state have those of their last record. Without the option, the column stays, and is null."""
    keyed = {"key_format": "json", "key_columns": ("id long",), "write": Upsert()}
    shop = shop_of(value_format="json", columns=("a long",), **keyed)
    keys = [f'{{"id": {number}}}'.encode() for number in range(4)]
    shop.produce(bodies({"a": 1, "x": 1}), key=keys[0], partition=0)
    shop.drain()
    keeping = redeclared(shop.pipeline, unknown_fields="keep")
    shop.produce(bodies({"a": 2, "x": [1, "é"]}), key=keys[1], partition=0)
    shop.produce(bodies({"a": 3, "x": 1}, {"a": 3}), key=keys[2], partition=0)
    shop.produce(bodies({"a": 4, "_unknown": 4}), key=keys[3], partition=0)
    shop.drain(keeping)
    assert {row["a"]: row["_unknown"] for row in shop.landed()} == {
        1: None,
        2: '{"x":[1,"é"]}',
        3: None,
        4: '{"_unknown":4}',
    }
    shop.produce(bodies({"a": 5, "x": 1}), key=keys[3], partition=0)
    shop.drain()
    assert {row["a"]: row["_unknown"] for row in shop.landed()}[5] is None


@pytest.mark.long
def test_a_table_follows_the_declaration(shop_of: ShopOf) -> None:
    shop = shop_of(value_format="json", columns=("a int", "b string"))
    shop.produce(bodies({"a": 1, "b": "x"}), partition=0)
    shop.drain()
    wider = redeclared(shop.pipeline, columns=("b string", "c list<int>", "a long"))
    shop.produce(bodies({"a": 2**40, "b": "y", "c": [1]}), partition=0)
    shop.drain(wider)
    fewer = redeclared(shop.pipeline, columns=("a int",))
    shop.produce(bodies({"a": 3, "b": "z", "c": [1]}), partition=0)
    shop.drain(fewer)
    assert landed(shop) == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2**40, "b": "y", "c": [1]},
        {"a": 3, "b": None, "c": None},
    ]
    shop.produce(bodies({"a": "4"}), partition=0)
    with pytest.raises(IncompatibleSchema, match="long cannot become string"):
        shop.drain(redeclared(shop.pipeline, columns=("a string",)))
    assert len(landed(shop)) == 3


@pytest.mark.long
def test_the_payload_of_connects_json_lands(shop_of: ShopOf) -> None:
    columns = {"columns": ("id long", "at io.debezium.time.MicroTimestamp"), "key_columns": ("id long",)}
    shop = shop_of(value_format="connect_json", key_format="connect_json", **columns)
    values = [{"schema": {"type": "struct"}, "payload": {"id": 1.0, "at": 7}}, {"payload": {"id": 2}}, {"payload": {}}]
    wrong = [
        {"id": 3},
        {"schema": None, "payload": None},
        {"schema": {}, "payload": []},
        {"payload": {"at": 2**63}},
        None,
    ]
    key = json.dumps({"schema": {}, "payload": {"id": 5, "other": 6}}).encode()
    shop.produce(bodies(*values, *wrong), key=key, partition=0)
    shop.produce(bodies(values[1]), key=b'{"id": 5}', partition=0)
    shop.produce(bodies(values[1]), key=None, partition=0)
    assert shop.drain().rejected == {"undecodable": 4, "tombstone": 1, "key_undecodable": 1}
    rows = sorted(shop.landed(), key=lambda row: row["_kafka_offset"])
    assert [(row["id"], row["at"]) for row in rows] == [
        (1, datetime(1970, 1, 1, microsecond=7)),
        *[(2, None), (None, None), (2, None)],
    ]
    assert [row["_kafka_key"] for row in rows] == [{"id": 5}] * 3 + [None]


def test_jsons_null_deletes_a_row_and_an_empty_value_does_not(shop_of: ShopOf) -> None:
    keyed = {"key_format": "json", "key_columns": ("id long",), "write": Upsert(), "on_error": ErrorMode.DEAD_LETTER}
    shop = shop_of(value_format="json", columns=("id long", "name string"), **keyed)
    for number in range(4):
        shop.produce(bodies({"id": number, "name": f"n{number}"}), key=b'{"id": %d}' % number, partition=0)
    for number, value in enumerate((b"null", b" null\n", b"")):
        shop.produce([value], key=b'{"id": %d}' % number, partition=0)
    assert shop.drain().rejected == {"empty_value": 1}
    assert sorted(row["id"] for row in shop.landed()) == [2, 3]
    shop.assert_proven(deep=True)


@pytest.mark.long
def test_the_fields_of_a_key_are_compared_and_not_its_text(shop_of: ShopOf) -> None:
    keyed = {"key_format": "json", "key_columns": ("id long", "at org.apache.kafka.connect.data.Timestamp")}
    shop = shop_of(
        value_format="json", columns=("name string", "id long"), write=Upsert(), on_error=ErrorMode.DEAD_LETTER, **keyed
    )
    texts = (
        b'{"id": 1, "at": 0}',
        b'{"at":0,"id":1}',
        b'{"at": 0e0, "id": 1.0}',
        b'{"id": 2, "at": 0}',
        b'{"id": 3, "at": 1}',
    )
    for number, key in enumerate(texts):
        shop.produce(bodies({"name": f"n{number}"}), key=key, partition=0)
    for key in (b'{"id": 4}', b"7", b"null", None, b'{"at": 0, "id": 1, "x": 2}', b'{"at": 0, "id": 1, "id": 1}'):
        shop.produce(bodies({"name": "no row"}), key=key, partition=0)
    shop.produce(bodies({"name": "another key", "id": 9}), key=texts[0], partition=0)
    shop.produce(bodies(None), key=b'{"at": 1, "id": 3}', partition=0)
    assert shop.drain().rejected == {"key_null": 1, "key_undecodable": 4, "key_missing": 1, "key_mismatch": 1}
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    found = sorted(((row["id"], row["at"], row["name"]) for row in shop.landed()), key=lambda row: row[0])
    assert found == [(1, epoch, "n2"), (2, epoch, "n3")]
    shop.assert_proven(deep=True)


@pytest.mark.long
@pytest.mark.parametrize("write", [Upsert(), Upsert(key="id")], ids=["record", "value"])
def test_a_decimal_is_one_key_however_many_zeros_it_is_written_with(shop_of: ShopOf, write: Upsert) -> None:
    """In one batch and in several, in the record's key and in the value, and in a delete."""
    columns = {"columns": ("id decimal(6, 2)", "name string"), "key_columns": ("id decimal(6, 2)",)}
    shop = shop_of(value_format="json", key_format="json", write=write, **columns)

    def put(key: str, value: str, name: str) -> None:
        body = f'{{"id": {value}, "name": "{name}"}}'.encode()
        shop.produce([body], key=f'{{"id": {key}}}'.encode(), partition=0)

    put("1.5", "1.50", "first")
    put("-2.0", "-2", "stays")
    put("2.5", "2.500", "goes")
    shop.drain()
    put("1.50", "1.5", "second")
    put("1.500", "1.5", "third")
    shop.produce([None], key=b'{"id":2.50}', partition=0)
    shop.drain()
    assert {(row["id"], row["name"]) for row in shop.landed()} == {
        (Decimal("1.50"), "third"),
        (Decimal("-2.00"), "stays"),
    }
    assert len(shop.landed()) == 2
    shop.assert_proven(deep=True)
