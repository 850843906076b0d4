"""A sample says of each field what was seen, and chooses the type that loses nothing of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.errors import InvalidInput
from frazil.inference.inferred_schema import avro_schema, columns, json_schema
from frazil.inference.record_file import LEVELS, Line
from frazil.inference.sample import MOST_NAMES, Place, Sample


def sample(*texts: str) -> Sample:
    return Sample.of(Line(f"r:{number}", text) for number, text in enumerate(texts, start=1))


def fields(*texts: str) -> dict[str, Place]:
    return {field.path: field for field in sample(*texts).fields}


def properties(*texts: str) -> Any:
    return json_schema(sample(*texts).found, "Orders").get("properties")


def test_each_field_has_its_type_and_its_counts() -> None:
    found = fields(
        '{"id": 1, "to": {"city": "x"}}', '{"id": 2.5, "to": {"city": null}}', '{"id": 3, "tags": ["a", null]}'
    )
    assert {path: (one.type, one.values, one.nulls, one.objects) for path, one in found.items()} == {
        "id": ("number", 3, 0, 3),
        "to": ("object", 2, 0, 3),
        "to.city": ("string", 1, 1, 2),
        "tags": ("array of string", 1, 0, 3),
        "tags[]": ("string", 1, 1, 2),
    }


@pytest.mark.parametrize(
    ("values", "conflict"),
    [
        (("1", '"a"', "2"), "2 integer, first r:1; 1 string, first r:2"),
        (("true", "1"), "1 boolean, first r:1; 1 integer, first r:2"),
        (('{"b": 1}', "[]"), "1 object, first r:1; 1 array, first r:2"),
        (("9223372036854775808",), "a number that no long holds, r:1"),
        (("-9223372036854775809", "1"), "a number that no long holds, r:1"),
        (("9007199254740993", "0.5"), "a number that no double holds, r:1"),
        (("0.1", "0.12345678901234567891"), "a number that no double holds, r:2"),
        (("1e400",), "a number that no double holds, r:1"),
    ],
)
def test_values_without_a_common_type_become_json_text_or_are_refused(values: tuple[str, ...], conflict: str) -> None:
    texts = [f'{{"a": {value}}}' for value in values]
    assert fields(*texts)["a"].conflict == conflict
    assert properties(*texts) == {"a": {}}
    with pytest.raises(InvalidInput) as refused:
        sample(*texts).refuse_conflicts("o.jsonl", "Correct it")
    assert str(refused.value) == f"o.jsonl: 1 fields have no common type: a ({conflict}). Correct it"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("9223372036854775807", "-1"), "integer"),
        (("1", "0.5", "-0.0", "1.10", "0.30000000000000004"), "number"),
        (("true", "null"), "boolean"),
        (('"12"', '"550e8400-e29b-41d4-a716-446655440000"', '"10:00:00"'), "string"),
    ],
)
def test_values_that_a_type_holds_are_no_conflict(values: tuple[str, ...], kind: str) -> None:
    texts = [f'{{"a": {value}}}' for value in values]
    assert fields(*texts)["a"].conflict == ""
    assert properties(*texts) == {"a": {"type": [kind, "null"]}}


def test_times_are_recognised_only_if_all_texts_are_times() -> None:
    at, day = '"2026-01-31T10:00:00Z"', '"2026-01-31"'
    texts = [f'{{"at": {at}, "day": {day}, "some": {some}}}' for some in (at, day, '"x"')]
    assert properties(*texts) == {
        "at": {"type": ["string", "null"], "format": "date-time"},
        "day": {"type": ["string", "null"], "format": "date"},
        "some": {"type": ["string", "null"]},
    }


def test_a_field_without_a_value_that_says_its_type_is_left_out() -> None:
    """A column can be added later. A wrong type cannot be changed."""
    texts = ['{"a": 1, "n": null, "e": [], "o": {}, "deep": {"n": null}}']
    assert list(properties(*texts)) == ["a"]
    left_out = [path for path, field in fields(*texts).items() if not field.type]
    assert left_out == ["n", "e", "e[]", "o", "deep", "deep.n"]


def test_an_object_whose_names_are_data_is_json_text() -> None:
    texts = [json.dumps({"by_id": {f"id{n}": 1}, "all": {"a": 1}}) for n in range(MOST_NAMES + 1)]
    assert properties(*texts)["by_id"] == {}
    assert list(properties(*texts)["all"]["properties"]) == ["a"]
    assert "by_id.id0" not in fields(*texts)


def test_names_that_differ_in_case_or_are_empty_are_fields_of_their_own() -> None:
    assert [(path, field.type) for path, field in fields('{"a": 1, "A": "x", "": true, "a\\u0000": 1}').items()] == [
        ("a", "integer"),
        ("A", "string"),
        ("", "boolean"),
        ("a\0", "integer"),
    ]


@pytest.mark.parametrize(("opening", "closing"), [('{"a": ', "}"), ('{"a": [', "]}")])
def test_the_deepest_record_has_all_schemas(opening: str, closing: str) -> None:
    depth = LEVELS // (opening.count("{") + opening.count("["))
    found = sample(opening * depth + "1" + closing * depth).found
    assert "integer" in json.dumps(json_schema(found, "Orders"))
    assert '"long"' in avro_schema(found, "Orders")
    assert "long" in columns(found)[0]


def test_records_that_are_no_objects_are_counted_and_named() -> None:
    found = sample('{"a": 1}', "[1]", "nope", '{"a": 1, "a": 2}', '{"a": 1e99999999999999999999}')
    assert (found.records, [one.where for one in found.unused]) == (1, ["r:2", "r:3", "r:4", "r:5"])
    assert "the field 'a' is twice in one object" in found.unused[2].what
