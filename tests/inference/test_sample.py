"""A sample says of each field what was seen, and chooses the type that loses nothing of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.inference.inferred_schema import sampled_columns, sampled_schema
from frazil.inference.inferred_type import MOST_NAMES
from frazil.inference.record_file import Line
from frazil.inference.sample import FieldSeen, Sample
from frazil.schemas.declared_columns import declared_type


def sample(*texts: str) -> Sample:
    return Sample.of(Line(f"r:{number}", text) for number, text in enumerate(texts, start=1))


def fields(*texts: str) -> dict[str, FieldSeen]:
    return {field.path: field for field in sample(*texts).fields}


def properties(*texts: str) -> Any:
    return (sampled_schema(sample(*texts).found, "Orders") or {}).get("properties")


def test_each_field_has_its_type_and_its_shares() -> None:
    found = fields(
        '{"id": 1, "to": {"city": "x"}}', '{"id": 2.5, "to": {"city": null}}', '{"id": 3, "tags": ["a", null]}'
    )
    assert {path: (one.type, one.values, one.nulls, one.present, one.objects) for path, one in found.items()} == {
        "id": ("number", 3, 0, 3, 3),
        "to": ("object", 2, 0, 2, 3),
        "to.city": ("string", 1, 1, 2, 2),
        "tags": ("array of string", 1, 0, 1, 3),
        "tags[]": ("string", 1, 1, 2, 2),
    }
    assert found["to"].document["present_share"] == 0.6667
    assert found["to.city"].document["null_share"] == 0.5


@pytest.mark.parametrize(
    ("values", "conflict"),
    [
        (("1", '"a"', "2"), "2 long, first r:1; 1 string, first r:2"),
        (("{}", "[]"), "1 record, first r:1; 1 array, first r:2"),
        (("9223372036854775808",), "a whole number of more than 64 bits, r:1"),
        (("9007199254740993", "0.5"), "a whole number next to fractions that no double holds, r:1"),
    ],
)
def test_values_without_a_common_type_become_text_and_it_is_said(values: tuple[str, ...], conflict: str) -> None:
    texts = [f'{{"a": {value}}}' for value in values]
    assert fields(*texts)["a"].conflict == conflict
    assert properties(*texts) == {"a": {"type": ["string", "null"]}}


@pytest.mark.parametrize("value", ["0.12345678901234567891", "1e400"])
def test_a_number_that_no_double_holds_is_json_text(value: str) -> None:
    """A column of strings would have it as the text of a double."""
    texts = ['{"a": 0.1}', f'{{"a": {value}}}']
    assert fields(*texts)["a"].conflict == "a number that no double holds, r:2"
    assert properties(*texts) == {"a": {}}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("9223372036854775807", "-1"), "integer"),
        (("1", "0.5", "-0.0", "1.10", "0.30000000000000004"), "number"),
        (("true", "null"), "boolean"),
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
    assert sampled_schema(sample('{"n": null}').found, "Orders") is None


def test_an_object_whose_names_are_data_is_json_text() -> None:
    texts = [json.dumps({"by_id": {f"id{n}": 1}, "all": {"a": 1}}) for n in range(MOST_NAMES + 1)]
    assert properties(*texts)["by_id"] == {"type": ["object", "null"]}
    assert list(properties(*texts)["all"]["properties"]) == ["a"]
    assert "by_id.id0" not in fields(*texts)


def test_records_that_are_no_objects_are_counted_and_named() -> None:
    found = sample('{"a": 1}', "[1]", "nope", '{"a": 1, "a": 2}', '{"a": 1e99999999999999999999}')
    assert (found.records, [one.where for one in found.unused]) == (1, ["r:2", "r:3", "r:4", "r:5"])
    assert found.unused[2].what == "the field 'a' is twice in one object"


def test_columns_say_what_the_values_showed() -> None:
    records = [
        {"id": 1, "at": "2026-01-01T00:00:00Z", "day": "2026-01-01", "tags": ["a"], "to": {"no": 1, "x y": 1.5}},
        {"id": 2, "mixed": 1, "never": None, "empty": [], "two words": True},
        {"id": 3, "mixed": "a", "to": {"z": [{"b": 9007199254740993}]}},
    ]
    found = Sample.of(Line(str(number), json.dumps(each)) for number, each in enumerate(records)).found
    columns = sampled_columns(found)
    assert columns == (
        "id long",
        "at timestamptz",
        "day date",
        "tags list<string>",
        "to struct<no: long, `x y`: double, z: list<struct<b: long>>>",
        "mixed string",
        "`two words` boolean",
    )
    assert [field.name for field in declared_type(columns).fields][-1] == "two words", "a declaration takes them"
    assert sampled_columns(Sample.of([Line("0", "[1]")]).found) == ()
