"""Small batches: what a commit of 300 records costs, and eight keyed topics with a few records a second each."""

from __future__ import annotations

from statistics import mean
from typing import Any

from bench.environment import BenchEnvironment, tell
from bench.fill import make
from bench.shapes import SHAPES

ROWS, BATCHES, WARM = 300, 40, 20
WARM_SECONDS, SECONDS = 90, 60
CPU_GOALS = {
    "append": (5.0, 0.3),
    "append_rejected": (None, 0.5),
    "upsert": (8.0, 0.5),
    "upsert_rejected": (10.0, 0.8),
    "changes": (None, 0.8),
}
"""CPU-seconds of the first batch of a process, if it has a goal, and of one after `WARM` others."""
TITLES = {
    "append": "append, plain JSON",
    "append_rejected": "append, nested JSON, 2 % rejected",
    "upsert": "upsert, plain JSON",
    "upsert_rejected": "upsert, nested JSON, 2 % rejected",
    "changes": "upsert of Debezium's changes, JSON",
}


def measure(here: BenchEnvironment) -> dict[str, Any]:
    """Run each kind in a process of its own, then the topics that are followed."""
    tell(f"small batches: {ROWS} records each")
    unread = make(here.world, SHAPES["light_avro"], "small_unread", 0, partitions=1)
    found = []
    for number, kind in enumerate(TITLES):
        wants = {"kind": number, "batches": BATCHES, "rows": ROWS}
        found.append(here.run(here.job("small", f"small_{kind}", unread, wants=wants)))
        tell(f"  {kind}: first {found[-1]['cpu'][0]:.2f}, later {mean(found[-1]['cpu'][WARM:]):.2f} CPU-s")
    wants = {"seconds": SECONDS, "warm_seconds": WARM_SECONDS}
    followed = here.run(here.job("small", "small_followed", unread, wants=wants))
    tell(f"  followed: {followed}")
    return {"kinds": found, "followed": followed}
