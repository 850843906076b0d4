"""A text is a time exactly if the decoder takes it for one; `tests/decode` compares both."""

from __future__ import annotations

import pytest

from frazil.schemas.json.written_times import is_written
from frazil.schemas.types import Kind


@pytest.mark.parametrize(
    "text",
    ["2026-02-28T10:00:00Z", "2026-02-28t10:00:00.123456789z", "2026-02-28 10:00:00+0530", "0001-01-01T00:00:00-18:00"],
)
def test_an_instant_is_written_with_an_offset(text: str) -> None:
    assert is_written(text, Kind.TIMESTAMPTZ)


@pytest.mark.parametrize(
    "text",
    [
        *("2026-02-28T10:00:00", "2026-02-30T10:00:00Z", "2026-02-28T24:00:00Z", "2026-02-28T10:00:60Z"),
        *(
            "2026-02-28T10:00:00+18:01",
            "0001-01-01T00:00:00+01:00",
            "9999-12-31T23:59:59-01:00",
            "2026-02-28T10:00:00Z\n",
        ),
        *("٢026-02-28T10:00:00Z", "2026-02-28", "1767225600", ""),
    ],
)
def test_other_texts_are_no_instant(text: str) -> None:
    assert not is_written(text, Kind.TIMESTAMPTZ)


def test_a_date_is_one_of_the_calendar() -> None:
    days = ("2024-02-29", "2026-02-29", "0000-01-01", "2026-1-1")
    assert [is_written(day, Kind.DATE) for day in days] == [True, False, False, False]
    assert is_written("2026-02-28T10:00:00.5", Kind.TIMESTAMP)
