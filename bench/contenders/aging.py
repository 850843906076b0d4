"""An upsert table after many small batches: what readers and the next batch pay, beside a freshly written table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyiceberg.catalog import Catalog, load_catalog

from bench.accounting import Meter
from bench.contenders.product import declared, driver, ingestion, timed_commits
from bench.fill import fill, last_records
from bench.topics import Job, NotWhatWasProducedError, Topic
from frazil.clients.secrets import Secrets
from frazil.declaration import Upsert
from frazil.lake.catalogs import pyiceberg_properties
from tests.support.duckdb_reader import ask

SEED = 7
READS = 5
EVERY = 50
"""Commits between two reads of `meanwhile`."""
PLANNING = "planning"
_SUMS = "SELECT count(*), sum(id) FROM lake_table"


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Land the topic's keys at once, then `wants["commits"]` batches of changes; return the cost of each and of reading in the end.

    The topic holds each key once. `wants["version"]` is the table's format version. `meanwhile` are single reads every `EVERY`
    commits, by a busy machine: of the table as a follower leaves it between two compactions.
    """
    meanwhile: list[Mapping[str, float]] = []
    keys, count = job.timed.keys, job.wants["commits"]

    def look(commits: list[float]) -> None:
        if len(commits) % EVERY == 0:
            meanwhile.append({what: _seconds(read) for what, read in _readers(catalog, job.table).items()})

    catalog = load_catalog("lake", **pyiceberg_properties(job.environment, Secrets({}).read))
    changes = replace(job.timed, rows=count * job.batch_rows)
    commits = timed_commits(look)
    with driver(job) as (shared, registry):
        for rows in (keys, job.batch_rows):
            if rows != keys:
                fill(job.environment.kafka.bootstrap, [changes], seed=SEED, first=keys)
            pipeline = declared(replace(job, batch_rows=rows), job.timed, job.table, write=Upsert())
            pipeline = replace(pipeline, table=replace(pipeline.table, format_version=job.wants["version"]))
            ingestion(shared, registry, pipeline).drain()
        name = shared.iceberg.name
        shared.spark.sql(
            f"CREATE TABLE {name}.{job.table}_fresh USING iceberg TBLPROPERTIES ('write.parquet.compression-codec'='zstd', "
            f"'format-version'='{job.wants['version']}') AS SELECT /*+ COALESCE(1) */ * FROM {name}.{job.table}"
        )
        wanted = state_of(job.timed, keys + changes.rows)
        aged, fresh = _read(catalog, (job.table, f"{job.table}_fresh"), wanted)
    return {
        "version": job.wants["version"],
        "commits": commits[1:],
        "meanwhile": meanwhile,
        "aged": aged,
        "fresh": fresh,
        "peak_rss_mb": meter.peak_rss_mb(),
    }


def state_of(topic: Topic, records: int) -> tuple[int, int]:
    """Return the number of keys that the records leave, and the sum of their rows' ids."""
    left = last_records(topic, records)
    return len(left), sum(left.values())


def _read(catalog: Catalog, names: Sequence[str], wanted: tuple[int, int]) -> list[dict[str, float]]:
    """Return of each table the least seconds of planning and of each reader, after one read that does not count.

    The tables change no more, so the rest is noise. They take turns.
    """
    readers = [_readers(catalog, name) for name in names]
    found: list[dict[str, float]] = [{} for _ in names]
    for number in range(READS + 1):
        for table, least in zip(readers, found, strict=True):
            for what, read in table.items():
                took = _seconds(read, None if what == PLANNING else wanted)
                if number:
                    least[what] = min(took, least.get(what, took))
    return found


def _readers(catalog: Catalog, name: str) -> Mapping[str, Callable[[], object]]:
    """Return what plans a scan of the table as it is now, and what reads all of it: rows and the sum of their ids."""
    import pyarrow.compute as pc

    table = catalog.load_table(name)

    def by_pyiceberg() -> tuple[int, int]:
        rows = table.scan().to_arrow()
        return rows.num_rows, int(pc.sum(rows["id"]).as_py())

    def by_duckdb() -> tuple[int, int]:
        count, total = ask(table.metadata_location, _SUMS)[1][0]
        return int(count), int(total)

    return {PLANNING: lambda: list(table.scan().plan_files()), "pyiceberg": by_pyiceberg, "duckdb": by_duckdb}


def _seconds(read: Callable[[], object], wanted: object = None) -> float:
    """Return the seconds of a read. Raises `NotWhatWasProducedError` if it finds something else than `wanted`, if that is given."""
    began = time.monotonic()
    found = read()
    took = time.monotonic() - began
    if wanted is not None and found != wanted:
        raise NotWhatWasProducedError(f"{found}, not {wanted}")
    return took
