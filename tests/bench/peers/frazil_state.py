"""Frazil with a table of current state: the batches of `frazil run`, first of the load and then of the changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from frazil.declaration import Upsert
from frazil.decode.writer_schemas import WriterSchemas
from frazil.ingest.ingestion import Ingestion
from tests.bench.contenders.product import declared, driver, landing, reporter
from tests.bench.peers.state_topics import loaded
from tests.bench.topics import Job, Topic, Way


@contextmanager
def frazil_state(job: Job) -> Iterator[Mapping[str, Way]]:
    """Land what the topic has, twice."""
    landings: dict[str, Callable[[], int]] = {}
    with driver(job) as (shared, registry):

        def load(topic: Topic, table: str) -> Callable[[], int]:
            pipeline = declared(job, topic, table, write=Upsert())
            writers = WriterSchemas(pipeline.topic, registry)
            landings[table] = landing(Ingestion(pipeline, shared, writers, reporter(shared, pipeline)))
            return landings[table]

        def batch(topic: Topic, table: str) -> Callable[[], int]:
            return lambda: landings[table]() - loaded(topic)

        def end(topic: Topic, table: str) -> Callable[[], None]:
            del landings[table]
            return lambda: None

        yield {"load": load, "batch": batch, "end": end}
