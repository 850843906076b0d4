"""Bytes for eyes."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.dead_letters.show import SHOWN_BYTES, WIDTH, hexview


def test_a_line_tells_offset_hex_and_text() -> None:
    assert hexview(b"\x00\x00\x00\x00\x2afoo\x1b[2J") == (
        "00000000: 0000 0000 2a66 6f6f 1b5b 324a            ....*foo.[2J",
    )


def test_no_bytes_are_no_lines() -> None:
    assert hexview(b"") == ()


def test_what_is_not_shown_is_counted() -> None:
    lines = hexview(bytes(SHOWN_BYTES + 7))
    assert len(lines) == SHOWN_BYTES // WIDTH + 1
    assert lines[-1] == "… 7 more bytes"


def test_a_start_inside_is_brought_to_the_beginning_of_its_line() -> None:
    lines = hexview(bytes(range(100)), start=40, at_most=16)
    assert lines[0].startswith("00000020: 2021")
    assert lines[-1] == "… 52 more bytes"


@given(st.binary(max_size=600), st.integers(-5, 700))
def test_only_printable_ascii_is_shown_whatever_the_bytes(data: bytes, start: int) -> None:
    assert all(c.isascii() and c.isprintable() for line in hexview(data, start=start) for c in line.replace("…", ""))


@pytest.mark.skipif(shutil.which("xxd") is None, reason="there is no xxd")
@given(st.binary(min_size=1, max_size=100))
def test_it_is_what_xxd_shows(data: bytes) -> None:
    told = subprocess.run(["xxd"], input=data, capture_output=True, check=True).stdout.decode()
    assert list(hexview(data)) == told.splitlines()
