from typing import Any

import pytest

from frazil.declaration import Avro, Json, JsonSchema, Protobuf, SubjectStrategy, Topic
from tests.declaration.problems_of import problems_of
from tests.support.topics import topic_of


def topic(name: str = "orders", **fields: Any) -> Topic:
    return topic_of(name, **{"value_format": "avro", **fields})


@pytest.mark.parametrize("name", ["orders", "Shop.Orders-v1", "_x", "9", "...", "a" * 249])
def test_a_name_that_kafka_takes_is_taken(name):
    assert topic(name).name == name


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "a\n", "a" * 250, "orders*"])
def test_a_name_that_kafka_refuses_is_refused(name):
    assert list(problems_of(lambda: topic(name))) == ["topic.name"]


def test_a_topic_of_many_records_may_name_the_one_to_land_or_none():
    for name in (None, "com.example.Order", "Order"):
        assert topic(subject_strategy=SubjectStrategy.TOPIC_RECORD, record_name=name).value.record_name == name


@pytest.mark.parametrize("record_name", ["", " ", "9", "com..Order", "com.example.Order;", "a b"])
def test_a_record_name_is_a_full_name(record_name):
    found = problems_of(lambda: topic(subject_strategy=SubjectStrategy.RECORD, record_name=record_name))
    assert set(found) == {"avro.record_name"}


def test_the_title_of_a_json_schema_is_a_record_name_too():
    value = JsonSchema(subject_strategy=SubjectStrategy.RECORD, record_name="An order")
    assert Topic("orders", value=value).value.record_name == "An order"


def test_a_record_name_that_nobody_looks_at_is_refused():
    assert list(problems_of(lambda: topic(record_name="com.example.Order"))) == ["topic.value.record_name"]
    assert Topic("orders", value=Protobuf(record_name="shop.Order")).value.subject_strategy is SubjectStrategy.TOPIC


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (Json(columns=("id long required",)), "columns[0]"),
        (Json(columns=("id long",), unknown_fields="keep"), "unknown_fields"),
        (Avro(subject_strategy="record"), "subject_strategy"),
        (Avro(record_name="shop.Key"), "record_name"),
    ],
)
def test_options_of_values_are_refused_for_keys(key: Any, path: str) -> None:
    assert list(problems_of(lambda: Topic("orders", value="avro", key=key))) == [f"topic.key.{path}"]
