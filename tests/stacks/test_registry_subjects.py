"""A pipeline's rights in the registry are those of the subjects that describe its records, and of no others."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Pipeline, Table
from stacks.stacks.reading_rights import subjects
from tests.support.declared_schemas import avsc
from tests.support.topics import topic_of

AVRO = {"value_format": "avro", "key_format": "avro"}


def pipeline(**topic: Any) -> Pipeline:
    return Pipeline(topic=topic_of("orders", **topic), table=Table("shop.orders"))


@pytest.mark.parametrize(
    ("topic", "wanted"),
    [
        (AVRO, ["orders-key", "orders-value"]),
        ({**AVRO, "schema": (avsc("long"),)}, ["orders-key"]),
        ({**AVRO, "key_schema": (avsc("long"),)}, ["orders-value"]),
        ({**AVRO, "schema": (avsc("long"),), "key_schema": (avsc("long"),)}, []),
        ({"value_format": "json", "columns": ("id long",)}, []),
        ({"value_format": "avro", "subject_strategy": "record"}, ["*"]),
    ],
)
def test_a_declared_schema_needs_no_subject(topic: dict[str, Any], wanted: list[str]) -> None:
    assert subjects([pipeline(**topic)]) == wanted


def test_a_prefix_replaces_the_subjects_that_begin_with_it() -> None:
    assert subjects([pipeline(**AVRO)], ["orders-"]) == ["orders-*"]
    assert subjects([pipeline(**AVRO)], ["order.", "x."]) == ["orders-key", "orders-value"]
    assert subjects([pipeline(value_format="avro", subject_strategy="record")], ["orders-"]) == ["*"]
