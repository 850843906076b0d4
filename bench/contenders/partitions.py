"""Frazil with many partitions: batches of one record per partition, and a large topic compared with few partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from bench.accounting import Meter
from bench.contenders.product import declared, driver, ingestion, landing
from bench.fill import PARTITIONS, fill
from bench.topics import Job, Topic
from frazil.ingest.loop import Ingestion

SEED = 7
WARM_UP = 1


def few_of(many: Topic) -> Topic:
    """Return the topic with the same records in few partitions."""
    return replace(many, name=f"{many.name}_few", partitions=PARTITIONS)


def small_of(many: Topic) -> Topic:
    """Return the topic with as many partitions and one record per partition and batch."""
    return replace(many, name=f"{many.name}_small", rows=many.partitions)


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Land small batches one after another, the first in a cold session; or the large topics in turns, in a warm one."""
    many, few, small = job.timed, few_of(job.timed), small_of(job.timed)
    with driver(job) as (shared, registry):

        def ready(topic: Topic, table: str) -> Ingestion:
            made = ingestion(shared, registry, declared(job, topic, table))
            assert made._ready(), "the topic has no schema"
            return made

        def measured(land: Callable[[], object], **facts: Any) -> dict[str, Any]:
            before = meter.read()
            land()
            return {**facts, **asdict(meter.read().since(before))}

        batches, landings = [], []
        slow = ready(small, f"{job.table}_small") if job.wants["batches"] else None
        for number in range(job.wants["batches"]):
            assert slow is not None
            fill(job.environment.kafka.bootstrap, [small], seed=SEED, first=number * small.rows)
            used = measured(slow.poll)
            assert slow.total.written == (number + 1) * small.rows, slow.total
            snapshot = shared.iceberg.load(f"{job.table}_small").currentSnapshot().summary()
            batches.append({**used, "files": int(snapshot.get("added-data-files"))})
        for number in range(job.wants["rounds"] + WARM_UP if job.wants["rounds"] else 0):
            for topic in (few, many):
                large = ready(topic, f"{job.table}_{topic.partitions}_{number}")
                used = measured(landing(large), partitions=topic.partitions)
                assert large.total.written == topic.rows, large.total
                landings.append(used)
        return {
            "batches": batches,
            "warm_up": landings[: 2 * WARM_UP],
            "landings": landings[2 * WARM_UP :],
            "peak_rss_mb": meter.peak_rss_mb(),
        }
