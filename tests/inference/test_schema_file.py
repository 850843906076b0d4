"""The file that a sample proposes: one that a declaration takes, and that an existing file loses nothing by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import JsonSchema, Topic
from frazil.errors import InvalidInput
from frazil.inference.inferred_schema import proposed
from frazil.inference.record_file import Line
from frazil.inference.sample import Sample
from frazil.schema_files.declared_rows import declared_rows


def propose(*texts: str, existing: Any = None) -> tuple[str, dict[str, str]]:
    sample = Sample.of(Line(f"r:{number}", text) for number, text in enumerate(texts, start=1))
    given = existing if isinstance(existing, str | None) else json.dumps(existing)
    return proposed(sample, "orders", given.encode() if given is not None else None, "schemas/orders.json")


def test_a_declaration_takes_the_file(tmp_path: Path) -> None:
    text, added = propose(
        '{"id": 1, "Ship To": {"city": "${x}"}, "at": "2026-01-31T10:00:00Z", "tags": [1], "é": true}'
    )
    file = tmp_path / "orders.json"
    file.write_text(text)
    (row,) = declared_rows(Topic("orders", value=JsonSchema(schema=str(file))))
    assert str(row) == (
        "struct<id: long, Ship To: struct<city: string>, at: timestamptz, tags: list<long>, é: boolean>"
    )
    assert not added
    assert '"type": ["integer", "null"]' in text


def test_fields_are_added_at_the_end_and_what_a_person_wrote_stays() -> None:
    file = {
        "type": "object",
        "properties": {
            "z": {"type": "string", "description": "kept"},
            "o": {"type": "object", "properties": {}},
            "m": {"type": "integer"},
        },
        "required": ["z", "o"],
        "x-owner": "shop",
    }
    texts = ('{"a": 1, "o": {"b": true}, "m": 0.5}', '{"o": {}, "n": null}')
    text, added = propose(*texts, existing=file)
    assert json.loads(text) == {
        "type": "object",
        "properties": {
            "z": {"type": "string", "description": "kept"},
            "o": {"type": "object", "properties": {"b": {"type": ["boolean", "null"]}}},
            "m": {"type": "integer"},
            "a": {"type": ["integer", "null"]},
        },
        "required": ["z", "o"],
        "x-owner": "shop",
    }
    assert added == {"a": "integer", "o.b": "boolean"}
    assert propose(*texts, existing=text) == (text, {})


@pytest.mark.parametrize("old", [{"$ref": "#/$defs/x"}, {"type": ["integer", "string"]}, {"type": "object"}, True])
def test_what_a_person_described_otherwise_stays(old: Any) -> None:
    file = {"type": "object", "properties": {"a": old}, "$defs": {"x": {"type": "string"}}}
    text, added = propose('{"a": {"b": 1}}', existing=file)
    assert (added, json.loads(text)) == ({}, file)


@pytest.mark.parametrize(
    ("existing", "why"),
    [
        ("{", "this is not JSON"),
        ("[]", "it is no JSON Schema of an object with properties"),
        ('{"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}', "leads nowhere|no such|none"),
    ],
)
def test_a_file_that_is_no_schema_of_records_is_refused(existing: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        propose('{"a": 1}', existing=existing)


def test_a_sample_without_values_proposes_nothing() -> None:
    with pytest.raises(InvalidInput, match="no field of 2 records has a value"):
        propose('{"a": null}', "{}")
