"""What declared schemas contradict."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.declaration import Framing, SchemaFile, SubjectStrategy, Topic
from tests.declaration.problems_of import problems_of

V1, V2 = (SchemaFile(file=f"v{n}.avsc", content=f'"{kind}"') for n, kind in ((1, "int"), (2, "long")))
JSON = SchemaFile(file="o.json", content="{}")
DESC = SchemaFile(file="o.desc", content="CgA=")


def topic(**fields: Any) -> Topic:
    return Topic("orders", **{"value_format": "avro", **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"schema": (V1,)},
        {"schema": (V1,), "framing": "single_object"},
        {"schema": (V1, V2), "framing": Framing.SINGLE_OBJECT},
        {"schema": (JSON,), "value_format": "json_schema"},
        {"schema": (DESC,), "value_format": "protobuf", "record_name": "shop.Order"},
        {"key_schema": (V1,), "key_format": "avro"},
        {"key_schema": (V1, V2), "key_format": "avro", "key_framing": "single_object"},
        {"key_schema": (DESC,), "key_format": "protobuf", "key_record_name": "shop.Key", "schema": (V1,)},
    ],
)
def test_a_schema_goes_with_its_format(fields: dict[str, Any]) -> None:
    made = topic(**fields)
    assert made.needs_registry is (made.schema is None)
    assert made.needs_key_registry is False


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"schema": ()}, ["schema"]),
        ({"schema": (V1,), "value_format": "json"}, ["schema"]),
        ({"schema": (JSON,)}, ["schema[0]"]),
        ({"schema": (V1, V1), "framing": "single_object"}, ["schema[1]"]),
        ({"schema": (V1, V2)}, ["schema"]),
        ({"schema": (JSON, SchemaFile(file="p.json", content="{}")), "value_format": "json_schema"}, ["schema"]),
        ({"schema": (JSON,), "value_format": "json_schema", "framing": "single_object"}, ["framing"]),
        ({"framing": "single_object"}, ["framing"]),
        ({"key_framing": "single_object", "key_format": "avro"}, ["key_framing"]),
        ({"schema": (V1,), "record_name": "shop.Order"}, ["record_name"]),
        ({"schema": (DESC,), "value_format": "protobuf"}, ["record_name"]),
        ({"schema": (DESC,), "value_format": "protobuf", "record_name": "1"}, ["record_name"]),
        (
            {"schema": (SchemaFile(file="o.pb", content="é"),), "value_format": "protobuf", "record_name": "O"},
            ["schema[0].content"],
        ),
        ({"key_schema": (V1,)}, ["key_schema"]),
        ({"key_schema": (DESC,), "key_format": "protobuf"}, ["key_record_name"]),
        ({"key_schema": (DESC,), "key_format": "protobuf", "key_record_name": "-"}, ["key_record_name"]),
        ({"key_record_name": "shop.Key", "key_format": "avro"}, ["key_record_name"]),
        ({"schema": (V1,), "subject_strategy": SubjectStrategy.RECORD}, ["subject_strategy"]),
    ],
)
def test_a_contradiction_names_the_field(fields: dict[str, Any], wrong: list[str]) -> None:
    assert list(problems_of(lambda: topic(**fields))) == [f"topic.{name}" for name in wrong]


def test_the_remedy_of_two_plain_versions_is_the_fingerprint() -> None:
    assert "framing single_object" in problems_of(lambda: topic(schema=(V1, V2)))["topic.schema"]
