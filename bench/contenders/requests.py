"""Frazil on an object store, seen by a proxy: the requests of each commit, and the wait for slow ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench.accounting import Meter
from bench.bodies import pool
from bench.contenders.product import declared, drained, driver, ingestion
from bench.counting_proxy import CountingProxy
from bench.fill import produce
from bench.shapes import SHAPES
from bench.topics import Job
from frazil.declaration import Append, Pipeline, Upsert
from frazil.declaration.catalogs import GlueCatalog
from frazil.declaration.documents.document import environment_document
from frazil.declaration.documents.to_json import canonical
from frazil.declaration.environment import Environment

SEED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A pipeline whose commits are counted: its shape, its write mode, the partition fields of its table."""

    name: str
    says: str
    shape: str
    write: Append | Upsert
    partition_by: tuple[str, ...] = ()
    keys: int = 0
    """Keys of the topic; the first batch has each once."""


CASES = (
    Case(name="append", says="append, one data file", shape="nested_avro", write=Append()),
    Case(
        name="partitioned",
        says="append, 8 partitions of the table",
        shape="nested_avro",
        write=Append(),
        partition_by=("bucket(8, id)",),
    ),
    Case(name="upsert", says="upsert, 1,000 of 20,000 keys", shape="keyed_avro", write=Upsert(), keys=20_000),
)


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Land batches of the timed topic's size, one a poll. Return the requests of each commit.

    `wants` has the number of the case, of commits, of commits with a delay, and the milliseconds by which the proxy then delays each
    request. The first batch creates the tables.
    """
    case, environment = CASES[job.wants["case"]], job.environment
    producer = Producer({"bootstrap.servers": environment.kafka.bootstrap, "linger.ms": 0, "log_level": 3})
    made = pool(SHAPES[case.shape], seed=SEED, size=1000)
    sent = 0

    def send(rows: int) -> None:
        nonlocal sent
        produce(producer, replace(job.timed, rows=rows), 0, sent, made)
        producer.flush()
        sent += rows

    assert environment.object_store is not None
    assert environment.object_store.endpoint is not None
    with CountingProxy(environment.object_store.endpoint) as proxy:
        job = replace(job, environment_file=_through(environment, proxy, Path(job.folder)))
        with driver(job) as (shared, registry):
            pipeline = _pipeline(job, case)
            send(case.keys or job.timed.rows)
            drained([pipeline], shared, registry)
            batches = ingestion(shared, registry, pipeline)

            def poll() -> None:
                if not batches.poll():
                    raise RuntimeError("the batch was not landed")

            def commits(count: int) -> list[dict[str, Any]]:
                found = []
                for _ in range(count):
                    send(job.timed.rows)
                    found.append(_counted(proxy, poll))
                return found

            usual = commits(job.wants["commits"])
            proxy.delay_seconds = job.wants["delay_ms"] / 1000
            delayed = commits(job.wants["delayed"])
            return {
                "case": case.name,
                "commits": usual,
                "delayed": delayed,
                "delay_seconds": proxy.delay_seconds,
                "sent": sent,
                "peak_rss_mb": meter.peak_rss_mb(),
            }


def _counted(proxy: CountingProxy, act: Callable[[], object]) -> dict[str, Any]:
    """Return the wall seconds of an act, and its requests by names."""
    before, began = proxy.counted(), time.monotonic()
    act()
    seconds, after = time.monotonic() - began, proxy.counted()
    counts = {f"{kind} {of}": count for (kind, of), count in sorted((after - before).items())}
    return {"wall": round(seconds, 4), "requests": counts}


def _through(environment: Environment, proxy: CountingProxy, folder: Path) -> str:
    """Write the environment with the proxy's address for the store and for Glue. Return the file."""
    assert environment.object_store is not None
    assert isinstance(environment.catalog, GlueCatalog)
    store = replace(environment.object_store, endpoint=proxy.address)
    changed = replace(environment, object_store=store, catalog=replace(environment.catalog, endpoint=proxy.address))
    file = folder / "environment.json"
    file.write_bytes(canonical(environment_document(changed)))
    return os.fspath(file)


def _pipeline(job: Job, case: Case) -> Pipeline:
    pipeline = declared(job, job.timed, job.table, write=case.write)
    return replace(pipeline, table=replace(pipeline.table, partition_by=case.partition_by))
