"""What a changed schema file does to columns, and to records that the old schema wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Debezium, Pipeline, SchemaFile, Table, Topic, Upsert
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
