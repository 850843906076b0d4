"""Durations as text."""

from __future__ import annotations

import pytest

from frazil.declaration.durations import seconds_of
from frazil.declaration.problems import InvalidDeclaration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7 days", 604_800),
        ("1 day", 86_400),
        ("36 hours", 129_600),
        ("90 minutes", 5_400),
        ("36500 days", 3_153_600_000),
    ],
)
def test_a_number_and_a_unit_are_seconds(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "7", "days", "0 days", "-1 days", "7days", "7 Days", "1.5 days", "3 weeks", "\u0667 days"]
)
def test_other_text_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidDeclaration, match="is no duration"):
        seconds_of(text)


def test_a_duration_has_an_end() -> None:
    with pytest.raises(InvalidDeclaration, match="Write 36500 days at most"):
        seconds_of("36501 days")
