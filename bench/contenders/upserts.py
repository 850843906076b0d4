"""The commit of a batch of random changes, on tables of several sizes and both formats.

By Frazil, with the search of the table and with an index of keys, and by a copy-on-write `MERGE`. The second table also gets a batch as staging and `MERGE` are usually
written, in version 2: it takes most of a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.accounting import Meter
from bench.contenders.keyed_rows import NAMES, PRIME, Changes, Held, create, fill, rows
from bench.contenders.merges import MERGE_SETTINGS, merge_statement, staged_merge
from bench.contenders.product import driver
from bench.topics import Job, NotWhatWasProducedError
from frazil.job.context import JobContext
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.request import CommitRequest, Extra
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts
from frazil.lake.prepared_plan import planned_anew
from frazil.lake.stage import Staged, TableWriter, empty_commit
from frazil.upsert.index_resolver import IndexResolver
from frazil.upsert.key_changes import UpsertBatch
from frazil.upsert.resolver_protocol import IS_DELETE
from frazil.upsert.scan_resolver import ScanResolver
from frazil.upsert.staged_changes import StagedChanges, folded, stage_changes
from tests.support.agreeing_index import Free

PIPELINE = "bench"


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Commit batches to a table of each size in turn; return what each took.

    `wants` has the rounds by the table's rows. The first round of a format on the first table warms up, and is not counted. All ways
    get the same batches, on tables of the same data files. The index is made before the first round.
    """
    batches: list[dict[str, Any]] = []
    with driver(job) as (shared, _):
        for place, (size, wanted) in enumerate(job.wants.items()):
            base = f"{job.table}_base_{size}"
            create(shared.iceberg, base, 2)
            fill(shared.spark, shared.iceberg, base, int(size))
            for version in (2, 3):
                warm_up = 0 if place else 1
                found = _rounds(job, shared, meter, base, version, int(size), wanted + warm_up)
                batches += [one for one in found if one["round"] >= warm_up]
                if (place, version) == (1, 2):
                    batches.append(_staged_batch(job, shared, meter, base, version, int(size)))
    return {"batches": batches, "peak_rss_mb": meter.peak_rss_mb()}


def _rounds(
    job: Job, shared: JobContext, meter: Meter, base: str, version: int, size: int, rounds: int
) -> list[dict[str, Any]]:
    found, changes = [], Changes(size, np.random.default_rng(size))
    names = {way: f"{job.table}_{way}_{size}_v{version}" for way in ("ours", "indexed", "merge")}
    index = IndexResolver(ScanResolver(shared.iceberg, names["indexed"]), shared, lambda event, facts: None, Free())
    ways = {"ours": _ours, "indexed": partial(_ours, index=index), "merge": _merge}
    for way, name in names.items():
        create(shared.iceberg, name, version, copy_on_write=way == "merge")
        give(shared, name, base, rows=size)
    for number in range(rounds):
        file = Path(job.folder) / f"batch-{size}-{version}-{number}.parquet"
        changes.batch(number + 1, file)
        batch = _read(shared, file, number + 1)
        if not number:
            staged, table = _staged(shared, names["indexed"], batch, index), shared.iceberg.load(names["indexed"])
            staged.changes.on(table, int(table.currentSnapshot().snapshotId()))  # makes the index; nothing is committed
        for way, land in ways.items():
            used = measured(meter, folder(shared, names[way]), partial(land, shared, names[way], batch, number))
            found.append({"way": way, "round": number, "version": version, "rows": size, **used})
    for name in names.values():
        check(shared, name, changes)
    return found


def _staged_batch(job: Job, shared: JobContext, meter: Meter, base: str, version: int, size: int) -> dict[str, Any]:
    """Put the first batch of the other ways into a table by staging and `MERGE`. Return what that took."""
    name, file = f"{job.table}_staged_{size}_v{version}", Path(job.folder) / f"staged-{size}-{version}.parquet"
    create(shared.iceberg, name, version, copy_on_write=True)
    give(shared, name, base, rows=size)
    changes = Changes(size, np.random.default_rng(size))
    changes.batch(1, file)
    batch = _read(shared, file, 1)
    merge = partial(staged_merge, shared.spark, f"{shared.iceberg.name}.{name}", batch, batch.count(), NAMES)
    used = measured(meter, folder(shared, name), merge)
    check(shared, name, changes)
    return {"way": "staged", "round": 0, "version": version, "rows": size, **used}


def _read(shared: JobContext, file: Path, number: int) -> DataFrame:
    """Return the rows of a batch, and `IS_DELETE`."""
    return rows(shared.spark.read.schema(f"id bigint, {IS_DELETE} boolean").parquet(str(file)), number)


def folder(shared: JobContext, name: str) -> Path:
    """Return where a table's data files are."""
    return Path(urlparse(str(shared.iceberg.load(name).location())).path) / "data"


def measured(meter: Meter, folder: Path, done: Callable[[], object]) -> dict[str, Any]:
    """Return what a commit takes: time, and the bytes of new files in a folder."""
    there = set(folder.rglob("*.*")) if folder.exists() else set()
    before = meter.read()
    done()
    used = meter.read().since(before)
    written = sum(file.stat().st_size for file in folder.rglob("*.*") if file not in there and file.name[0] != ".")
    return {**asdict(used), "bytes": written}


def _offsets(at: int) -> Offsets:
    return Offsets("bench", "T1", {0: at})


def request(start: int, end: int, *, first: bool = False) -> CommitRequest:
    """Return the request of a batch of offsets."""
    return CommitRequest(
        pipeline=PIPELINE,
        run="bench",
        version="1",
        start=_offsets(start),
        end=_offsets(end),
        committed=None if first else _offsets(start),
        topic_id="T1",
        counts=Counts(read=end - start, written=end - start),
    )


def give(shared: JobContext, name: str, base: str, *, rows: int) -> None:
    """Give a table the data files of another one, a ledger, and an account of so many rows."""
    table = shared.iceberg.load(base)
    files = tuple(table.currentSnapshot().addedDataFiles(table.io()))
    empty = empty_commit(shared.iceberg, name, at=shared.clock())
    commit(shared, empty, request(0, 0, first=True))
    staged = Staged(name, empty.table_uuid, empty.field_ids, files, 0, 0, empty.at)
    commit(shared, staged, request(0, 1), Extra(summary={ledger.KEYS: str(KeyAccount(rows=rows))}))


def _staged(shared: JobContext, name: str, batch: DataFrame, index: IndexResolver | None) -> StagedChanges:
    writer = TableWriter(shared.iceberg, name, shared.new_id, PIPELINE)
    facts = UpsertBatch(at=shared.clock())
    run = planned_anew(batch, lambda rows, observed: folded(rows, ["id"], facts, observed))
    return stage_changes(writer, run, ["id"], facts, index)


def _ours(shared: JobContext, name: str, batch: DataFrame, number: int, index: IndexResolver | None = None) -> None:
    staged = _staged(shared, name, batch, index)
    commit(shared, staged.files, request(number + 1, number + 2), changes=staged.changes)


def _merge(shared: JobContext, name: str, batch: DataFrame, number: int) -> None:
    spark = shared.spark
    before = {key: spark.conf.get(key, None) for key in MERGE_SETTINGS}
    batch.createOrReplaceTempView("batch")
    try:
        for key, value in MERGE_SETTINGS.items():
            spark.conf.set(key, value)
        spark.sql(merge_statement(f"{shared.iceberg.name}.{name}", "batch", NAMES, key="id", is_delete=IS_DELETE))
    finally:
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def check(shared: JobContext, name: str, held: Held) -> None:
    """Raise if a table holds other ids than its batches leave, one of them twice, or another version of one."""
    square = F.col("id") * F.col("id") % PRIME
    table = shared.spark.table(f"{shared.iceberg.name}.{name}")
    found = table.agg(F.count("id"), F.sum("id"), F.sum(square), F.sum("version"))
    if (got := tuple(found.collect()[0])) != held.expected:
        raise NotWhatWasProducedError(f"{name}: rows, sums of ids, squares, versions are {got}, not {held.expected}")
