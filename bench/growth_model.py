"""A model of growth from measured parts: the time of a batch on more cores, and the price of a TB.

A batch takes what one thread does alone, what waits, and the work of its rows, which tasks share evenly:

    seconds = fixed + waiting + requests in series * latency + rows * CPU of a row / cores
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from statistics import median
from typing import Any

GB, TB = 10**9, 10**12
DAY, HOUR = 86_400, 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The measured parts of a landing on one core. CPU is in seconds, of one row if not said otherwise."""

    record_bytes: float
    """The mean size of a record, frame and key included."""
    tasks: float
    """The work of the tasks."""
    fixed: float
    """The CPU of a batch without rows: plan, table, commit. One thread does it."""
    waiting: float
    """The seconds of a batch in which no CPU of the driver works."""
    broker: float = 0.0
    """The CPU of the broker, where it shares the cores."""

    @property
    def row(self) -> float:
        """The CPU of a row, the broker's included."""
        return self.tasks + self.broker


def parts_of(landings: Sequence[Mapping[str, Any]], record_bytes: float, *, has_broker: bool) -> Parts:
    """Return the parts from landings on one core, with many and with few rows.

    The CPU of a batch without rows follows from the two sizes. It is 0 if the few rows cost less than their share.
    """
    many, few = _of(landings, max), _of(landings, min)
    fixed = max((few["cpu"] * many["rows"] - many["cpu"] * few["rows"]) / (many["rows"] - few["rows"]), 0.0)
    return Parts(
        record_bytes=record_bytes,
        tasks=(many["cpu"] - fixed) / many["rows"],
        fixed=fixed,
        waiting=max(many["wall"] - many["cpu"], 0.0),
        broker=many["broker"] / many["rows"] if has_broker else 0.0,
    )


def _of(landings: Sequence[Mapping[str, Any]], which: Any) -> dict[str, float]:
    """Return the medians of the landings of the largest or the smallest topic."""
    mine = [each for each in landings if each["cores"] == 1]
    rows = which(each["rows"] for each in mine)
    chosen = [each for each in mine if each["rows"] == rows]
    return {name: float(median(each[name] for each in chosen)) for name in ("rows", "wall", "cpu", "broker")}


def batch_seconds(parts: Parts, rows: float, cores: int, *, commit_seconds: float = 0.0) -> float:
    """Return how long a batch takes. `commit_seconds` is the wait for the store and the catalog."""
    return parts.fixed + parts.waiting + commit_seconds + rows * parts.row / cores


def rows_in(parts: Parts, seconds: float, cores: int, *, commit_seconds: float = 0.0) -> float:
    """Return how many rows a batch of so many seconds lands at most; 0 if it has time for none."""
    return max(seconds - batch_seconds(parts, 0, cores, commit_seconds=commit_seconds), 0.0) * cores / parts.row


def predictions(found: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Return, for each round, the rows a second that one core predicts for two, and those of two."""
    rounds: list[tuple[float, float]] = []
    for number in sorted({each["round"] for each in found["landings"]}):
        landings = [each for each in found["landings"] if each["round"] == number]
        parts = parts_of(landings, found["record_bytes"], has_broker=True)
        (two,) = (each for each in landings if each["cores"] == 2)
        rounds.append((two["rows"] / batch_seconds(parts, two["rows"], 2), two["rows"] / two["wall"]))
    return rounds


def prediction(found: Mapping[str, Any]) -> float:
    """Return the median over the rounds of predicted to measured."""
    return float(median(predicted / measured for predicted, measured in predictions(found)))


# ── The price of a TB ───────────────────────────────────────────────────────────────────────────
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A deployment on EMR Serverless, what its commits cost, and what the model assumes of both."""

    cores: int
    """vCPUs of all executors. Each does the work of a measured core."""
    hourly: Decimal
    """The price of an hour of all workers, the driver's included."""
    commit_seconds: float
    commit_price: Decimal
    start_seconds: float
    """Seconds that a run is billed for before its first batch."""
    start_price: Decimal
    """The price of the requests of a run's start."""
    most_rows: float
    """The most rows of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The price of a TB of records, at a volume. `gb_a_day` is that volume, which follows from the interval of full workers."""

    gb_a_day: float
    workers: Decimal
    requests: Decimal

    @property
    def sum(self) -> Decimal:
        """Workers and requests."""
        return self.workers + self.requests


def always_full(parts: Parts, setting: Setting, interval_seconds: float) -> Cost | None:
    """Return the price where one run lands a batch each interval, as many rows as fit; None if none fit.

    If more fit than a batch may have, the batches follow one another without a pause.
    """
    wait = setting.commit_seconds
    rows = min(rows_in(parts, interval_seconds, setting.cores, commit_seconds=wait), setting.most_rows)
    if not rows:
        return None
    seconds = min(interval_seconds, batch_seconds(parts, rows, setting.cores, commit_seconds=wait))
    size = rows * parts.record_bytes
    return Cost(
        gb_a_day=size * DAY / seconds / GB,
        workers=_a_tb(setting.hourly * Decimal(seconds) / HOUR, size),
        requests=_a_tb(setting.commit_price, size),
    )


def continuous(parts: Parts, setting: Setting, interval_seconds: float, gb_a_day: float) -> Cost | None:
    """Return the price where one run that never ends lands its share each interval; None if that takes longer."""
    size = gb_a_day * GB * interval_seconds / DAY
    batches, seconds = _landed(parts, setting, size)
    if seconds > interval_seconds:
        return None
    return Cost(
        gb_a_day=gb_a_day,
        workers=_a_tb(setting.hourly * Decimal(interval_seconds) / HOUR, size),
        requests=_a_tb(setting.commit_price * batches, size),
    )


def drained(parts: Parts, setting: Setting, interval_seconds: float, gb_a_day: float) -> Cost | None:
    """Return the price where a run starts each interval and ends with its share landed; None if that takes longer."""
    size = gb_a_day * GB * interval_seconds / DAY
    batches, seconds = _landed(parts, setting, size)
    seconds += setting.start_seconds
    if seconds > interval_seconds:
        return None
    return Cost(
        gb_a_day=gb_a_day,
        workers=_a_tb(setting.hourly * Decimal(seconds) / HOUR, size),
        requests=_a_tb(setting.start_price + setting.commit_price * batches, size),
    )


def _landed(parts: Parts, setting: Setting, size: float) -> tuple[int, float]:
    """Return how many batches land so many bytes, and how long that takes."""
    rows = size / parts.record_bytes
    batches = max(ceil(rows / setting.most_rows), 1)
    wait = setting.commit_seconds
    return batches, batches * batch_seconds(parts, rows / batches, setting.cores, commit_seconds=wait)


def tableflow(gb_price: Decimal, topic_hour: Decimal, gb_a_day: float) -> Decimal:
    """Return the list price of a TB of one topic: what is processed, and the hours of the topic."""
    return gb_price * TB / GB + topic_hour * 24 * TB / Decimal(gb_a_day * GB)


def _a_tb(price: Decimal, size: float) -> Decimal:
    return price * TB / Decimal(size)
