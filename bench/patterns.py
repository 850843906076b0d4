"""Two hundred small topics of one pattern: landed together, and followed while they have no new records."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from bench.accounting import without_broker
from bench.environment import BenchEnvironment, tell
from bench.fill import make
from bench.shapes import SHAPES

TOPICS, ROWS, SECONDS = 200, 20, 120
TOGETHER, IDLE = 0.25, 0.05
"""The goals: the time together as a part of that one after another, and cores of a run without new records."""


def measure(here: BenchEnvironment, rounds: int, scale: float) -> dict[str, Any]:
    """Land and follow the topics."""
    count = max(int(TOPICS * scale), 2)
    tell(f"patterns: {count} topics")
    topic = make(here.world, SHAPES["light_avro"], "patterns", ROWS, partitions=1)
    for number in range(count):
        make(here.world, SHAPES["light_avro"], f"patterns.t{number:03d}", ROWS, partitions=1)
    wants = {"topics": count, "rounds": rounds, "seconds": SECONDS}
    found = here.run(here.job("patterns", "patterns", topic, wants=wants))
    tell(f"  together / one after another {together(found):.2f}, idle cores {idle(found):.3f}")
    return found


def together(found: Mapping[str, Any]) -> float:
    """Return the median time together, as a part of that one after another in the same round."""
    walls = {(one["round"], one["way"]): one["wall"] for one in found["measured"]}
    return median(walls[n, "together"] / walls[n, "alone"] for n in {number for number, _ in walls})


def idle(found: Mapping[str, Any]) -> float:
    """Return the cores that a run uses without new records."""
    return without_broker(found["idle"]["cpu"]) / float(found["idle"]["wall"])
