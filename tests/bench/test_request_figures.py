"""The requests of commits by how they are billed, and how many wait for one another."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from bench.request_figures import billed, billed_of_a_commit, in_series, price
from policies.review.prices import price_table

FOUND: dict[str, Any] = {
    "commits": [{"wall": 9.0, "requests": {"PUT data": 99}}] * 5
    + [{"wall": 0.5, "requests": {"PUT data": 1, "GET metadata": 3, "Glue GetTable": 2}}] * 2
    + [{"wall": 0.6, "requests": {"PUT data": 1, "LIST other": 3, "DELETE metadata": 9}}],
    "delayed": [{"wall": 1.5, "requests": {}}, {"wall": 1.0, "requests": {}}, {"wall": 3.0, "requests": {}}],
    "delay_seconds": 0.05,
}


def test_a_bill_has_the_mean_and_deletes_are_free() -> None:
    assert billed_of_a_commit(FOUND) == pytest.approx({"writes": 2, "reads": 2, "free": 3, "Glue": 4 / 3})
    assert price(
        billed({"PUT data": 10, "HEAD data": 100, "DELETE data": 9, "Glue GetTable": 1000}), price_table()
    ) == (Decimal("0.000054") + Decimal("0.000043") + Decimal("0.001"))


def test_the_delay_of_each_request_shows_how_many_wait_for_one_another() -> None:
    assert in_series(FOUND) == pytest.approx(20)
