"""The page of growth is made from a run's document alone, and says every assumption."""

from __future__ import annotations

from typing import Any

import pytest

from bench.contenders.requests import CASES
from bench.growth_page import PART, lines, section
from bench.page_part import PAGE, PagePart
from policies.review.prices import price_table
from tests.bench.test_growth_model import FOUND, one_round

MACHINE = {
    "date": "2026-11-25T12:00:00+00:00",
    "cores": 2,
    "memory_gib": 23.0,
    "seconds": 600.0,
    "load": [9.0, 8.0, 7.0],
}
STARTS = {
    start: {"wall": 1.0, "requests": {"PUT metadata": 4, "Glue GetTable": 2}} for start in ("proof", "first", "idle")
}
REQUESTS: list[dict[str, Any]] = [{**FOUND, "case": case.name, "starts": STARTS} for case in CASES]
GROWTH: dict[str, Any] = {
    "shapes": {
        "nested_avro": {"record_bytes": 100.0, "landings": [*one_round(0), *one_round(1), *one_round(2, two=5.0)]}
    },
    "load": [0.5, 2.5],
}


def test_a_run_becomes_tables_of_requests_cores_and_prices() -> None:
    written = section({"machine": MACHINE, "requests": REQUESTS, "growth": GROWTH}).splitlines()
    assert written[0].startswith('`make bench ARGS="--only growth"`, 2 cores, 23.0 GiB, 2026-11-25: 10 minutes')
    assert "load average 0.5 before the landings and 2.5 after them" in written[0]
    assert "| that wait for one another | 20 | 20 | 20 |" in written
    assert "| writes, reads, Glue: mean | 2.0, 2.0, 1.3 | 2.0, 2.0, 1.3 | 2.0, 2.0, 1.3 |" in written
    assert "| a run without records | 4, 0, 2 | 4, 0, 2 | 4, 0, 2 |" in written
    assert "| nested orders, Avro | 121,951 | 217,391 | 1.01 |" in written


def test_the_prices_have_their_assumptions() -> None:
    _, _, said = "\n".join(lines(REQUESTS, GROWTH)).partition("Assumptions of the prices:")
    assert f"of {price_table().date} (`policies/review/prices.json`" in said
    for words in (
        "20.0 requests of a commit",
        "each for 50 ms",
        "for 90 s before",
        "4 vCPU and 16 GB",
        "1,000,000 rows",
    ):
        assert words in said


def test_what_a_deployment_cannot_land_has_no_price() -> None:
    slow = [{**each, "wall": each["wall"] * 20, "cpu": each["cpu"] * 20} for each in one_round(0)]
    growth = {**GROWTH, "shapes": {"nested_avro": {"record_bytes": 100.0, "landings": slow}}}
    assert any(
        line.endswith("| 1,000 | cannot keep up | cannot keep up | cannot keep up | 42.40 |")
        for line in lines(REQUESTS, growth)
    )


def test_a_part_of_a_run_has_its_own_tables_only() -> None:
    assert list(lines([], None)) == []
    alone = section({"machine": MACHINE, "requests": REQUESTS, "growth": None})
    assert alone.startswith('`make bench ARGS="--only requests"`, 2 cores')
    assert "load average 9.0 at its end" in alone
    assert not any("TB" in line for line in lines(REQUESTS, None))
    assert not any("TB" in line for line in lines([], GROWTH))


def test_only_what_is_between_the_markers_is_replaced() -> None:
    part = PagePart("a", "b")
    assert part.replaced(f"a\n{part.begin}\nold\n{part.end}\nb", "new") == f"a\n{part.begin}\nnew\n{part.end}\nb"
    with pytest.raises(ValueError, match="lacks a marker"):
        part.replaced("a page", "new")


def test_the_page_has_the_part() -> None:
    page = PAGE.read_text()
    assert page.count(PART.begin) == page.count(PART.end) == 1
