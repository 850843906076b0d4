"""The levels of JSON are counted, so every Python reads and refuses the same texts."""

from __future__ import annotations

import json

import pytest

from frazil.declaration.checks.nesting import LEVELS, bounded


def nested(levels: int) -> str:
    return '{"b": 1, "a": [' * (levels // 2) + "[]" * (levels % 2) + "]}" * (levels // 2)


@pytest.mark.parametrize("levels", [0, 1, 2, 3, LEVELS])
def test_a_value_with_the_allowed_levels_is_returned_as_it_is(levels: int) -> None:
    value = json.loads(nested(levels) or "1")
    assert bounded(value, levels) is value
    assert bounded([value, "[", value], levels + 1)


@pytest.mark.parametrize("levels", [1, 2, 3, LEVELS + 1])
def test_one_level_more_is_refused_as_json_refuses_it(levels: int) -> None:
    with pytest.raises(RecursionError, match=f"more than {levels - 1} levels"):
        bounded(json.loads(nested(levels)), levels - 1)


def test_the_levels_may_be_anywhere() -> None:
    wide = json.loads(f'[1, {{"x": []}}, {nested(5)}, 2]')
    with pytest.raises(RecursionError):
        bounded(wide, 5)
    assert bounded(wide, 6) is wide
