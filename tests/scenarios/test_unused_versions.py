"""A registered version whose key or order is no key holds up no topic, whether a record has it or not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from frazil.clients.registry.schemas import SchemaType
from frazil.declaration import Append, Changelog, ErrorMode, Order, Upsert
from tests.support.keyed_topic import record
from tests.support.proto import protobuf
from tests.support.shop import ShopOf, avro, frame
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
UNION = ["long", "string"]


class Case(NamedTuple):
    """The write mode, the first and a later schema of the keys, and a later one of the values."""

    write: Any
    key: Any = None
    later_key: Any = None
    later: Any = None


VALUE = record("Order", order_id="long", at="long", user="string")
KEY = record("Key", order_id="long")
CASES = {
    "a key that becomes a union": Case(Upsert(), KEY, record("Key", order_id=UNION)),
    "a column of the key that becomes a union": Case(
        Upsert(key=("order_id",)), later=record("Order", order_id=UNION, at="long", user="string")
    ),
    "a key with a field that is no key": Case(Upsert(), KEY, record("Key", order_id="long", x="double")),
    "a key of one value that becomes a union": Case(Upsert(), "long", UNION),
    "a key that becomes a number with its own scale": Case(
        Changelog(), KEY, record("Key", order_id={"type": "bytes", "logicalType": "big-decimal"})
    ),
    "a key of another type than the value": Case(
        Upsert(key=("order_id",)), record("Key", id="long"), record("Key", order_id="string")
    ),
    "a field of the key that becomes a union in the value": Case(
        Upsert(), KEY, later=record("Order", order_id=UNION, at="long", user="string")
    ),
    "an order that becomes a union": Case(
        Upsert(key=("order_id",), order_by=Order("at")), later=record("Order", order_id="long", at=UNION, user="string")
    ),
}


@pytest.mark.parametrize("kind", first_short(CASES, short=2))
def test_a_version_whose_key_is_none_holds_up_no_topic(shop_of: ShopOf, kind: str) -> None:
    write, key, later_key, later = CASES[kind]
    more = {} if key is None else {"key_format": "avro"}
    shop = shop_of(partitions=1, write=write, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100, **more)

    def registered(schema: Any, side: str) -> int:
        return shop.registry_admin.register(f"{shop.topic}-{side}", json.dumps(schema))

    values, keys = registered(VALUE, "value"), None if key is None else registered(key, "key")

    def put(number: int) -> None:
        value = frame(values, avro(VALUE, {"order_id": number, "at": number, "user": "u"}))
        name = b"%d" % number
        if keys is not None:
            is_record = isinstance(key, dict)
            content = {field["name"]: number for field in key["fields"]} if is_record else number
            name = frame(keys, avro(key if is_record else {"type": key}, content))
        shop.produce([value], key=name)

    put(1)
    shop.drain()
    rejected = {}
    if later_key is not None:
        schema_id = registered(later_key, "key")
        rejected = {"key_schema": 1}
    else:
        schema_id = registered(later, "value")
        rejected = {"incompatible_schema": 1}
    put(2)
    shop.drain()
    assert len(shop.landed()) == 2, "the version was not used"
    odd = frame(schema_id, b"\x00\x12\x02\x02x")
    good = frame(values, avro(VALUE, {"order_id": 9, "at": 9, "user": "u"}))
    if later_key is not None:
        shop.produce([good], key=odd)
    else:
        shop.produce([odd], key=b"9" if keys is None else frame(keys, avro(key, {"order_id": 9})))
    put(3)
    assert shop.drain().rejected == rejected
    assert len(shop.landed()) == 3
    shop.assert_proven(deep=True)


def in_connect(fields: dict[str, str], payload: Any) -> bytes:
    listed = [{"field": name, "type": of, "optional": False} for name, of in fields.items()]
    return json.dumps({"schema": {"type": "struct", "fields": listed}, "payload": payload}).encode()


ODD = {
    "a key of one value": (Upsert(), b'{"schema": {"type": "string"}, "payload": "a9"}', None),
    "a key of another type": (Upsert(), in_connect({"id": "int64"}, {"id": 5}), None),
    "a key of one value, append": (Append(), b'{"schema": {"type": "string"}, "payload": "a9"}', None),
    "a key that is an empty record": (Upsert(), in_connect({}, {}), None),
    "a key of one value that is no key": (
        Upsert(),
        b'{"schema": {"type": "array", "items": {"type": "int64"}}, "payload": [1]}',
        None,
    ),
    "a column of the key": (Upsert(key=("order_id",)), None, {"order_id": "double", "at": "int64"}),
    "a value that lacks the key": (Upsert(key=("order_id",)), None, {"at": "int64"}),
    "a changelog's value that lacks the key": (Changelog(key=("order_id",)), None, {"at": "int64"}),
    "a value that lacks the order": (Upsert(key=("order_id",), order_by=Order("at")), None, {"order_id": "int64"}),
    "an order": (Upsert(key=("order_id",), order_by=Order("at")), None, {"order_id": "int64", "at": "double"}),
}


@pytest.mark.parametrize("kind", first_short(ODD, short=2))
def test_a_rejected_record_that_becomes_the_oldest_of_its_topic_decides_nothing(shop_of: ShopOf, kind: str) -> None:
    write, odd_key, odd_value = ODD[kind]
    keyed = {} if odd_key is None else {"key_format": "connect_json"}
    more = {"write": write, "on_error": ErrorMode.DEAD_LETTER, "max_rejected_percent": 100, **keyed}
    shop = shop_of(partitions=1, value_format="connect_json", **more)

    def put(number: int, key: bytes | None = None, types: dict[str, str] | None = None) -> None:
        types = types or {"order_id": "int64", "at": "int64"}
        value = in_connect(types, dict.fromkeys(types, number))
        name = b"%d" % number if odd_key is None else in_connect({"id": "string"}, {"id": f"a{number}"})
        shop.produce([value], key=key or name)

    put(1)
    shop.drain()
    put(9, odd_key, odd_value)
    put(2)
    assert sum(shop.drain().rejected.values()) == 1
    shop.delete_records(1)
    put(3)
    shop.drain()
    put(9, odd_key, odd_value)
    put(4)
    assert sum(shop.drain().rejected.values()) == 1, "both schemas that a start finds are of rejected records"
    assert sorted(row["at"] for row in shop.landed()) == [1, 2, 3, 4]
    shop.assert_proven(deep=True)


@pytest.mark.parametrize("write", first_short([Upsert(), Append()]))
def test_a_version_that_fits_only_with_those_before_it_lands(shop_of: ShopOf, write: Any) -> None:
    """Its column is JSON text since the first version, whose object had no properties."""
    shop = shop_of(partitions=1, value_format="json_schema", write=write)
    objects: tuple[dict[str, Any], ...] = ({}, {"properties": {"a": {"type": "string"}}})
    for number, of in enumerate(objects):
        schema = {"type": "object", "properties": {"id": {"type": "integer"}, "meta": {"type": "object", **of}}}
        schema_id = shop.registry_admin.register(f"{shop.topic}-value", json.dumps(schema), SchemaType.JSON)
        value = json.dumps({"id": number, "meta": {"a": "x"}}).encode()
        shop.produce([frame(schema_id, value)], key=b"%d" % number)
        assert shop.drain().rejected == {}
    assert {row["id"]: row["meta"] for row in shop.landed()} == dict.fromkeys((0, 1), '{"a":"x"}')


def test_a_name_that_folds_like_another_ones_keeps_its_column(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    versions = (record("R", ID="long", id="string"), {"ID": 1, "id": "s1"}), (record("R", id="string"), {"id": "s2"})
    for schema, value in versions:
        schema_id = shop.register(schema)
        shop.produce([frame(schema_id, avro(schema, value))])
        assert shop.drain().rejected == {}
    names = next(name for name in shop.landed()[0] if name.startswith("id_"))
    assert sorted(row[names] for row in shop.landed()) == ["s1", "s2"]


@pytest.mark.long
def test_a_field_that_folds_like_the_keys_is_a_column_of_its_own(shop_of: ShopOf) -> None:
    key, both, one = record("K", ID="long"), record("R", id="double", x="long"), record("R", x="long")
    shop = shop_of(partitions=1, key_format="avro", write=Upsert())
    keys = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(key))
    for number, (schema, value) in enumerate(
        ((both, {"id": 0.5, "x": 1}), (one, {"x": 2}), (both, {"id": 1.5, "x": 3}))
    ):
        schema_id = shop.register(schema)
        shop.produce([frame(schema_id, avro(schema, value))], key=frame(keys, avro(key, {"ID": number})))
        assert shop.drain().rejected == {}
    assert sorted((row["id"], row["x"]) for row in shop.landed()) == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.long
def test_the_version_that_a_keys_column_was_made_for_keeps_landing(shop_of: ShopOf) -> None:
    """A record or null is one value, whose column is a struct, as that of a record is."""
    key = record("K", k="long")
    shop = shop_of(partitions=1, key_format="avro")
    value = shop.register()
    nullable = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(["null", key]))
    shop.produce(shop.orders(1, value), key=frame(nullable, b"\x02" + avro(key, {"k": 1})))
    shop.drain()
    shop.registry_admin.register(f"{shop.topic}-key", json.dumps(key))
    shop.produce(shop.orders(1, value, first=1), key=frame(nullable, b"\x02" + avro(key, {"k": 2})))
    assert shop.drain().rejected == {}
    assert len(shop.landed()) == 2


@pytest.mark.long
@pytest.mark.parametrize("write", [Upsert(key=("order_id",), order_by=Order("at")), Changelog(key=("order_id",))])
def test_the_table_has_the_key_that_the_last_registered_version_lacks(shop_of: ShopOf, write: Any) -> None:
    shop = shop_of(partitions=1, write=write, on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100)
    value = shop.register(VALUE)
    shop.produce([frame(value, avro(VALUE, {"order_id": 1, "at": 1, "user": "u"}))], key=b"1")
    shop.drain()
    shop.registry_admin.delete_subject(f"{shop.topic}-value")
    shop.registry_admin.delete_subject(f"{shop.topic}-value", permanent=True)
    lacks = record("Order", user="string")
    other = shop.register(lacks)
    shop.produce([frame(other, avro(lacks, {"user": "u"}))], key=b"2")
    assert sum(shop.drain().rejected.values()) == 1
    assert len(shop.landed()) == 1
    shop.assert_proven(deep=True)


RENAMED = {"name": "b", "type": "int", "aliases": ["at"]}


@pytest.mark.parametrize("write", first_short([Append(), Upsert(key=("order_id",), order_by=Order("at"))]))
def test_a_column_is_renamed_past_a_version_that_is_not_used(shop_of: ShopOf, write: Any) -> None:
    """Both versions stay the one column, and so does the order."""
    shop = shop_of(partitions=1, write=write)
    first, union = record("R", order_id="long", at="int"), record("R", order_id="long", at=["int", "string"])
    renamed = {**first, "fields": [first["fields"][0], RENAMED]}
    ids = {}
    for number, schema in ((1, first), (None, union), (2, renamed), (3, first), (4, renamed)):
        text = json.dumps(schema)
        ids[text] = ids.get(text) or shop.registry_admin.register(f"{shop.topic}-value", text)
        if number is not None:
            value = {"order_id": number, schema["fields"][1]["name"]: number}
            shop.produce([frame(ids[text], avro(schema, value))], key=b"%d" % number)
        assert shop.drain().rejected == {}
    assert sorted((row["order_id"], row["b"]) for row in shop.landed()) == [(n, n) for n in (1, 2, 3, 4)]
    shop.assert_proven(deep=True)


@pytest.mark.long
@pytest.mark.parametrize("order", [None, "at"])
def test_an_unused_version_of_a_renamed_key_or_order_holds_up_no_new_table(shop_of: ShopOf, order: str | None) -> None:
    name = order or "order_id"
    write = Upsert(key=("order_id",), order_by=Order(order)) if order else Upsert(key=("order_id",))
    shop = shop_of(partitions=1, write=write)
    first = record("R", order_id="long", at="int")
    fields = {field["name"]: field for field in first["fields"]}
    renamed = {**first, "fields": [*({**fields, name: {**fields[name], "name": "k", "aliases": [name]}}).values()]}
    union = {**first, "fields": [*({**fields, name: {"name": "k", "type": ["int", "string"]}}).values()]}
    schema_id, *_ = (shop.register(one) for one in (first, renamed, union))
    shop.produce([frame(schema_id, avro(first, {"order_id": 1, "at": 1}))], key=b"1")
    assert shop.drain().rejected == {}
    assert [row["k"] for row in shop.landed()] == [1]


@pytest.mark.long
@pytest.mark.parametrize("oldest", ["double", {"type": "array", "items": "long"}])
def test_an_unused_oldest_key_that_is_none_holds_up_no_new_table(shop_of: ShopOf, oldest: Any) -> None:
    shop = shop_of(partitions=1, write=Upsert(), key_format="avro")
    shop.registry_admin.register(f"{shop.topic}-key", json.dumps(oldest))
    keys = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(KEY))
    value = shop.register(VALUE)
    name = frame(keys, avro(KEY, {"order_id": 1}))
    shop.produce([frame(value, avro(VALUE, {"order_id": 1, "at": 1, "user": "u"}))], key=name)
    assert shop.drain().rejected == {}
    assert [row["order_id"] for row in shop.landed()] == [1]


@pytest.mark.parametrize(("names", "field"), [(None, "orderId"), (("order_id",), "order_id")])
def test_a_wider_key_version_stops_no_table_that_does_not_widen(shop_of: ShopOf, names: Any, field: str) -> None:
    table = {"schema_evolution": "add_columns"}
    write = Upsert() if names is None else Upsert(key=names)
    shop = shop_of(
        partitions=1,
        write=write,
        key_format="avro",
        table=table,
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
    )
    value = record("Order", order_id="int", user="string")

    def put(number: int, of: str) -> None:
        schema_id = shop.registry_admin.register(f"{shop.topic}-value", json.dumps(value))
        key = record("Key", **{field: of})
        key_id = shop.registry_admin.register(f"{shop.topic}-key", json.dumps(key))
        body = frame(schema_id, avro(value, {"order_id": number, "user": "u"}))
        shop.produce([body], key=frame(key_id, avro(key, {field: number})))

    put(1, "int")
    shop.drain()
    shop.registry_admin.register(f"{shop.topic}-key", json.dumps(record("Key", **{field: "long"})))
    put(2, "int")
    assert shop.drain().rejected == {}
    put(3, "long")
    assert shop.drain().rejected == {"key_schema": 1}
    assert sorted(row["order_id"] for row in shop.landed()) == [1, 2]


def test_ints_that_are_longer_are_no_keys_of_others(shop_of: ShopOf) -> None:
    """Writers in Python do not check the range of an int, and readers in Java drop what is beyond it."""
    shop = shop_of(
        partitions=1, write=Upsert(), key_format="avro", on_error=ErrorMode.DEAD_LETTER, max_rejected_percent=100
    )
    key, value = record("Key", order_id="int"), record("Order", order_id="long", user="string")
    ids = [
        shop.registry_admin.register(f"{shop.topic}-{side}", json.dumps(of))
        for side, of in (("key", key), ("value", value))
    ]
    for number in (0, 2**31, 7 - 2**31):
        body = frame(ids[1], avro(value, {"order_id": number, "user": "u"}))
        shop.produce([body], key=frame(ids[0], avro(key, {"order_id": number})))
    assert shop.drain().rejected == {"key_undecodable": 1}
    assert sorted(row["order_id"] for row in shop.landed()) == [7 - 2**31, 0]


@pytest.mark.parametrize("value_format", ["avro", "protobuf"])
def test_a_deleted_version_counts_when_a_record_names_it(shop_of: ShopOf, value_format: str) -> None:
    """A version that was registered by mistake and deleted decides on no column and no key."""
    shop = shop_of(value_format=value_format, write=Upsert(key=("id",)))
    subject = f"{shop.topic}-value"
    proto = 'syntax = "proto3"; message R {{ {} id = 1; {} extra = 2; }}'
    if value_format == "avro":
        versions = [record("R", id="long", extra=of) for of in ("int", "string")]
        wrong = shop.register(versions[0])
        shop.registry_admin.set_compatibility("NONE", subject)
        right = shop.register(versions[1])
        value = frame(right, avro(versions[1], {"id": 1, "extra": "a"}))
        of_deleted = frame(wrong, avro(versions[0], {"id": 2, "extra": 7}))
    else:
        versions = [proto.format(*types) for types in (("double", "int32"), ("int64", "string"))]
        shop.registry_admin.register(subject, versions[0], SchemaType.PROTOBUF)
        shop.registry_admin.set_compatibility("NONE", subject)
        right = shop.registry_admin.register(subject, versions[1], SchemaType.PROTOBUF)
        value, of_deleted = frame(right, b"\x00" + protobuf(versions[1], {"id": "1", "extra": "a"})), b""
    shop.registry_admin.delete_version(subject, 1)
    shop.produce([value])
    shop.drain()
    assert [(row["id"], row["extra"]) for row in shop.landed()] == [(1, "a")]
    if of_deleted:
        shop.pipeline = replace(shop.pipeline, on_error=ErrorMode.DEAD_LETTER)
        shop.produce([of_deleted])
        assert shop.drain().rejected == {"incompatible_schema": 1}
    shop.assert_proven()
