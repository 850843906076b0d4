"""What a changed schema file does to columns, and to records that the old schema wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Avro, Debezium, Json, JsonSchema, Pipeline, SchemaFile, Table, Topic, Upsert
from frazil.declaration.checks.change_effects import Outcome
from policies.review.data_effects.declared_schemas import declared_schema_effects
from policies.review.data_effects.effects import Effect, effects
from tests.support.declared_schemas import avsc, descriptors, json_file
from tests.support.topics import topic_of, varied

ID = {"name": "id", "type": "int"}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}


def order(*fields: Any, name: str = "orders.avsc", **more: Any) -> SchemaFile:
    return avsc({"type": "record", "name": "Order", "fields": list(fields), **more}, name)


def pipeline(*files: SchemaFile, value_format: str = "avro", **topic: Any) -> Pipeline:
    return Pipeline(
        topic=topic_of("orders", value_format=value_format, schema=files, **topic), table=Table("shop.orders")
    )


def told(before: Pipeline, after: Pipeline) -> list[Effect]:
    return list(declared_schema_effects([before], [after]))


def test_a_new_field_of_plain_avro_is_a_column_and_a_danger_for_what_is_not_landed() -> None:
    added, unread = told(pipeline(order(ID)), pipeline(order(ID, NOTE)))
    assert (added.what, added.is_dangerous) == ("column note added, string", False)
    assert unread.is_dangerous
    assert unread.changed == "topic.value.schema"
    assert "Stop the producers" in unread.what
    assert "declare topic.value.framing single_object with both versions" in unread.what


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
    assert [e.changed for e in dangers] == ["topic.value.schema"]
    assert "timestamp-millis becomes timestamp-micros" in dangers[0].what


def of_json(title: str, **more: Any) -> Pipeline:
    row = {"type": "object", "properties": {"title": {"type": "integer", "title": title}}}
    file = json_file(row if not more else {"type": "object", "properties": {"after": row, "op": {"type": "string"}}})
    key = json_file({"type": "object", "properties": {"id": {"type": "integer"}}}, "key.json")
    topic = Topic("orders", value=JsonSchema(schema=(file,)), key=JsonSchema(schema=(key,)))
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
        topic = Topic("orders", value=Avro(schema=(order(ID),)), key=Avro(schema=(order(*fields),)))
        return Pipeline(topic=topic, table=Table("shop.orders"), write=Upsert())

    stops = [e for e in told(keyed(ID), keyed(ID, NOTE)) if e.outcome is Outcome.STOPS]
    assert "the key is id, note instead of id" in stops[0].what


def of_properties(properties: dict[str, Any], name: str = "orders.json") -> SchemaFile:
    return json_file({"type": "object", "properties": properties}, name)


TEXT, INTEGER = {"type": "string"}, {"type": "integer"}


def as_json(properties: dict[str, Any]) -> Pipeline:
    return pipeline(of_properties(properties), value_format="json_schema")


def test_a_type_that_the_column_does_not_widen_to_stops_the_pipeline() -> None:
    """No other schema is declared, so no record could land."""
    (stops,) = told(as_json({"a": INTEGER, "b": {}}), as_json({"a": TEXT}))
    assert (stops.outcome, stops.is_dangerous) == (Outcome.STOPS, True)
    assert "a: long cannot become string" in stops.what
    assert "the pipeline stops (IncompatibleSchema)" in stops.what


def test_of_several_schemas_the_one_that_does_not_fit_has_its_records_rejected() -> None:
    v1, v2 = (
        order(ID, name="v1.avsc"),
        order({"name": "id", "type": "string"}, {"name": "n", "type": "int"}, name="v2.avsc"),
    )
    before, both, last = (pipeline(*files, framing="single_object") for files in ((v1,), (v1, v2), (v2,)))
    refused, *other = told(before, both)
    assert (refused.outcome, refused.is_dangerous) == (Outcome.FROM_NOW_ON, True)
    assert "v2.avsc" in refused.what
    assert "rejected (incompatible_schema)" in refused.what
    assert "id: int cannot become string" in refused.what
    assert other == []
    assert [effect.outcome for effect in told(before, last)] == [Outcome.STOPS, Outcome.FROM_NOW_ON]


@pytest.mark.parametrize("evolution", ["freeze", "add_columns"])
def test_what_schema_evolution_does_not_allow_stops_the_pipeline(evolution: str) -> None:
    files = (of_properties({"a": {"type": "number"}}), of_properties({"a": {"type": "number"}, "b": TEXT}))
    before, after = (
        replace(pipeline(file, value_format="json_schema"), table=Table("shop.orders", schema_evolution=evolution))
        for file in files
    )
    (effect,) = told(before, after)
    assert (effect.outcome is Outcome.STOPS) is (evolution == "freeze")


def test_a_property_that_only_changes_its_case_keeps_its_column_and_waiting_records_lose_it() -> None:
    """The job lands the new file alone; together, both files would be two columns."""
    unchanged, danger = told(as_json({"orderId": TEXT}), as_json({"OrderID": TEXT}))
    assert (unchanged.what, unchanged.is_dangerous) == ("the schema changes, and no column does", False)
    assert danger.is_dangerous
    assert "orderId (the schema has OrderID instead, so it is null)" in danger.what
    added, lost = told(
        as_json({"o": {"type": "object", "properties": {"orderId": TEXT}}}),
        as_json({"o": {"type": "object", "properties": {"OrderID": TEXT}}, "note": TEXT}),
    )
    assert added.what == "column note added, string"
    assert "o.orderId (" in lost.what


def test_a_column_of_the_declared_key_that_is_gone_stops_the_pipeline() -> None:
    before, after = (replace(as_json(p), write=Upsert(key="a")) for p in ({"a": TEXT, "b": TEXT}, {"b": TEXT}))
    (stops,) = told(before, after)
    assert (stops.outcome, stops.is_dangerous) == (Outcome.STOPS, True)
    assert "key column a" in stops.what


def test_a_column_of_the_declared_key_that_an_alias_renames_is_not_gone() -> None:
    number = {"name": "number", "type": "int", "aliases": ["id"]}
    before, after = (replace(pipeline(order(field)), write=Upsert(key="id")) for field in (ID, number))
    (renamed, *_) = told(before, after)
    assert renamed.what == "column id renamed to number"


@pytest.mark.parametrize("key", ["id", "number"])
def test_a_number_of_protobuf_that_gets_another_name_keeps_its_column_and_the_key(key: str) -> None:
    names = (("int64 id = 1;", "string note = 2;"), ("int64 number = 1;", "string remark = 2;"))
    of = {"value_format": "protobuf", "record_name": "s.O"}
    before, after = (pipeline(proto(*each), **of) for each in names)
    (effect,) = told(replace(before, write=Upsert(key="id")), replace(after, write=Upsert(key=key)))
    assert (effect.what, effect.is_dangerous) == ("the schema changes, and no column does", False)
    of = {"value_format": "protobuf", "key_format": "protobuf", "record_name": "s.O", "key_record_name": "s.O"}
    keyed = [pipeline(proto(*names[0]), key_schema=(proto(*each),), **of) for each in names]
    assert not [effect for effect in told(*(replace(each, write=Upsert()) for each in keyed)) if effect.is_dangerous]


def test_a_column_of_the_order_that_is_gone_rejects_all_records() -> None:
    write = Upsert(key="a", order_by="at")
    before, after = (replace(as_json(p), write=write) for p in ({"a": TEXT, "at": INTEGER}, {"a": TEXT}))
    (rejects,) = (effect for effect in told(before, after) if effect.is_dangerous)
    assert "(order_missing)" in rejects.what


def keyed_by(properties: dict[str, Any], **more: Any) -> Pipeline:
    topic = Topic(
        "orders",
        value=JsonSchema(schema=(of_properties({"note": TEXT}),)),
        key=JsonSchema(schema=(of_properties(properties, "key.json"),)),
    )
    return Pipeline(topic=topic, table=Table("shop.orders"), **more)


@pytest.mark.parametrize("more", [{}, {"write": Upsert()}], ids=["append", "upsert"])
def test_keys_whose_fields_change_their_types_stop_the_pipeline(more: dict[str, Any]) -> None:
    """Two fields that swap their types keep the set of names."""
    fields = ({"a": INTEGER, "b": TEXT}, {"a": TEXT, "b": INTEGER})
    (stops,) = told(*(keyed_by(each, **more) for each in fields))
    assert (stops.outcome, stops.changed) == (Outcome.STOPS, "topic.key.schema")
    assert "a: long cannot become string" in stops.what


def test_a_key_that_is_a_record_instead_of_a_value_stops_the_pipeline() -> None:
    one = keyed_by({"a": TEXT})
    value = replace(one, topic=varied(one.topic, key_schema=(json_file(TEXT, "key.json"),)))
    for before, after in ((one, value), (value, one)):
        (stops,) = told(before, after)
        assert (stops.outcome, stops.changed) == (Outcome.STOPS, "topic.key.schema")


def of_columns(columns: tuple[str, ...], keys: tuple[str, ...] = ("id long",), **more: Any) -> Pipeline:
    topic = Topic("orders", value=Json(columns=columns), key=Json(columns=keys))
    return Pipeline(topic=topic, table=Table("shop.orders"), **more)


def test_declared_columns_are_predicted_as_a_schema_file_is() -> None:
    a = of_columns(("a int", "b string"))
    assert [e.what for e in told(a, of_columns(("a long", "c date")))] == [
        "column a widened from int to long",
        "column c added, date",
        "column b stays, and is null in new rows, also in those of waiting records that have it: it is declared no more",
    ]
    (stops,) = told(a, of_columns(("a date", "b string")))
    assert (stops.outcome, stops.changed) == (Outcome.STOPS, "topic.value.columns")
    assert "a: int cannot become date" in stops.what


def test_a_key_of_which_a_field_only_changes_its_case_stays_the_key() -> None:
    effects_of_it = told(keyed_by({"orderId": TEXT}, write=Upsert()), keyed_by({"OrderID": TEXT}, write=Upsert()))
    assert not [effect for effect in effects_of_it if effect.outcome is Outcome.STOPS]


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
    *columns, unread = told(before, after)
    assert [effect.what for effect in columns] == [
        "column _kafka_key.note added, string",
        "column _kafka_key.id stays, and is null in new rows: no key has it any more",
    ]
    assert (unread.changed, unread.is_dangerous) == ("topic.key.schema", True)
    assert "declare topic.key.framing single_object" in unread.what


def test_other_pipelines_and_equal_schemas_have_no_effect() -> None:
    one = pipeline(order(ID))
    assert told(one, one) == []
    assert told(replace(one, name="other"), one) == []
    registry = replace(one, topic=Topic("orders", value="avro"))
    assert told(registry, one) == told(one, registry) == []


def test_the_files_are_shown_by_name_and_not_by_content() -> None:
    (effect,) = effects([pipeline(order(ID))], [pipeline(order(ID, NOTE))])
    assert effect.changed == "topic.value.schema"
    assert effect.before.startswith("orders.avsc (sha256 ")
    assert effect.before != effect.after
    assert "fields" not in effect.before + effect.after


@pytest.mark.parametrize("of", [order({"name": "id", "type": "nothing"}), avsc({"type": 7})])
def test_a_schema_that_is_not_read_is_unknown_here(of: SchemaFile) -> None:
    unknown, *_ = told(pipeline(order(ID)), pipeline(of))
    assert unknown.is_dangerous
    assert "its effect on columns is unknown here: orders.avsc: " in unknown.what
