"""A second attempt tells where decoding goes wrong, and never raises."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.dead_letters.diagnosis import SHOWN_CHARACTERS, attempt, json_value, text
from frazil.dead_letters.protobuf_body import protobuf_fields


def test_what_can_be_decoded_is_shown_as_json() -> None:
    found = attempt('{"a": "grüße"}'.encode(), json_value)
    assert (found.succeeded, found.decoded, found.at) == (True, '{"a": "grüße"}', None)


def test_a_long_value_is_cut() -> None:
    found = attempt(json.dumps("x" * 5_000).encode(), json_value)
    assert found.decoded is not None
    assert len(found.decoded) == SHOWN_CHARACTERS + 1
    assert found.decoded.endswith("…")


@pytest.mark.parametrize(
    ("body", "what", "at"),
    [
        (b'{"a": }', "it is no JSON: Expecting value, line 1", 6),
        ('{"ü": }'.encode(), "it is no JSON: Expecting value, line 1", 7),
        (b'{"a": 1}{', "it is no JSON: Extra data, line 1", 8),
        (b'"ab\xffcd"', "byte 0xff is no UTF-8: invalid start byte", 3),
        (b"", "it is no JSON: Expecting value, line 1", 0),
    ],
    ids=["syntax", "bytes are counted, not characters", "two documents", "no UTF-8", "nothing"],
)
def test_json_that_is_none_is_told_with_its_byte(body: bytes, what: str, at: int) -> None:
    found = attempt(body, json_value)
    assert (found.succeeded, found.what, found.at, found.decoded) == (False, what, at, None)


@pytest.mark.parametrize("levels", [1_000, 100_000])
def test_json_nested_deeper_than_spark_or_python_goes_is_told(levels: int) -> None:
    assert attempt(b"[" * levels + b"]" * levels, json_value).what == "it is nested too deeply"


def test_a_number_longer_than_python_reads_is_told() -> None:
    found = attempt(b'{"a": ' + b"9" * 5_000 + b"}", json_value)
    assert (found.succeeded, found.at) == (False, None)
    assert "whole number of more than" in found.what


def test_text_that_is_no_utf_8_is_told_with_its_byte() -> None:
    found = attempt(b"abc\xc3", text)
    assert (found.what, found.at) == ("byte 0xc3 is no UTF-8: unexpected end of data", 3)


@given(st.binary(max_size=200))
def test_no_bytes_make_an_attempt_raise(body: bytes) -> None:
    for decode in (json_value, text, protobuf_fields):
        found = attempt(body, decode)
        assert found.succeeded == (found.decoded is not None)
        assert found.at is None or 0 <= found.at <= len(body)
