"""Frazil with small batches: of one pipeline, batch by batch, and of eight keyed topics that are followed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any

from bench.accounting import Meter, Usage, without_broker
from bench.contenders.product import driver, ingestion
from bench.topics import Job
from frazil.clients.registry.client import Registry
from frazil.declaration import Append, Debezium, ErrorMode, Json, Pipeline, Table, Text, Upsert
from frazil.declaration import Topic as DeclaredTopic
from frazil.ingest import runner
from frazil.job.context import JobContext
from frazil.local.produce.produce import TopicWriter

PLAIN = ("id long", "name string", "amount double", "city string", "ok boolean")
NESTED = (*PLAIN, "tags list<string>", "sizes map<string, long>", "place struct<city: string, zip: long>")
CHANGES = "changes"
KINDS: Mapping[str, tuple[Append | Upsert, tuple[str, ...], float]] = {
    "append": (Append(), PLAIN, 0.0),
    "append_rejected": (Append(), NESTED, 0.02),
    "upsert": (Upsert(), PLAIN, 0.0),
    "upsert_rejected": (Upsert(), NESTED, 0.02),
    CHANGES: (Upsert(), PLAIN, 0.0),
}
"""The write mode, the columns, and the share of records that are no JSON, of the pipelines in `bench.small.TITLES`, in their order."""
Commit = tuple[float, str]
"""When a commit was made, in seconds since 1970, and of which table or pipeline."""
KEYS, PARTITIONS = 4_000, 3
TRICKLES, A_SECOND, TRICKLE_KEYS = 8, 5, 400


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Land batches of `rows` records of the job's kind, and return the CPU-seconds and seconds of each; or follow `seconds`."""
    wants, stopping = dict(job.wants), threading.Event()
    with driver(job, stopping=stopping) as (shared, registry):
        if wants.get("seconds"):
            return _followed(job, meter, shared, registry, stopping)
        kind, dice = list(KINDS)[wants["kind"]], Random(7)
        pipeline, writer = _pipeline(job, kind, job.table), TopicWriter(job.environment.kafka.bootstrap, job.table)
        writer.create(PARTITIONS)
        landed = ingestion(shared, registry, pipeline)
        batches: list[Usage] = []
        for number in range(wants["batches"]):
            writer.send(_records(kind, dice, number * wants["rows"], wants["rows"], KEYS))
            before = meter.read()
            landed.poll()
            batches.append(meter.read().since(before))
        total = landed.total
        assert total.read == wants["batches"] * wants["rows"], total
    return {"kind": kind, "cpu": [without_broker(batch.cpu) for batch in batches], "wall": [b.wall for b in batches]}


def _pipeline(job: Job, kind: str, table: str) -> Pipeline:
    write, columns, _ = KINDS[kind]
    key = Json(columns=PLAIN[:1]) if kind == CHANGES else Text()
    return Pipeline(
        topic=DeclaredTopic(table, value=Json(columns=columns), key=key),
        table=Table(table if "." in table else f"bench.{table}"),
        write=write,
        envelope=Debezium() if kind == CHANGES else None,
        on_error=ErrorMode.DEAD_LETTER,
    )


def _records(kind: str, dice: Random, first: int, count: int, keys: int) -> Iterator[tuple[bytes, bytes]]:
    _, columns, bad = KINDS[kind]
    for number in range(first, first + count):
        value = {"id": number, "name": f"n{number % 97}", "amount": number / 4, "city": "c" * (number % 9), "ok": True}
        if columns is NESTED:
            value |= {"tags": ["a", "b"], "sizes": {"m": number}, "place": {"city": "q", "zip": number}}
        if kind == CHANGES:
            value["id"], op = dice.randrange(keys), "ucd"[number % 3]
            event = {"op": op, "before": None, "after": value, "source": {"ts_ms": number}}
            event |= {"before": value, "after": None} if op == "d" else {}
            yield b'{"id": %d}' % value["id"], json.dumps(event).encode()
            continue
        is_bad = dice.random() < bad
        yield b"k%d" % dice.randrange(keys), b"{broken" if is_bad else json.dumps(value).encode()


def _followed(
    job: Job, meter: Meter, shared: JobContext, registry: Registry, stopping: threading.Event
) -> dict[str, Any]:
    """Follow eight keyed topics with a few records a second each; count the commits and CPU-seconds of some time."""
    names = trickle_names(job)
    pipelines = [_pipeline(job, "upsert", name) for name in names]
    commits = list[Commit]()

    def noted(event: Mapping[str, Any]) -> None:
        if event["event"] == "batch_committed":
            commits.append((time.time(), str(event["pipeline"])))

    with trickling(job, meter, stopping) as watched, ThreadPoolExecutor(1) as threads:
        following = threads.submit(runner.follow, pipelines, shared, registry, noted, probe=False)
        found = watched(lambda: commits)
    if errors := [outcome.error for outcome in following.result().values() if outcome.error]:
        raise errors[0]
    return found


def trickle_names(job: Job) -> list[str]:
    """Return the names of the topics that trickle, which are those of their tables."""
    return [f"{job.table}_{number}" for number in range(TRICKLES)]


@contextmanager
def trickling(
    job: Job, meter: Meter, stopping: threading.Event
) -> Iterator[Callable[[Callable[[], Iterable[Commit]]], dict[str, Any]]]:
    """Create the topics and send a few records a second to each, until it is to stop.

    Yield a function that waits for `warm_seconds` and then measures for `seconds`; `listed` gives all commits.
    """
    writers = [TopicWriter(job.environment.kafka.bootstrap, name) for name in trickle_names(job)]
    for writer in writers:
        writer.create(PARTITIONS)

    def produce() -> None:
        dice, number = Random(7), 0
        while not stopping.wait(1.0):
            for writer in writers:
                writer.send(_records("upsert", dice, number, A_SECOND, TRICKLE_KEYS))
            number += A_SECOND

    began = time.time()

    def watched(listed: Callable[[], Iterable[Commit]]) -> dict[str, Any]:
        try:
            stopping.wait(job.wants["warm_seconds"])
            before, at = meter.read(), time.time()
            stopping.wait(job.wants["seconds"])
            used, until = meter.read().since(before), time.time()
            commits = list(listed())
        finally:
            stopping.set()
        counted = [name for when, name in commits if at <= when < until]
        first = {name: min(when for when, of in commits if of == name) - began for name in {of for _, of in commits}}
        cpu, seconds = without_broker(used.cpu), until - at
        return {
            "cpu_a_minute": cpu / seconds * 60,
            "commits": len(counted),
            "cpu_a_commit": cpu / max(len(counted), 1),
            "seconds_between": len(writers) * seconds / max(len(counted), 1),
            "first_commits": sorted(first.values()),
        }

    with ThreadPoolExecutor(1) as threads:
        producing = threads.submit(produce)
        try:
            yield watched
        finally:
            stopping.set()
        producing.result()
