"""Frazil with fifty small pipelines in one warm session, one after another and together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from bench.accounting import Meter
from bench.contenders.product import declared, drained, driver
from bench.fill import fill
from bench.topics import Job

SEED = 7


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Land each topic's few new records, together and alone in turns. The first turn creates the tables and warms up."""
    count, rounds = job.wants["pipelines"], job.wants["rounds"]
    topics = [replace(job.timed, name=f"{job.timed.name}_{number:02d}") for number in range(count)]
    pipelines = [declared(job, topic, f"{job.table}_{number:02d}") for number, topic in enumerate(topics)]
    measured: list[dict[str, Any]] = []
    given = 0
    with driver(job) as (shared, registry):

        def alone() -> int:
            return sum(drained([pipeline], shared, registry) for pipeline in pipelines)

        def together() -> int:
            return drained(pipelines, shared, registry)

        def measure(name: str, way: Callable[[], int]) -> None:
            nonlocal given
            fill(job.environment.kafka.bootstrap, topics, seed=SEED, first=given)
            given += job.timed.rows
            before = meter.read()
            written = way()
            used = meter.read().since(before)
            assert written == job.timed.rows * count, written
            measured.append({"way": name, **asdict(used)})

        for _ in range(rounds + 1):
            measure("together", together)
            measure("alone", alone)
        return {
            "warm_up": measured[:2],
            "measured": measured[2:],
            "rows_each": given,
            "peak_rss_mb": meter.peak_rss_mb(),
        }
