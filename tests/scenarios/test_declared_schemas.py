"""Avro, JSON and Protobuf with declared schemas on a real broker and table: the document alone says what the bytes are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frazil.clients.secrets import Secrets
from frazil.dead_letters.show import show
from frazil.declaration import ErrorMode, Framing, Pipeline, Upsert, canonical, parse
from frazil.declaration.documents.document import document
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.lake.read.stored_tables import Lake
from frazil.schemas.wire_format import prefixed
from tests.support.declared_schemas import avsc, descriptors, json_file, single_object
from tests.support.proto import protobuf
from tests.support.shop import Shop, ShopOf, avro
from tests.support.topics import bodies, redeclared

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
LATER = {**ORDER, "fields": [*ORDER["fields"], {"name": "price", "type": "double", "default": 0.5}]}
KEY = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
PROTO = """syntax = "proto3"; package shop;
message Key { int64 id = 1; }
message Order { int64 id = 1; string note = 2; }"""


def from_document(pipeline: Pipeline) -> Pipeline:
    """The pipeline as a job gets it."""
    (found,) = parse(canonical(document([pipeline])))
    return found


def rows(shop: Shop, *names: str) -> list[tuple[Any, ...]]:
    found = sorted(shop.landed(), key=lambda row: (row["_kafka_partition"], row["_kafka_offset"]))
    return [tuple(row[name] for name in names) for row in found]


def test_plain_avro_is_a_state_by_its_plain_key(shop_of: ShopOf) -> None:
    shop = shop_of(
        schema=(avsc(ORDER),),
        key_format="avro",
        key_schema=(avsc(KEY, "key.avsc"),),
        write=Upsert(),
        on_error=ErrorMode.DEAD_LETTER,
    )
    one, two, three = (avro(KEY, {"id": number}) for number in (1, 2, 3))
    first, second = (avro(ORDER, {"id": number, "note": "a"}) for number in (1, 2))
    wrong = [first + b"\0", first[:-1], prefixed(7, first), single_object(ORDER, {"id": 1, "note": None})]
    wrong.append(prefixed(7, first[:-1]))
    shop.produce([first, avro(ORDER, {"id": 1, "note": "b"})], key=one, partition=0)
    shop.produce([second, None], key=two, partition=0)
    shop.produce([avro(ORDER, {"id": 3, "note": None}), *wrong], key=three, partition=0)
    shop.produce([first], key=one + b"\0", partition=0)
    total = shop.drain(from_document(shop.pipeline))
    assert total.rejected == {"undecodable": 3, "registry_frame": 1, "single_object": 1, "key_undecodable": 1}
    assert rows(shop, "id", "note", "_kafka_schema_id") == [(1, "b", None), (3, None, None)]
    shop.assert_proven(deep=True)
    letter = show(shop.pipeline, Lake(shop.lake, Secrets({}).read), partition=0, offset=5)
    assert letter is not None
    assert letter.value.attempt is not None
    assert "remove schema" not in (letter.letter.message or "")
    assert letter.value.attempt.what == "1 bytes follow the value"
    framed = show(shop.pipeline, Lake(shop.lake, Secrets({}).read), partition=0, offset=9)
    assert framed is not None
    assert framed.value.attempt is not None
    assert (
        "or the first 5 bytes are a registry's frame with schema id 7: then remove schema" in framed.value.attempt.what
    )


@pytest.mark.long
def test_a_job_lands_a_declared_schema_where_there_is_no_registry(
    shop_of: ShopOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = {"key_format": "avro", "key_schema": (avsc("long", "key.avsc"),)}
    shop = shop_of(schema=(avsc(ORDER),), write=Upsert(key="id"), **keyed)
    lone = replace(shop.environment, registry=None)
    monkeypatch.setattr(Shop, "environment", property(lambda _: lone))
    shop.produce([avro(ORDER, {"id": 1, "note": "a"}), avro(ORDER, {"id": 1, "note": "b"})], key=b"\x02", partition=0)
    job = shop.process(tmp_path)
    _, said = job.communicate(timeout=300)
    assert job.returncode == 0, said
    assert rows(shop, "id", "note", "_kafka_key") == [(1, "b", 1)]


@pytest.mark.long
def test_records_of_several_versions_name_theirs(shop_of: ShopOf) -> None:
    shop = shop_of(schema=(avsc(ORDER, "v1.avsc"),), framing=Framing.SINGLE_OBJECT)
    old, new = single_object(ORDER, {"id": 1, "note": "a"}), single_object(LATER, {"id": 2, "note": None, "price": 2.5})
    shop.produce([old, new], partition=0)
    assert shop.drain(from_document(shop.pipeline)).rejected == {"unknown_fingerprint": 1}
    shop.produce([new, old, avro(ORDER, {"id": 4, "note": None})], partition=0)
    both = redeclared(shop.pipeline, schema=(avsc(ORDER, "v1.avsc"), avsc(LATER, "v2.avsc")))
    assert shop.drain(from_document(both)).rejected == {"no_fingerprint": 1}
    assert rows(shop, "id", "note", "price") == [(1, "a", None), (2, None, 2.5), (1, "a", None)]
    shop.assert_each_record_once()


@pytest.mark.long
def test_plain_json_and_its_key_land_by_their_schemas(shop_of: ShopOf) -> None:
    properties = {"id": {"type": "integer"}, "note": {"type": "string"}}
    value, key = ({"type": "object", "properties": each} for each in (properties, {"id": {"type": "integer"}}))
    shop = shop_of(
        value_format="json_schema",
        schema=(json_file(value),),
        key_format="json_schema",
        key_schema=(json_file(key, "key.json"),),
        write=Upsert(),
        on_error=ErrorMode.DEAD_LETTER,
    )
    shop.produce(bodies({"id": 1, "note": "a"}, {"id": 1, "note": "b"}, b"{} {}"), key=b'{"id": 1}', partition=0)
    shop.produce(bodies({"id": 2, "note": "c"}), key=b'{"id": 2.0}', partition=0)
    shop.produce(bodies({"id": 3}), key=b'{"id": 3, "other": 4}', partition=0)
    assert shop.drain(from_document(shop.pipeline)).rejected == {"undecodable": 1, "key_undecodable": 1}
    assert rows(shop, "id", "note") == [(1, "b"), (2, "c")]
    wider = redeclared(
        shop.pipeline, schema=(json_file({**value, "properties": {**properties, "more": {"type": "boolean"}}}),)
    )
    shop.produce(bodies({"id": 1, "more": True}), key=b'{"id": 1}', partition=0)
    shop.drain(from_document(wider))
    assert rows(shop, "id", "note", "more") == [(2, "c", None), (1, None, True)]
    shop.produce(bodies({"id": 1}), key=b'{"id": 1}', partition=0)
    other = json_file({**value, "properties": {**properties, "note": {"type": "boolean"}}})
    with pytest.raises(IncompatibleSchema, match="string cannot become boolean"):
        shop.drain(redeclared(shop.pipeline, schema=(other,)))
    capital = json_file({**value, "properties": {"id": {"type": "integer"}, "Note": {"type": "string"}}})
    shop.produce(bodies({"id": 2, "note": "waited"}), key=b'{"id": 2}', partition=0)
    shop.produce(bodies({"id": 3, "Note": "d"}), key=b'{"id": 3}', partition=0)
    shop.drain(redeclared(shop.pipeline, schema=(capital,)))
    assert rows(shop, "id", "note", "more") == [(1, None, None), (2, None, None), (3, "d", None)]
    text = json_file({"type": "object", "properties": {"id": {"type": "string"}}}, "key.json")
    shop.produce(bodies({"note": "e"}), key=b'{"id": "3"}', partition=0)
    with pytest.raises(InvalidInput, match="the record's key has the field id as string"):
        shop.drain(redeclared(shop.pipeline, key_schema=(text,)))


@pytest.mark.long
def test_plain_messages_and_their_keys_land_by_descriptors(shop_of: ShopOf) -> None:
    shop = shop_of(
        value_format="protobuf",
        schema=(descriptors(PROTO),),
        record_name="shop.Order",
        key_format="protobuf",
        key_schema=(descriptors(PROTO),),
        key_record_name="shop.Key",
        write=Upsert(),
        on_error=ErrorMode.DEAD_LETTER,
    )
    one, two = (protobuf(PROTO, {"id": number}, message="shop.Key") for number in (1, 2))
    body = protobuf(PROTO, {"id": 1, "note": "a"}, message="shop.Order")
    shop.produce([body, protobuf(PROTO, {"id": 1, "note": "b"}, message="shop.Order")], key=one, partition=0)
    shop.produce(
        [protobuf(PROTO, {"id": 2}, message="shop.Order"), prefixed(7, body, (1,)), body[:-1]], key=two, partition=0
    )
    shop.produce([body], key=b"\xff", partition=0)
    total = shop.drain(from_document(shop.pipeline))
    assert total.rejected == {"registry_frame": 1, "undecodable": 1, "key_undecodable": 1}
    assert rows(shop, "id", "note") == [(1, "b"), (2, "")]
    shop.assert_proven(deep=True)


def test_a_declared_message_whose_fields_get_other_names_keeps_its_columns_and_its_key(shop_of: ShopOf) -> None:
    """A descriptor set has one version, so the table alone knows the earlier names."""
    message = {"value_format": "protobuf", "record_name": "shop.Order"}
    shop = shop_of(schema=(descriptors(PROTO),), write=Upsert(key="id"), **message)
    shop.produce([protobuf(PROTO, {"id": 1, "note": "a"}, message="shop.Order")], partition=0)
    shop.drain()
    renamed = PROTO.replace(" id =", " number =").replace(" note =", " remark =")
    for key, number in (("id", 1), ("number", 2)):
        changed = redeclared(shop.pipeline, schema=(descriptors(renamed),))
        shop.produce([protobuf(renamed, {"number": number, "remark": key}, message="shop.Order")], partition=0)
        shop.drain(replace(changed, write=Upsert(key=key)))
    assert rows(shop, "id", "note") == [(1, "id"), (2, "number")]


@pytest.mark.parametrize("value_format", ["json_schema", "protobuf"])
def test_each_record_is_a_row_by_a_declared_schema_alone(shop_of: ShopOf, value_format: str) -> None:
    """The table appends, and no registry is at the address of one."""
    values = [{"id": 1, "note": "a"}, {"id": 1, "note": "b"}]
    if value_format == "protobuf":
        declared: dict[str, Any] = {"schema": (descriptors(PROTO),), "record_name": "shop.Order"}
        first, second = (protobuf(PROTO, value, message="shop.Order") for value in values)
    else:
        properties = {"id": {"type": "integer"}, "note": {"type": "string"}}
        declared = {"schema": (json_file({"type": "object", "properties": properties}),)}
        first, second = bodies(*values)
    shop = shop_of(value_format=value_format, on_error=ErrorMode.DEAD_LETTER, **declared)
    for produced in ([first, second, b"\xff"], [first]):
        shop.produce(produced, partition=0)
        shop.drain(from_document(shop.pipeline), registry=shop.registry("http://127.0.0.1:9"))
    assert rows(shop, "id", "note") == [(1, "a"), (1, "b"), (1, "a")]
    assert [letter["reason"] for letter in shop.dead()] == ["undecodable"]
    shop.assert_each_record_once()
