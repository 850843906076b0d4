"""The latency from produced to visible, and the cost of idle following, measured outside of the driver."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from statistics import median
from typing import Any

import psutil
from confluent_kafka import Producer

from bench.bodies import pool
from bench.environment import BenchEnvironment, tell
from bench.shapes import SHAPES
from bench.topics import Job, Topic
from frazil.declaration.catalogs import LocalCatalog

SHAPE = "nested_avro"
UNSEEN_AFTER = 60.0
LOOK = 0.005


@dataclass(frozen=True, slots=True)
class Followed:
    """The figures of following: seconds until each record was visible, share of a core while idle, memory."""

    every_seconds: float
    seconds: list[float]
    idle_share: float
    idle_seconds: float
    peak_rss_mb: dict[str, float]

    @property
    def median_seconds(self) -> float:
        """The median time from produced to visible."""
        return median(self.seconds)


def follow(ground: BenchEnvironment, *, every_ms: int, records: int, idle_seconds: float, warm_up: int = 8) -> Followed:
    """Follow an empty topic. Produce records, each after the previous one was visible, then stay idle."""
    label = f"follow_{every_ms or 'usual'}"
    topic = ground.topic(SHAPE, label, 0, partitions=1)
    job = ground.job("follow", label, topic, wants={"every_ms": every_ms})
    head, tails, keys = pool(SHAPES[SHAPE], seed=ground.seed, size=64)
    producer = Producer({"bootstrap.servers": ground.world.bootstrap, "linger.ms": 0, "log_level": 3})
    seconds: list[float] = []
    with ground.process(job) as child:
        look = _rows_of(ground, job, child.poll)
        look.until(0)
        for number in range(warm_up + records):
            time.sleep(0.37 * (number % 3))  # at any point between two looks of the driver
            frame = b"\0" + topic.schema_id.to_bytes(4, "big")
            began = time.monotonic()
            producer.produce(topic.name, frame + head(number) + tails[number % 64], keys[number % 64], 0)
            producer.flush()
            look.until(number + 1)
            if number >= warm_up:
                seconds.append(round(time.monotonic() - began, 3))
        time.sleep(3)
        before, at = _cpu(child.pid), time.monotonic()
        time.sleep(idle_seconds)
        share = (_cpu(child.pid) - before) / (time.monotonic() - at)
        child.communicate("", timeout=60)
    answer = ground.answer(job)
    ground.check(job.table, _filled(topic, warm_up + records))
    ground.drop(job.table)
    ground.drop_topics(topic)
    found = Followed(answer["every_seconds"], seconds, share, idle_seconds, answer["peak_rss_mb"])
    tell(
        f"  followed every {found.every_seconds} s: visible after {found.median_seconds:.2f} s "
        f"({min(seconds):.2f} to {max(seconds):.2f}), idle {share:.1%} of a core"
    )
    return found


def _filled(topic: Topic, rows: int) -> Topic:
    return Topic(name=topic.name, shape=topic.shape, rows=rows, partitions=topic.partitions, schema_id=topic.schema_id)


def _cpu(pid: int) -> float:
    """Return the CPU-seconds so far of a process and its children."""
    root = psutil.Process(pid)
    times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


class _rows_of:  # noqa: N801 # reads as a phrase
    """A reader that waits for a number of rows. It polls the catalog's pointer, and reads metadata only when that changes."""

    def __init__(self, ground: BenchEnvironment, job: Job, ended: Callable[[], int | None]) -> None:
        catalog = ground.world.environment.catalog
        assert isinstance(catalog, LocalCatalog)
        self._path, self._catalog, self._job, self._ended = catalog.path, ground.catalog(), job, ended
        self._pointer: Any = None
        self._rows = -1

    def until(self, rows: int) -> None:
        """Return as soon as a reader would see a number of rows."""
        limit = time.monotonic() + UNSEEN_AFTER
        while self._rows < rows:
            pointer = self._read()
            if pointer is not None and pointer != self._pointer:
                self._pointer = pointer
                head = self._catalog.load_table(self._job.table).current_snapshot()
                if head is not None and head.summary is not None:
                    self._rows = int(head.summary["total-records"] or 0)
                continue
            if self._ended() is not None or time.monotonic() > limit:
                raise RuntimeError(f"{rows} rows are not seen in {self._job.table}; there are {self._rows}")
            time.sleep(LOOK)

    def _read(self) -> Any:
        namespace, _, name = self._job.table.partition(".")
        try:
            with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as held:
                found = held.execute(
                    "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?",
                    (namespace, name),
                ).fetchone()
        except sqlite3.OperationalError:  # the catalog is not made yet, or locked for a moment
            return None
        return found[0] if found else None
