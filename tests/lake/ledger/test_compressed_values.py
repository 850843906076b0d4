"""A long value becomes shorter text, and its own text again."""

import json

from hypothesis import given
from hypothesis import strategies as st

from frazil.lake.ledger.entry import MARK, MOST_PLAIN, compact, plain


@given(st.text(), st.integers(1, 20_000))
def test_a_value_survives(text: str, times: int) -> None:
    assert plain(compact(text * (times // (len(text) + 1)))) == text * (times // (len(text) + 1))


def test_a_short_value_stays_as_it_is() -> None:
    assert compact("x" * MOST_PLAIN) == "x" * MOST_PLAIN


def test_a_long_value_becomes_shorter() -> None:
    text = json.dumps({str(p): 1_000_000 + p for p in range(1000)})
    assert compact(text).startswith(MARK)
    assert len(compact(text)) < len(text) / 2
