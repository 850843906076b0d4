"""What a changed schema file does to columns, and to records that the old schema wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Debezium, Pipeline, SchemaFile, Table, Topic, Upsert
from frazil.declaration.change_effects import Outcome
from policies.review.declared_schemas import declared_schema_effects
from policies.review.effects import Effect, effects
from tests.support.declared_schemas import avsc, descriptors, json_file

ID = {"name": "id", "type": "int"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}


def order(*fields: Any, name: str = "orders.avsc", **more: Any) -> SchemaFile:
    return avsc({"type": "record", "name": "Order", "fields": list(fields), **more}, name)


def pipeline(*files: SchemaFile, value_format: str = "avro", **topic: Any) -> Pipeline:
    return Pipeline(topic=Topic("orders", value_format=value_format, schema=files, **topic), table=Table("shop.orders"))


def told(before: Pipeline, after: Pipeline) -> list[Effect]:
    return list(declared_schema_effects([before], [after]))


def test_a_new_field_of_plain_avro_is_a_column_and_a_danger_for_what_is_not_landed() -> None:
    added, unread = told(pipeline(order(ID)), pipeline(order(ID, NOTE)))
    assert (added.what, added.is_dangerous) == ("column note added, string", False)
    assert unread.is_dangerous
    assert unread.changed == "topic.schema"
    assert "Stop the producers" in unread.what
    assert "declare framing single_object with both versions" in unread.what


def test_what_the_bytes_do_not_depend_on_is_no_danger() -> None:
    (commented,) = told(pipeline(order(ID)), pipeline(order(ID, doc="an order")))
    assert (commented.what, commented.is_dangerous) == ("the schema changes, and no column does", False)


def test_a_further_version_with_a_fingerprint_is_no_danger_and_one_that_is_gone_is() -> None:
    v1, v2 = order(ID, name="v1.avsc"), order(ID, NOTE, name="v2.avsc")
    one, both, last = (pipeline(*files, framing="single_object") for files in ((v1,), (v1, v2), (v2,)))
    (added,) = told(one, both)
    assert (added.what, added.is_dangerous) == ("column note added, string", False)
    (gone,) = (effect for effect in told(both, last) if effect.is_dangerous)
    assert gone.what.startswith("records of v1.avsc that are not landed yet are rejected (unknown_fingerprint)")


TIMES = [{"name": "at", "type": {"type": "long", "logicalType": f"timestamp-{unit}"}} for unit in ("millis", "micros")]


@pytest.mark.parametrize("framing", [None, "single_object"])
def test_another_unit_of_a_time_is_a_danger_though_the_fingerprint_is_the_same(framing: str | None) -> None:
    more = {"framing": framing} if framing else {}
    dangers = [e for e in told(*(pipeline(order(time), **more) for time in TIMES)) if e.is_dangerous]
    assert [e.changed for e in dangers] == ["topic.schema"]
    assert "timestamp-millis becomes timestamp-micros" in dangers[0].what


def of_json(title: str, **more: Any) -> Pipeline:
    row = {"type": "object", "properties": {"title": {"type": "integer", "title": title}}}
    file = json_file(row if not more else {"type": "object", "properties": {"after": row, "op": {"type": "string"}}})
    key = json_file({"type": "object", "properties": {"id": {"type": "integer"}}}, "key.json")
    topic = Topic("orders", value_format="json_schema", key_format="json_schema", schema=(file,), key_schema=(key,))
    return Pipeline(topic=topic, table=Table("shop.orders"), **more)


def test_another_type_of_debezium_is_a_danger_and_another_title_for_people_is_none() -> None:
    names = ("io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp")
    before, after = (of_json(name, envelope=Debezium(), write=Upsert()) for name in names)
    assert any("MicroTimestamp" in effect.what for effect in told(before, after) if effect.is_dangerous)
    assert not [effect for effect in told(*map(of_json, ("its title", "the title"))) if effect.is_dangerous]


def proto(*fields: str) -> SchemaFile:
    return descriptors(f'syntax = "proto3"; package s; message O {{ {" ".join(fields)} }}')


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (("string a = 1;", "string b = 2;"), ("string a = 2;", "string b = 1;"), "string a becomes string b"),
        (("int32 n = 1;",), ("sint32 n = 1;",), "int32 n becomes sint32 n"),
        (("int32 n = 1;",), ("int32 n = 2;",), "number 1 becomes 2"),
        (("int32 n = 1;",), ("repeated int32 n = 1;",), "becomes repeated int32 n"),
        (
            ("enum E { Z = 0; A = 1; }", "E e = 1;"),
            ("enum E { Z = 0; B = 1; }", "E e = 1;"),
            "its enum has another name",
        ),
    ],
)
def test_another_meaning_of_a_field_number_is_a_danger(
    before: tuple[str, ...], after: tuple[str, ...], found: str
) -> None:
    of = {"value_format": "protobuf", "record_name": "s.O"}
    dangers = [e for e in told(pipeline(proto(*before), **of), pipeline(proto(*after), **of)) if e.is_dangerous]
    assert any(found in effect.what for effect in dangers), dangers


def test_a_further_field_and_number_of_an_enum_are_none() -> None:
    of = {"value_format": "protobuf", "record_name": "s.O"}
    before, after = (
        proto("enum E { Z = 0; }", "E e = 1;"),
        proto("enum E { Z = 0; A = 1; }", "E e = 1;", "int32 n = 2;"),
    )
    assert not [e for e in told(pipeline(before, **of), pipeline(after, **of)) if e.is_dangerous]


def test_another_key_stops_a_table_that_has_one() -> None:
    def keyed(*fields: Any) -> Pipeline:
        topic = Topic(
            "orders", value_format="avro", key_format="avro", schema=(order(ID),), key_schema=(order(*fields),)
        )
        return Pipeline(topic=topic, table=Table("shop.orders"), write=Upsert())

    stops = [e for e in told(keyed(ID), keyed(ID, NOTE)) if e.outcome is Outcome.STOPS]
    assert "the key is id, note instead of id" in stops[0].what


def test_removed_widened_and_refused_columns_are_named() -> None:
    json = [
        {"type": "object", "properties": p} for p in ({"a": {"type": "integer"}, "b": {}}, {"a": {"type": "string"}})
    ]
    before, after = (pipeline(json_file(each), value_format="json_schema") for each in json)
    (refused,) = told(before, after)
    assert refused.is_dangerous
    assert "long cannot become string" in refused.what
    (gone,) = told(
        before, pipeline(json_file({**json[0], "properties": {"a": {"type": "integer"}}}), value_format="json_schema")
    )
    assert gone.what == "column b stays, and is null in new rows: the schema has it no more"
    protos = [f'syntax = "proto3"; message O {{ {field} a = 1; }}' for field in ("int32", "int64")]
    old, new = (pipeline(descriptors(text), value_format="protobuf", record_name="O") for text in protos)
    (wider,) = told(old, new)
    assert (wider.what, wider.is_dangerous) == ("column a widened from int to long", False)


def test_of_change_data_the_columns_are_those_of_the_row() -> None:
    def events(*fields: Any) -> Pipeline:
        row = {"type": "record", "name": "Row", "fields": list(fields)}
        source = {"type": "record", "name": "S", "fields": [{"name": "ts_ms", "type": "long"}]}
        parts = [("after", ["null", row]), ("op", "string"), ("source", source)]
        file = order(*({"name": name, "type": kind} for name, kind in parts))
        declared = pipeline(file, key_format="avro", key_schema=(order(ID, name="key.avsc"),))
        return replace(declared, write=Upsert(), envelope=Debezium(), on_error="suspend")

    added, _ = told(events(ID), events(ID, NOTE))
    assert added.what == "column note added, string"


def test_a_changed_schema_of_keys_is_a_danger_too() -> None:
    before, after = (
        pipeline(order(ID), key_format="avro", key_schema=(order(*fields, name="key.avsc"),))
        for fields in ((ID,), (NOTE,))
    )
    (unread,) = told(before, after)
    assert (unread.changed, unread.is_dangerous) == ("topic.key_schema", True)
    assert "declare key_framing single_object" in unread.what


def test_other_pipelines_and_equal_schemas_have_no_effect() -> None:
    one = pipeline(order(ID))
    assert told(one, one) == []
    assert told(replace(one, name="other"), one) == []
    registry = replace(one, topic=Topic("orders", value_format="avro"))
    assert told(registry, one) == told(one, registry) == []


def test_the_files_are_shown_by_name_and_not_by_content() -> None:
    (effect,) = effects([pipeline(order(ID))], [pipeline(order(ID, NOTE))])
    assert effect.changed == "topic.schema"
    assert effect.before.startswith("orders.avsc (sha256 ")
    assert effect.before != effect.after
    assert "fields" not in effect.before + effect.after


@pytest.mark.parametrize("of", [order({"name": "id", "type": "nothing"}), avsc({"type": 7})])
def test_a_schema_that_is_not_read_is_unknown_here(of: SchemaFile) -> None:
    unknown, *_ = told(pipeline(order(ID)), pipeline(of))
    assert unknown.is_dangerous
    assert "its effect on columns is unknown here: orders.avsc: " in unknown.what
