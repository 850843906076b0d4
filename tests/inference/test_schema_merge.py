"""A second sample adds to a schema file and widens it; nothing is narrowed or removed."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.inference.record_file import Line
from frazil.inference.sample import Sample
from frazil.inference.schema_merge import Change, Effect, merged


def merge(old: dict[str, Any], *values: str) -> tuple[dict[str, Any], list[Change]]:
    """Merge a property `a` of a file with records that have these values in it."""
    found = Sample.of(Line(f"r:{n}", f'{{"a": {value}}}') for n, value in enumerate(values)).found
    schema, changes = merged({"type": "object", "properties": {"a": old}}, found)
    return schema["properties"]["a"], list(changes)


@pytest.mark.parametrize(
    ("old", "values", "new", "what"),
    [
        ({"type": "integer"}, ("1.5",), {"type": "number"}, "integer becomes number"),
        ({"type": "integer"}, ('"x"', "1"), {"type": "string"}, "integer becomes text, as string was seen"),
        ({"type": "number"}, ("9007199254740993",), {"type": "string"}, "number becomes text, as integer was seen"),
        ({"type": "number"}, ("1e400",), {}, "number becomes JSON text, for numbers that no double holds"),
        ({"type": "string", "format": "date-time"}, ('"later"',), {"type": "string"}, "date-time becomes text"),
        ({"type": "boolean"}, ("null",), {"type": ["boolean", "null"]}, "may be null"),
        (
            {"type": "object", "properties": {"b": {}}, "required": ["b"], "description": "of x"},
            ("1",),
            {"type": "string", "description": "of x"},
            "object becomes text, as integer was seen",
        ),
        (
            {"type": "array", "items": {"type": "integer"}},
            ("[0.5]",),
            {"type": "array", "items": {"type": "number"}},
            "integer becomes number",
        ),
    ],
)
def test_a_type_is_widened_to_what_was_seen(
    old: dict[str, Any], values: tuple[str, ...], new: dict[str, Any], what: str
) -> None:
    schema, (change,) = merge(old, *values)
    assert (schema, change.effect, change.what) == (new, Effect.WIDENED, what)


@pytest.mark.parametrize(
    ("old", "value"),
    [
        ({"type": "number"}, "1"),
        ({"type": "string"}, "1"),
        ({}, "1e400"),
        ({"type": "string"}, '"2026-01-31T10:00:00Z"'),
        ({"type": ["integer", "null"]}, "null"),
        ({"type": "array", "items": {"type": "integer"}}, "[]"),
    ],
)
def test_a_wider_type_of_the_file_stays(old: dict[str, Any], value: str) -> None:
    assert merge(old, value) == (old, [])


@pytest.mark.parametrize(
    "old", [{"$ref": "#/$defs/x"}, {"enum": ["a"]}, {"type": ["integer", "string"]}, {"type": "object"}, True]
)
def test_what_a_person_described_otherwise_stays_and_it_is_said(old: Any) -> None:
    schema, (change,) = merge(old, '{"b": 1}')
    assert (schema, change.effect, change.is_change) == (old, Effect.KEPT, False)


def test_fields_are_added_at_the_end_and_unseen_ones_stay() -> None:
    file = {
        "type": "object",
        "properties": {"z": {"type": "string", "description": "kept"}, "o": {"type": "object", "properties": {}}},
        "required": ["z", "o"],
        "x-owner": "shop",
    }
    lines = [Line("r:1", '{"a": 1, "o": {"b": true}}'), Line("r:2", '{"o": {}, "n": null}')]
    schema, changes = merged(file, Sample.of(lines).found)
    assert schema == {
        "type": "object",
        "properties": {
            "z": {"type": "string", "description": "kept"},
            "o": {"type": "object", "properties": {"b": {"type": ["boolean", "null"]}}},
            "a": {"type": ["integer", "null"]},
        },
        "required": ["z", "o"],
        "x-owner": "shop",
    }
    assert [(change.effect, change.path) for change in changes] == [
        (Effect.ADDED, "a"),
        (Effect.ADDED, "o.b"),
        (Effect.UNSEEN, "z"),
    ]


def test_a_required_field_that_a_record_lacks_is_required_no_more() -> None:
    file = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    lines = [Line("r:1", '{"a": 1}'), Line("r:2", "{}")]
    schema, (change,) = merged(file, Sample.of(lines).found)
    assert (schema["required"], change.what) == ([], "required becomes optional")


def test_a_second_merge_of_the_same_records_changes_nothing() -> None:
    lines = [Line("r:1", '{"a": 1, "l": [{"b": "2026-01-31"}]}'), Line("r:2", '{"a": null, "l": [{"b": "x"}, null]}')]
    found = Sample.of(lines).found
    once, _ = merged({"type": "object", "properties": {}}, found)
    twice, changes = merged(once, found)
    assert (twice, changes) == (once, ())
