"""One topic as three tables and as twenty, beside one table of the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from bench.accounting import without_broker
from bench.environment import BenchEnvironment, tell
from bench.fill import make
from bench.shapes import SHAPES

ROWS = 1_000_000
GOALS = {"three": 1.3, "twenty": 2.0}
"""The CPU of so many tables, as a multiple of that of one."""


def measure(here: BenchEnvironment, rounds: int, scale: float) -> dict[str, Any]:
    """Land the same records by each way."""
    tell(f"routes: {', '.join(GOALS)} tables of one topic")
    topic = make(here.world, SHAPES["nested_avro"], "routes", int(ROWS * scale))
    found = here.run(here.job("routes", "routes", topic, wants={"rounds": rounds}))
    tell(f"  CPU by that of one table: {multiples(found)}")
    return found


def multiples(found: Mapping[str, Any]) -> dict[str, float]:
    """Return the median CPU of each way, as a multiple of that of one table in the same round."""
    cpu = {(one["round"], one["way"]): one["cpu"] for one in found["measured"]}
    rounds = sorted({number for number, _ in cpu})
    return {
        way: median(without_broker(cpu[number, way]) / without_broker(cpu[number, "one"]) for number in rounds)
        for way in GOALS
    }
