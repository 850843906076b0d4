"""The fingerprint of a schema is that of the official library, and of the specification's examples."""

from __future__ import annotations

import json
from random import Random

import fastavro.schema
import pytest

from frazil.schemas.avro.schema_fingerprint import canonical_form, fingerprint, head
from tests.decode.avro_cases import Cases


@pytest.mark.parametrize(("schema", "mark"), [('"int"', 0x7275D51A3F395C8F), ('"null"', 0x63DD24E7CC258F8A)])
def test_the_specifications_examples(schema: str, mark: int) -> None:
    assert fingerprint(schema) == mark.to_bytes(8, "little")
    assert head(schema) == b"\xc3\x01" + fingerprint(schema)


def test_the_official_library_agrees_on_any_schema(seed: int) -> None:
    for number in range(100):
        case = Cases(Random(f"{seed} {number}"))
        wanted = fastavro.schema.to_parsing_canonical_form(json.loads(case.text))
        assert canonical_form(case.text) == wanted
        assert fingerprint(case.text).hex() == fastavro.schema.fingerprint(wanted, "CRC-64-AVRO")


def test_names_are_full_and_what_the_encoding_does_not_need_is_left_out() -> None:
    color = {"type": "enum", "name": "Color", "symbols": ["A"], "default": "A", "doc": "x"}
    order = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "aliases": ["Old"],
        "fields": [
            {"name": "id", "type": {"type": "long", "logicalType": "timestamp-micros"}, "default": 1, "doc": "x"},
            {"name": "color", "type": color},
            {"name": "again", "type": ["null", "Color", {"type": "array", "items": "shop.Order"}]},
            {"name": "mark", "type": {"type": "fixed", "name": "other.Mark", "size": 4}},
            {"name": "all", "type": {"type": "map", "values": "other.Mark"}},
        ],
    }
    assert canonical_form(json.dumps(order)) == fastavro.schema.to_parsing_canonical_form(order)
