"""The arithmetic of the growth model and of requests."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from bench.growth_model import (
    Parts,
    Setting,
    always_full,
    batch_seconds,
    continuous,
    drained,
    parts_of,
    prediction,
    predictions,
    rows_in,
    tableflow,
)
from bench.request_figures import billed, billed_of_a_commit, in_series, price
from policies.review.prices import price_table

PARTS = Parts(record_bytes=100, tasks=7e-6, fixed=0.3, waiting=0.2)
SETTING = Setting(
    cores=4,
    hourly=Decimal("0.72"),
    commit_seconds=0.5,
    commit_price=Decimal("0.0001"),
    start_seconds=90,
    start_price=Decimal("0.001"),
    most_rows=1_000_000,
)


def landing(number: int, cores: int, rows: int, *, wall: float, cpu: float) -> dict[str, Any]:
    return {"round": number, "cores": cores, "rows": rows, "wall": wall, "cpu": cpu, "broker": 0.2}


def one_round(number: int, *, slower: float = 1.0, two: float = 4.6) -> list[dict[str, Any]]:
    """Return landings of a batch of 0.5 CPU-seconds and 7.5 for a million rows."""
    made = [
        landing(number, 1, 1_000_000, wall=8.2, cpu=8.0),
        landing(number, 1, 50_000, wall=1.0, cpu=0.875),
        landing(number, 2, 1_000_000, wall=two, cpu=8.0),
    ]
    return [{**each, **{name: each[name] * slower for name in ("wall", "cpu", "broker")}} for each in made]


def test_the_parts_add_up_to_the_measured_batch() -> None:
    parts = parts_of(one_round(0), 99.0, has_broker=False)
    assert (parts.tasks, parts.fixed, parts.waiting) == pytest.approx((7.5e-6, 0.5, 0.2))
    assert batch_seconds(parts, 1_000_000, 1) == pytest.approx(8.2)


def test_a_batch_without_rows_never_costs_less_than_nothing() -> None:
    few = landing(0, 1, 50_000, wall=0.1, cpu=0.1)
    landings = [few if each["rows"] == 50_000 else each for each in one_round(0)]
    parts = parts_of(landings, 99.0, has_broker=False)
    assert parts.fixed == 0
    assert batch_seconds(parts, 1_000_000, 1) == pytest.approx(8.2)


def test_two_cores_halve_the_work_of_rows_and_nothing_else() -> None:
    found = {"record_bytes": 99.0, "landings": one_round(0)}
    ((predicted, measured),) = predictions(found)
    assert measured == pytest.approx(1_000_000 / 4.6)
    assert predicted == pytest.approx(1_000_000 / (0.5 + 0.2 + (7.5 + 0.2) / 2))  # with the broker's work


def test_a_prediction_compares_within_a_round_only() -> None:
    quiet = {"record_bytes": 99.0, "landings": one_round(0)}
    busy = {"record_bytes": 99.0, "landings": [*one_round(0), *one_round(1, slower=5.0), *one_round(2)]}
    assert prediction(busy) == pytest.approx(prediction(quiet))


def test_rows_that_fit_into_a_time_take_that_time() -> None:
    rows = rows_in(PARTS, 10, 4, commit_seconds=0.5)
    assert batch_seconds(PARTS, rows, 4, commit_seconds=0.5) == pytest.approx(10)
    assert rows_in(PARTS, 0.9, 4, commit_seconds=0.5) == 0


def test_full_workers_pay_for_the_time_of_a_batch() -> None:
    found = always_full(PARTS, SETTING, 2.0)  # 1 s remains, and 4 cores land 571,429 rows in it
    assert found is not None
    size = 4e6 / 7 * 100
    assert float(found.workers) == pytest.approx(0.72 * 2 / 3600 * 1e12 / size)
    assert float(found.requests) == pytest.approx(0.0001 * 1e12 / size)
    assert found.gb_a_day == pytest.approx(size * 43_200 / 1e9)
    assert found.sum == found.workers + found.requests
    assert always_full(PARTS, SETTING, 1.0) is None


def test_a_batch_has_at_most_so_many_rows_however_long_the_interval() -> None:
    found, longer = (always_full(PARTS, SETTING, seconds) for seconds in (60.0, 600.0))
    assert found is not None
    assert found == longer
    assert float(found.workers) == pytest.approx(0.72 * (1.0 + 7 / 4) / 3600 * 1e12 / 1e8)


def test_a_run_that_never_ends_is_paid_while_it_waits() -> None:
    found = continuous(PARTS, SETTING, 60.0, 100.0)
    assert found is not None
    assert float(found.workers) == pytest.approx(0.72 * 24 * 10)
    assert float(found.requests) == pytest.approx(1440 * 0.0001 * 10)
    assert continuous(PARTS, SETTING, 60.0, 10_000.0) is None


def test_a_drain_is_paid_from_its_start_to_its_last_commit() -> None:
    found = drained(PARTS, SETTING, 3600.0, 24.0)  # a GB a run: 10 batches of a million rows
    assert found is not None
    assert float(found.workers) == pytest.approx(0.72 * (90 + 10 * (1.0 + 7 / 4)) / 3600 * 1000)
    assert float(found.requests) == pytest.approx((0.001 + 10 * 0.0001) * 1000)
    assert drained(PARTS, SETTING, 60.0, 24.0) is None


def test_tableflow_is_paid_by_bytes_and_by_hours_of_the_topic() -> None:
    assert tableflow(Decimal("0.04"), Decimal("0.10"), 1000.0) == pytest.approx(Decimal("42.4"))
    assert tableflow(Decimal("0.04"), Decimal("0.10"), 10.0) == pytest.approx(Decimal(280))


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
