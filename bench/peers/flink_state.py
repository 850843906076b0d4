"""Flink SQL with an upsert table: `upsert-kafka` into a table whose upserts are equality deletes, in one job that goes on.

A job of its own for the batch would not know the deleted rows: Flink keeps the last row of each key in its state, to write the delete
of one. So the batch is produced while the job runs, and is measured until the checkpoint that commits it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyiceberg.catalog import Catalog

from bench.peers import lake
from bench.peers.columns import COORDINATES, selected, source_columns, table_row
from bench.peers.flink import PLACES, avro_format, consumer, options, tables, without_instants
from bench.peers.state_topics import KEY, changes, fill_batch
from bench.shapes import Shape
from bench.topics import Job, Topic, Way
from frazil.schemas.types import Field, Kind, Primitive, Struct

CHECKPOINT_SECONDS = 5
LONGEST_SECONDS = 180
PROPERTIES = {"write.upsert.enabled": "true"}


@contextmanager
def flink_state(job: Job) -> Iterator[Mapping[str, Way]]:
    """Start a job that follows the topic, let it land the load and then the batch, and cancel it."""
    catalog, jobs = lake.catalog_of(job), dict[str, Any]()
    with tables(job, checkpoint_seconds=CHECKPOINT_SECONDS) as environment:

        def load(topic: Topic, table: str) -> Callable[[], int]:
            lake.create(catalog, table, state_row(job.shape), key=[KEY], more=PROPERTIES)
            columns = source_columns(job.shape, has_deletes=True)
            asked(lambda: environment.executeSql(source(job, topic.name, columns, _format(job))))

            def land() -> int:
                jobs[table] = asked(lambda: environment.executeSql(insert(job.shape, topic, table)))
                return _await(jobs[table], catalog, table, changes(topic).load)

            return land

        def batch(topic: Topic, table: str) -> Callable[[], int]:
            wanted = changes(topic)

            def land() -> int:
                fill_batch(job.environment.kafka.bootstrap, topic, seed=job.wants["seed"])
                return _await(jobs[table], catalog, table, wanted.load + wanted.batch) - wanted.load

            return land

        def end(topic: Topic, table: str) -> Callable[[], None]:
            return lambda: jobs.pop(table).getJobClient().get().cancel().get()

        yield {"load": load, "batch": batch, "end": end}


def state_row(shape: Shape) -> Struct:
    """Return the row of a peer's upsert table: the value's columns, four of the record's place, and its key."""
    return Struct((*table_row(shape, coordinates=True).fields, Field(KEY, Primitive(Kind.STRING))))


def source(job: Job, topic: str, columns: Sequence[str], value: Mapping[str, str]) -> str:
    """Return the statement that declares a topic as the changes of a table. `value` has the options of the values' format."""
    settings = {
        "connector": "upsert-kafka",
        **consumer(job, topic),
        "key.format": "raw",
        **{f"value.{name}": option for name, option in value.items()},
        "value.fields-include": "EXCEPT_KEY",
    }
    listed = ", ".join([*columns, *PLACES, f"`{KEY}` STRING NOT NULL", f"PRIMARY KEY (`{KEY}`) NOT ENFORCED"])
    return f"CREATE TEMPORARY TABLE IF NOT EXISTS `{topic}` ({listed}) {options(settings)}"


def _format(job: Job) -> dict[str, str]:
    return {
        **avro_format(job),
        "avro-confluent.schema": json.dumps(optional(without_instants(json.loads(job.shape.schema)))),
    }


def insert(shape: Shape, topic: Topic, table: str) -> str:
    """Return the statement that follows the topic into the table."""
    picked = [*selected(shape), *(f"`_kafka_{name}`" for name in COORDINATES), f"`{KEY}`"]
    return f"INSERT INTO lake.{table} SELECT {', '.join(picked)} FROM `{topic.name}`"


def optional(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return an Avro schema of a record whose fields may be null, those of records in it too."""
    return {**record, "fields": [_optional(field) for field in record["fields"]]}


def _optional(field: Mapping[str, Any]) -> dict[str, Any]:
    match field["type"]:
        case list():
            return dict(field)
        case {"type": "record"} as record:
            return {**field, "type": ["null", optional(record)], "default": None}
        case other:
            return {**field, "type": ["null", other], "default": None}


def changed(catalog: Catalog, table: str) -> int:
    """Return the records that the table's commits hold.

    Each is an equality delete, or the delete of a position if its key came since the checkpoint before. It is a row if it has a value.
    """
    return sum(
        int(snapshot.summary[f"added-{kind}-deletes"] or 0)
        for snapshot in catalog.load_table(table).metadata.snapshots
        for kind in ("equality", "position")
        if snapshot.summary is not None
    )


def asked(question: Callable[[], Any]) -> Any:
    """Return the answer of Flink. Raises `RuntimeError` with its text if it fails: the JVM, which has the text, ends."""
    try:
        return question()
    except Py4JJavaError as failed:
        raise RuntimeError(str(failed)) from None


def _await(running: Any, catalog: Catalog, table: str, wanted: int) -> int:
    return lake.await_count(
        table,
        lambda: changed(catalog, table),
        wanted,
        check=lambda: _check(running),
        longest_seconds=LONGEST_SECONDS,
    )


def _check(running: Any) -> None:
    """Raise if the job ended."""
    client = running.getJobClient().get()
    if not client.getJobStatus().get().isGloballyTerminalState():
        return
    asked(lambda: client.getJobExecutionResult().get())
    raise RuntimeError("Flink's job ended before its topic")
