"""Flink SQL that follows eight keyed topics with a few records a second, each into an upsert table.

It is one job of eight statements, or a job for each, all in one JVM. Jobs for each can be changed and fail one by one, as pipelines.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from pyiceberg.catalog import Catalog

from bench.accounting import Meter
from bench.contenders.small import PLAIN, Commit, trickle_names, trickling
from bench.peers import lake
from bench.peers.columns import COORDINATES, FLINK_TYPES
from bench.peers.flink import tables
from bench.peers.flink_state import CHECKPOINT_SECONDS, PROPERTIES, asked, source
from bench.peers.state_topics import KEY
from bench.topics import Job
from frazil.schemas.declared_columns import declared_type
from frazil.schemas.metadata import metadata_fields
from frazil.schemas.types import Field, Kind, Primitive, Struct

ROW = declared_type(PLAIN)


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Follow, and return the commits and CPU-seconds of some time; see `trickling`."""
    catalog, names, stopping = lake.catalog_of(job), trickle_names(job), threading.Event()
    coordinates = (
        field for field in metadata_fields(struct=False) if field.name in {f"_kafka_{n}" for n in COORDINATES}
    )
    table_row = Struct((*ROW.fields, *coordinates, Field(KEY, Primitive(Kind.STRING))))
    with tables(job, checkpoint_seconds=CHECKPOINT_SECONDS) as flink, trickling(job, meter, stopping) as watched:
        if is_one_job := job.wants["jobs"] == 1:
            flink.getConfig().set("parallelism.default", "1")  # more subtasks have nothing to read, and cost
        statements, running = flink.createStatementSet(), []
        columns = [
            f"`{field.name}` {FLINK_TYPES[field.type.kind]}"
            for field in ROW.fields
            if isinstance(field.type, Primitive)
        ]
        for name in names:
            lake.create(catalog, name, table_row, key=[KEY], more=PROPERTIES)
            asked(lambda topic=name: flink.executeSql(source(job, topic, columns, {"format": "json"})))
            picked = ", ".join(f"`{field.name}`" for field in table_row.fields)
            statement = f"INSERT INTO lake.{name} SELECT {picked} FROM `{name}`"
            if is_one_job:
                statements.addInsertSql(statement)
            else:
                running.append(asked(lambda statement=statement: flink.executeSql(statement)))
        running += [asked(statements.execute)] if is_one_job else []
        found = watched(lambda: _commits(catalog, names))
        for one in running:
            one.getJobClient().get().cancel().get()
    return found


def _commits(catalog: Catalog, names: list[str]) -> Iterator[Commit]:
    for name in names:
        for snapshot in catalog.load_table(name).metadata.snapshots:
            yield snapshot.timestamp_ms / 1000, name
