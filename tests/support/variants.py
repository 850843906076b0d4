"""Variants of one test, of which only the first run for every change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_short(values: Iterable[Any], *, short: int = 1) -> list[Any]:
    """Return the parameters of a test: those behind the first `short` ones are marked `long`. A tuple has several arguments."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=() if n < short else pytest.mark.long)
        for n, value in enumerate(values)
    ]
