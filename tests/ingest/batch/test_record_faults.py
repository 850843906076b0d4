"""What a run says of a rejected record: version and field, or the place in its bytes, and no value of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.clients.kafka_records import Record
from frazil.dead_letters.diagnosis import attempt
from frazil.declaration import ConnectJson, Json, Pipeline, Table, Topic, Upsert
from frazil.decode.writers.seen_frames import SeenFrames
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.ingest.batch.record_faults import fault
from frazil.schemas.evolution.table_mapping import landing
from tests.support.fake_registry import FakeRegistry
from tests.support.shop import ORDER, avro, frame


def record(value: bytes, key: bytes | None = None) -> Record:
    return Record(0, 5, key, value, 0, 0, ())


def said(topic: Topic, writers: WriterSchemas, found: Record, reason: str) -> str:
    pipeline = Pipeline(topic=topic, table=Table("shop.t"), write="upsert")
    table = writers.versions[0][1]
    return fault(pipeline, found, reason, writers, landing(table, writers.versions).incompatible)


@pytest.mark.parametrize(
    ("kinds", "column"), [(("int32", "double"), "qty double"), (("int32", "string"), "qty string")]
)
def test_types_in_turn_name_the_field_both_types_and_a_declared_column(kinds: tuple[str, str], column: str) -> None:
    topic = Topic("mixed", value="connect_json", key="text")
    writers, schemas = writer_schemas(topic, None), []
    for kind in kinds:
        fields = [{"type": kind, "optional": True, "field": "qty"}]
        schemas.append({"type": "struct", "optional": False, "fields": fields})
    writers.learn(SeenFrames(unknown=tuple(json.dumps(one, separators=(",", ":")).encode() for one in schemas)))
    value = json.dumps(
        {"schema": schemas[1], "payload": {"qty": 1234.5}}
    ).encode()  # with blanks, as other writers have
    text = said(topic, writers, record(value), "incompatible_schema")
    assert "field qty: int cannot become " in text
    assert f'"{column}"' in text
    assert "1234" not in text
    assert Topic("mixed", value=ConnectJson(columns=(column,)), key="text").value.columns


@pytest.mark.parametrize("number", ["1e999999999", "-1e9999999999999999999999", "1e99999999", "1e-99999999"])
@pytest.mark.parametrize("column", ["long", "decimal(10, 2)", "double"])
def test_a_number_of_any_exponent_is_explained_at_once(number: str, column: str) -> None:
    topic = Topic("numbers", value=Json(columns=(f"n {column}",)), key="text")
    pipeline = Pipeline(topic=topic, table=Table("shop.t"), write="upsert")
    text = fault(pipeline, record(f'{{"n": {number}}}'.encode()), "undecodable", None, {})
    is_small = column == "double" and "e-" in number
    assert ("field n: the number is not a value of type" in text) is not is_small


def test_a_key_of_a_map_with_a_line_feed_is_not_said() -> None:
    topic = Topic("maps", value=Json(columns=("m map<string, long>",)), key="text")
    pipeline = Pipeline(topic=topic, table=Table("shop.t"), write="upsert")
    text = fault(pipeline, record(b'{"m": {"4111\\nsecret} \\u2028": "x"}}'), "undecodable", None, {})
    assert text == "field m{…}: the text is not a value of type long"


@pytest.mark.parametrize(
    "field", ["int", {"type": "array", "items": "int"}, {"type": "enum", "name": "E", "symbols": ["A"]}, "string"]
)
def test_a_number_in_bytes_of_avro_is_not_said_whatever_it_was_taken_for(field: Any) -> None:
    registry: Any = FakeRegistry()
    topic = Topic("orders", value="avro", key="text")
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": field}]}
    schema_id = registry.register("orders-value", json.dumps(schema))
    writers = writer_schemas(topic, registry)
    writers.refresh()
    value = frame(
        schema_id, avro({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}, {"a": 4111111111})
    )
    text = said(topic, writers, record(value), "undecodable")
    assert text.startswith("field a")
    assert "4111" not in text.replace(",", "")


def test_an_explanation_that_fails_is_no_failure_of_the_run() -> None:
    def decode(body: bytes) -> None:
        raise OverflowError

    assert attempt(b"x", decode).what == "what is wrong is not known, as its explanation failed: OverflowError"


def test_a_version_is_named_by_number_subject_and_field() -> None:
    registry: Any = FakeRegistry()
    topic, text = Topic("orders", value="avro", key="text"), {"name": "amount", "type": "string"}
    registry.register("orders-value", json.dumps(ORDER))
    other = {**ORDER, "fields": [*ORDER["fields"][:2], text]}
    schema_id = registry.register("orders-value", json.dumps(other))
    writers = writer_schemas(topic, registry)
    writers.refresh()
    value = frame(schema_id, avro(other, {"order_id": 1, "user": "secret", "amount": "x"}))
    assert said(topic, writers, record(value), "incompatible_schema") == (
        f"version 2 of subject orders-value (schema id {schema_id}), field amount: double cannot become string"
    )


def test_bytes_that_do_not_fit_name_field_and_type_and_no_value() -> None:
    topic = Topic("clicks", value=Json(columns=("id long",)), key=Json(columns=("id long",)))
    writers = writer_schemas(topic, None)
    assert said(topic, writers, record(b'{"id": "secret"}'), "undecodable") == (
        "field id: the text is not a value of type long"
    )
    assert "field id" in said(topic, writers, record(b"{}", b'{"id": []}'), "key_undecodable")
    assert said(topic, writers, record(b"{}"), "key_missing").startswith("the record has no key")


def test_a_null_of_the_key_or_the_order_names_the_declared_columns() -> None:
    topic = Topic("orders", value=Json(columns=("id long", "line int", "at timestamptz")))
    pipeline = Pipeline(topic=topic, table=Table("shop.t"), write=Upsert(key=("id", "line"), order_by="at"))
    assert fault(pipeline, None, "key_null", None, {}).endswith("(of id, line)")
    assert fault(pipeline, None, "order_missing", None, {}).endswith("(of at)")
