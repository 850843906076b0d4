"""The measured parts of the growth model: landings on one core and on two, in turns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from statistics import fmean
from typing import Any

from bench import rounds
from bench.bodies import pool
from bench.environment import BenchEnvironment, Contender, tell
from bench.growth_model import prediction
from bench.shapes import SHAPES

SHAPE_ROWS: Mapping[str, int] = {"nested_avro": 1_000_000, "wide_avro": 150_000}
FEW = 20
"""The small topic has a part of the rows of the large one: one in so many."""
WARM_UP = 2
_FRAME = 5
"""The bytes before a value: a zero and the schema id."""


def measure(here: BenchEnvironment, measured: int, scale: float) -> dict[str, Any]:
    """Land each shape with one core and with two, `measured` times. Return the landings by shape, and the load average."""
    before = os.getloadavg()[0]
    shapes = {shape: _shape(here, shape, int(rows * scale), measured) for shape, rows in SHAPE_ROWS.items()}
    return {"shapes": shapes, "load": [before, os.getloadavg()[0]]}


def _shape(here: BenchEnvironment, shape: str, rows: int, measured: int) -> dict[str, Any]:
    tell(f"{shape} on one core and on two")
    many, few = (here.topic(shape, f"growth_{shape}_{size}", size) for size in (rows, rows // FEW))
    landings: list[dict[str, Any]] = []
    one = (min(os.sched_getaffinity(0)),)
    with ExitStack() as left:

        def served(label: str, **more: Any) -> Contender:
            return left.enter_context(here.served(here.job("ours", f"growth_{shape}_{label}", many, **more)))

        alone = served("one", cores=1, cpus=one)
        both = served("two", cores=2)
        for number in range(-WARM_UP, measured):
            for contender, cores, topic in ((alone, 1, many), (both, 2, many), (alone, 1, few)):
                figure = rounds.land(here, contender, "ours", topic, number)
                if number >= 0:
                    landings.append(_landing(figure, cores))
    here.drop_topics(many, few)
    found = {"record_bytes": record_bytes(shape, here.seed), "landings": landings}
    tell(f"  two cores, predicted / measured: {prediction(found):.3f}")
    return found


def _landing(figure: rounds.Figure, cores: int) -> dict[str, Any]:
    found = {name: getattr(figure, name) for name in ("round", "rows", "wall", "cpu")}
    tell(f"  round {figure.round + 1} {cores} cores {figure.rows:9,} rows {figure.wall:6.2f} s")
    return {**found, "cores": cores, "broker": figure.by_process.get("broker", 0.0)}


def record_bytes(shape: str, seed: int) -> float:
    """Return the mean size of a shape's records in Kafka, before compression: frame, value and key."""
    head, tails, keys = pool(SHAPES[shape], seed=seed)
    return _FRAME + len(head(1 << 19)) + fmean(map(len, tails)) + fmean(map(len, keys))
