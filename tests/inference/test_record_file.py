"""A file of records: JSON lines, with the line of each problem."""

from __future__ import annotations

import io
from decimal import Decimal
from pathlib import Path

import pytest

from frazil.errors import InvalidInput
from frazil.inference.record_file import Line, read_records


def lines(content: bytes) -> list[Line]:
    return read_records("-", io.BytesIO(content))


def test_each_line_is_a_record_with_its_place_and_its_own_text() -> None:
    found = lines(b'\xef\xbb\xbf{"a": 1.10}\r\n\n  {"b": "\xe2\x80\xa8"}\n')
    assert [(line.place, line.text) for line in found] == [
        ("stdin:1", '{"a": 1.10}'),
        ("stdin:3", '{"b": "\u2028"}'),
    ]
    assert found[0].value == {"a": Decimal("1.10")}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "this is not JSON: Expecting property name"),
        ('{"a": 1} {"a": 2}', "this is not JSON: Extra data: line 1 column 10"),
        ('{"a": NaN}', "this is not JSON: NaN is no number of JSON"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "this is not JSON: the field 'c' is twice in one object"),
        ('{"a": "\\ud800"}', "the record has half a surrogate pair"),
        ("[" * 100_000, "this is not JSON: maximum recursion depth"),
        ('{"a": ' * 201 + "1" + "}" * 201, "this is not JSON: more than 200 levels"),
        ("1" * 5_000, "this is not JSON: Exceeds the limit"),
        ('{"a": 1e999999999999999999999}', "this is not JSON: a number has too large an exponent"),
    ],
)
def test_a_wrong_line_is_named(text: str, why: str) -> None:
    with pytest.raises(InvalidInput) as wrong:
        _ = Line("orders.jsonl:7", text).value
    assert str(wrong.value).startswith(f"orders.jsonl:7: {why}")


def test_bytes_that_are_not_utf8_are_named_with_their_line() -> None:
    with pytest.raises(InvalidInput, match="stdin:2: this is not UTF-8"):
        lines(b'{"a": 1}\n{"a": "\xff"}\n')


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nope.jsonl: it cannot be read"):
        read_records(str(tmp_path / "nope.jsonl"), io.BytesIO())


def test_a_closed_stdin_is_named() -> None:
    with pytest.raises(InvalidInput, match="stdin: it is closed"):
        read_records("-", None)
