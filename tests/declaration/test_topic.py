from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from frazil.declaration import KeyFormat, SubjectStrategy, Topic, ValueFormat
from tests.declaration.problems_of import problems_of


def topic(name: str = "orders", **fields: Any) -> Topic:
    return Topic(name, **{"value_format": ValueFormat.AVRO, **fields})


@pytest.mark.parametrize("name", ["orders", "Shop.Orders-v1", "_x", "9", "...", "a" * 249])
def test_a_name_that_kafka_takes_is_taken(name):
    assert topic(name).name == name


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "a\n", "a" * 250, "orders*"])
def test_a_name_that_kafka_refuses_is_refused(name):
    assert list(problems_of(lambda: topic(name))) == ["topic.name"]


def test_a_topic_cannot_change_after_it_was_made():
    with pytest.raises(FrozenInstanceError):
        topic().name = "other"  # type: ignore[misc]


def test_a_changed_copy_is_validated_too():
    assert list(problems_of(lambda: replace(topic(), name="a b"))) == ["topic.name"]


@pytest.mark.parametrize("value_format", [ValueFormat.JSON, ValueFormat.TEXT, ValueFormat.BYTES])
@pytest.mark.parametrize("strategy", [SubjectStrategy.RECORD, SubjectStrategy.TOPIC_RECORD])
def test_a_subject_strategy_means_nothing_to_values_without_a_schema(value_format, strategy):
    found = problems_of(lambda: topic(value_format=value_format, subject_strategy=strategy))
    assert list(found) == ["topic.subject_strategy"]


def test_a_topic_of_many_records_may_name_the_one_to_land_or_none():
    for name in (None, "com.example.Order", "Order"):
        assert topic(subject_strategy=SubjectStrategy.TOPIC_RECORD, record_name=name).record_name == name


@pytest.mark.parametrize("record_name", ["", " ", "9", "com..Order", "com.example.Order;", "a b"])
def test_a_record_name_is_a_full_name(record_name):
    found = problems_of(lambda: topic(subject_strategy=SubjectStrategy.RECORD, record_name=record_name))
    assert set(found) == {"topic.record_name"}


def test_the_title_of_a_json_schema_is_a_record_name_too():
    fields = {"value_format": ValueFormat.JSON_SCHEMA, "subject_strategy": SubjectStrategy.RECORD}
    assert topic(**fields, record_name="An order").record_name == "An order"


def test_a_record_name_that_nobody_looks_at_is_refused():
    assert list(problems_of(lambda: topic(record_name="com.example.Order"))) == ["topic.record_name"]


def test_all_problems_of_a_topic_are_told_at_once():
    found = problems_of(
        lambda: Topic(
            "a b",
            value_format=ValueFormat.TEXT,
            key_format=KeyFormat.TEXT,
            subject_strategy=SubjectStrategy.RECORD,
        )
    )
    assert list(found) == [
        "topic.name",
        "topic.subject_strategy",
    ]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"value_format": "json"}, "topic.unknown_fields"),
        ({"value_format": "text"}, "topic.unknown_fields"),
        ({"value_format": "json_schema"}, "topic.unknown_fields"),
        ({"value_format": "connect_json", "columns": ("a long",)}, "topic.unknown_fields"),
        ({"value_format": "json", "columns": ("a long", "_Unknown string")}, "topic.columns[1]"),
    ],
)
def test_unknown_fields_are_kept_where_columns_are_declared(fields: dict[str, Any], path: str) -> None:
    assert list(problems_of(lambda: topic(unknown_fields="keep", **fields))) == [path]
    assert topic(value_format="json", columns=("a long",), unknown_fields="keep").keeps_unknown
