"""Frazil with an upsert table: the batches of `frazil run`, first of the load and then of the changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from bench.contenders.product import declared, driver, ingestion, landing
from bench.topics import Job, Topic, Way
from frazil.declaration import Upsert
from frazil.ingest.loop import Ingestion


@contextmanager
def frazil_state(job: Job) -> Iterator[Mapping[str, Way]]:
    """Land what the topic has, twice."""
    runs: dict[str, tuple[Ingestion, Callable[[], int]]] = {}
    with driver(job) as (shared, registry):

        def load(topic: Topic, table: str) -> Callable[[], int]:
            made = ingestion(shared, registry, declared(job, topic, table, write=Upsert()))
            runs[table] = made, landing(made)
            return batch(topic, table)

        def batch(topic: Topic, table: str) -> Callable[[], int]:
            made, land = runs[table]
            before = made.total.read

            def counted() -> int:
                land()
                return made.total.read - before

            return counted

        def end(topic: Topic, table: str) -> Callable[[], None]:
            del runs[table]
            return lambda: None

        yield {"load": load, "batch": batch, "end": end}
