"""Envelopes: what they are declared with, and what a pipeline of change data is refused for."""

from typing import Any

from frazil.declaration import (
    Append,
    Changelog,
    ConnectJson,
    Debezium,
    Json,
    Pipeline,
    Table,
    Topic,
    Upsert,
    canonical,
    parse,
)
from frazil.declaration.documents.document import document
from tests.declaration.problems_of import problems_of
from tests.support.topics import topic_of


def pipeline(envelope: Any = "debezium", **declared: Any) -> Pipeline:
    choices = {
        "topic": Topic("orders", value="avro", key="avro"),
        "table": Table("shop.orders"),
        "write": Upsert(),
        **declared,
    }
    return Pipeline(envelope=envelope, **choices)


def test_change_data_is_a_state_with_schemas_and_in_the_order_of_offsets():
    assert pipeline().envelope == Debezium()
    for formats in (
        {"value_format": "json_schema", "key_format": "json_schema"},
        {"value_format": "avro", "key_format": "json_schema"},
    ):
        assert pipeline(topic=topic_of("orders", **formats)).envelope == Debezium()
    found = problems_of(lambda: pipeline(write=Append()))
    assert list(found) == ["pipeline.envelope"]
    assert "write=Upsert()" in found["pipeline.envelope"]
    ordered = Upsert(order_by="_kafka_timestamp", on_tombstone="soft_delete")
    topic = Topic("orders", value="protobuf")
    found = problems_of(lambda: pipeline(topic=topic, write=ordered))
    assert list(found) == [f"pipeline.{path}" for path in ("topic.value", "topic.key", "write.order_by")]
    assert "write null as 0" in found["pipeline.topic.value"]
    assert list(problems_of(lambda: pipeline(write=Upsert(key="email")))) == ["pipeline.write.key"]


def test_a_changelog_has_the_operation_without_a_column_of_the_envelope():
    assert pipeline(write=Changelog()).write == Changelog()
    assert pipeline(Debezium(source_column=True), write=Changelog()).envelope == Debezium(source_column=True)
    declared = Debezium(operation_column=True)
    assert list(problems_of(lambda: pipeline(declared, write=Changelog()))) == ["pipeline.envelope.operation_column"]
    assert list(problems_of(lambda: pipeline(write=Changelog(order_by="id")))) == ["pipeline.write.order_by"]
    assert list(problems_of(lambda: pipeline(write=Changelog(key="id")))) == ["pipeline.write.key"]


def test_the_row_before_is_taken_from_events_in_a_changelog_only():
    declared = Debezium(replica_identity="full")
    assert pipeline(declared, write=Changelog()).envelope.has_before
    assert not pipeline(write=Changelog()).envelope.has_before
    assert list(problems_of(lambda: pipeline(declared))) == ["pipeline.envelope.replica_identity"]
    flat = topic_of("orders", **{**SCHEMALESS, "columns": ("id long", "__op string")})
    found = problems_of(lambda: pipeline(declared, topic=flat, write=Changelog()))
    assert "flattened events" in found["pipeline.envelope.replica_identity"]
    assert list(problems_of(lambda: Debezium(replica_identity="nothing"))) == ["debezium.replica_identity"]


SCHEMALESS = {
    "value_format": "json",
    "columns": ("id long",),
    "key_format": "connect_json",
    "key_columns": ("id long",),
}


def test_change_data_without_a_registry_has_declared_columns():
    assert pipeline(topic=topic_of("orders", **SCHEMALESS)).envelope == Debezium()
    found = problems_of(lambda: pipeline(topic=Topic("orders", value="json", key="json")))
    assert list(found) == ["pipeline.topic.key", "pipeline.topic.value.columns"]
    topic = topic_of("orders", **SCHEMALESS)
    assert list(problems_of(lambda: pipeline(Debezium(source_column=True), topic=topic))) == [
        "pipeline.envelope.source_column"
    ]
    as_json = topic_of("orders", **{**SCHEMALESS, "columns": ("id long", "document json")})
    found = problems_of(lambda: pipeline(topic=as_json))
    assert list(found) == ["pipeline.topic.value.columns[1]"]
    assert "Write document string" in found["pipeline.topic.value.columns[1]"]
    flat = topic_of("orders", **{**SCHEMALESS, "columns": ("id long", "__deleted string")})
    assert list(problems_of(lambda: pipeline(Debezium(operation_column=True), topic=flat))) == [
        "pipeline.envelope.operation_column"
    ]
    assert pipeline(Debezium(operation_column=True), topic=topic).envelope.operation_column


def test_change_data_with_a_schema_in_each_record_needs_no_columns():
    inside = Topic("orders", value="connect_json", key="connect_json")
    declared = Debezium(source_column=True, operation_column=True)
    assert pipeline(declared, topic=inside).envelope == declared
    with_columns = Topic("orders", value=ConnectJson(columns=("id long",)), key="connect_json")
    assert list(problems_of(lambda: pipeline(declared, topic=with_columns))) == ["pipeline.envelope.source_column"]


def test_no_other_engine_unwraps_an_envelope():
    found = problems_of(lambda: pipeline(engine="tableflow", table=Table("kafka.orders")))
    assert "Tableflow decides this itself" in found["pipeline.envelope"]


def test_a_document_keeps_the_envelope():
    declared = pipeline(Debezium(operation_column=True, unavailable_value="?"))
    text = canonical(document([declared]))
    assert parse(text) == (declared,)
    assert b'"envelope":{' in text
    assert b'"type":"debezium"' in text
    assert parse(canonical(document([pipeline()])))[0].envelope == Debezium()


def test_a_placeholder_has_a_character():
    assert list(problems_of(lambda: Debezium(unavailable_value=""))) == ["debezium.unavailable_value"]
    assert Debezium(unavailable_value="?").unavailable_value == "?"


def test_unknown_fields_of_events_are_refused() -> None:
    topic = Topic("o", value=Json(columns=("a long",), unknown_fields="keep"), key=Json(columns=("a long",)))
    found = problems_of(lambda: Pipeline(topic=topic, table=Table("s.o"), write=Upsert(), envelope=Debezium()))
    assert list(found) == ["pipeline.topic.value.unknown_fields"]
