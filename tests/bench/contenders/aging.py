"""A table of current state after many small batches: what readers and the next batch pay, beside a freshly written table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog

from frazil.clients.secrets import Secrets
from frazil.declaration import Upsert
from frazil.decode.writer_schemas import WriterSchemas
from frazil.ingest import ingestion as product
from frazil.ingest.events import Reporter
from frazil.ingest.ingestion import Ingestion
from frazil.lake.catalogs import pyiceberg_properties
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import entries
from frazil.local.duckdb_query import ask
from tests.bench.accounting import Meter
from tests.bench.contenders.product import declared, driver
from tests.bench.fill import fill, last_records
from tests.bench.topics import Job, Topic

SEED = 7
LOOKS = 3
EVERY = 50
"""Commits between two looks at what the table consists of."""
_SUMS = "SELECT count(*), sum(id) FROM lake_table"


class NotTheStateError(Exception):
    """A reader does not find the state that the topic's records leave."""


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Land the topic's keys at once, then `wants["commits"]` batches of changes; return the cost of each and of reading in the end.

    The topic holds each key once. `wants["version"]` is the table's format version.
    """
    commits: list[float] = []
    looks: list[Mapping[str, int]] = []
    events: list[Mapping[str, Any]] = []
    decide, keys, count = product.decide_and_finish, job.timed.keys, job.wants["commits"]

    def timed(*arguments: Any, **named: Any) -> Any:
        began = time.monotonic()
        try:
            return decide(*arguments, **named)
        finally:
            commits.append(time.monotonic() - began)
            if len(commits) % EVERY == 0:
                looks.append(_look(shared.iceberg, job.table, len(commits)))

    changes = replace(job.timed, rows=count * job.batch_rows)
    product.decide_and_finish = timed
    with driver(job) as (shared, registry):
        for rows in (keys, job.batch_rows):
            if rows != keys:
                fill(job.environment.kafka.bootstrap, [changes], seed=SEED, first=keys)
            pipeline = declared(replace(job, batch_rows=rows), job.timed, job.table, write=Upsert())
            pipeline = replace(pipeline, table=replace(pipeline.table, format_version=job.wants["version"]))
            report = Reporter(events.append, pipeline.name, job.timed.name, shared.run, shared.clock)
            Ingestion(pipeline, shared, WriterSchemas(pipeline.topic, registry), report).drain()
        looks.append(_look(shared.iceberg, job.table, len(commits)))
        name = shared.iceberg.name
        shared.spark.sql(
            f"CREATE TABLE {name}.{job.table}_fresh USING iceberg TBLPROPERTIES ('write.parquet.compression-codec'='zstd', "
            f"'format-version'='{job.wants['version']}') AS SELECT /*+ COALESCE(1) */ * FROM {name}.{job.table}"
        )
        catalog = load_catalog("lake", **pyiceberg_properties(job.environment, Secrets({}).read))
        wanted = state_of(job.timed, keys + changes.rows)
        aged, fresh = (_read(catalog, table, wanted) for table in (job.table, f"{job.table}_fresh"))
    compacted = [event for event in events if event["event"] == "files_compacted"]
    return {
        "version": job.wants["version"],
        "commits": commits[1:],
        "looks": looks,
        "compacted": [{"seconds": event["seconds"], "ended": event["ended"]} for event in compacted],
        "aged": aged,
        "fresh": fresh,
        "peak_rss_mb": meter.peak_rss_mb(),
    }


def _look(iceberg: Iceberg, name: str, commits: int) -> Mapping[str, int]:
    table = iceberg.load(name)
    snapshot = table.currentSnapshot()
    counted = entries(snapshot.summary())
    totals = {
        what: int(counted[f"total-{what}"]) for what in ("data-files", "delete-files", "position-deletes", "records")
    }
    manifests = int(snapshot.allManifests(table.io()).size())
    return {
        "commits": commits,
        **totals,
        "manifests": manifests,
        "snapshots": len(iceberg.metadata(table)["snapshots"]),
    }


def state_of(topic: Topic, records: int) -> tuple[int, int]:
    """Return the number of keys that the records leave, and the sum of their rows' ids."""
    left = last_records(topic, records)
    return len(left), sum(left.values())


def _read(catalog: Catalog, name: str, wanted: tuple[int, int]) -> Mapping[str, float]:
    """Return the least seconds of planning and of reading; in a table that changes no more, the rest is noise."""
    import pyarrow.compute as pc

    table = catalog.load_table(name)

    def by_pyiceberg() -> tuple[int, int]:
        rows = table.scan().to_arrow()
        return rows.num_rows, int(pc.sum(rows["id"]).as_py())

    def by_duckdb() -> tuple[int, int]:
        count, total = ask(table.metadata_location, _SUMS)[1][0]
        return int(count), int(total)

    def plan() -> None:
        list(table.scan().plan_files())

    readers = {"pyiceberg": by_pyiceberg, "duckdb": by_duckdb}
    return {"planning": _least(plan, None), **{name: _least(read, wanted) for name, read in readers.items()}}


def _least(read: Callable[[], object], wanted: object) -> float:
    seconds = []
    for _ in range(LOOKS):
        began = time.monotonic()
        found = read()
        seconds.append(time.monotonic() - began)
        if found != wanted:
            raise NotTheStateError(f"{found}, not {wanted}")
    return min(seconds)
