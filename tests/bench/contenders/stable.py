"""Batches that name 2 of a table's 60 days, whose keys keep their day: declared or not, and with deletes that have the key alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.declaration.partitioning import partition_field
from frazil.job.context import JobContext
from frazil.lake import layout, tables
from frazil.lake.commit.append import publish
from frazil.lake.deletes.folding import Rules
from frazil.lake.deletes.positions import IS_DELETE
from frazil.lake.deletes.staged_changes import stage_changes
from frazil.schemas.types import Field, Kind, Primitive, Struct
from tests.bench.accounting import Meter
from tests.bench.contenders.keyed_rows import ROW, Held, rows
from tests.bench.contenders.product import driver
from tests.bench.contenders.upserts import PIPELINE, check, folder, give, measured, request
from tests.bench.topics import Job

DAYS, OF_A_BATCH = 60, 2
KEYS = 25_000
_DAY = Field("day", Primitive(Kind.DATE))
_SPREAD, _RANGE = 2654435761, 2**32  # days of neighbouring ids have nothing to do with each other
_BY = partition_field("days(day)")
WAYS = {"updates": Rules(stable=(_BY,)), "deletes": Rules(stable=(_BY,)), "undeclared": Rules()}
"""Rules of each way. Batches of `deletes` delete a tenth of their keys, of any day; those of the others delete none."""


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Commit batches to a table of each size in turn; return what each took. `wants` has the rounds by the table's rows.

    The first round of each table is not counted: it searches everywhere, as each batch does before the declaration is relied on.
    """
    found: list[dict[str, Any]] = []
    with driver(job) as (shared, _):
        for size, rounds in job.wants.items():
            found += _rounds(job, shared, meter, int(size), rounds)
    return {"batches": found, "peak_rss_mb": meter.peak_rss_mb()}


def _rounds(job: Job, shared: JobContext, meter: Meter, size: int, rounds: int) -> list[dict[str, Any]]:
    base, random = f"{job.table}_base_{size}", np.random.default_rng(size)
    _create(shared, base, job.format_version)
    ids = _with_day(rows(shared.spark.range(size), 0)).repartitionByRange(DAYS, "day")
    ids.writeTo(f"{shared.iceberg.name}.{base}").append()
    names = {way: f"{job.table}_{way}_{size}" for way in WAYS}
    for name in names.values():
        _create(shared, name, job.format_version)
        give(shared, name, base, rows=size)
    found, held = list[dict[str, Any]](), {way: Held(size) for way in WAYS}
    for number in range(rounds + 1):
        updated = random.choice(np.flatnonzero(_are_of(size, number)), min(KEYS, size // 40), replace=False)
        gone = random.choice(np.flatnonzero(held["deletes"].alive), len(updated) // 10, replace=False)
        for way, name in names.items():
            kept = updated if way != "deletes" else np.setdiff1d(updated[len(gone) :], gone)
            file = Path(job.folder) / f"stable-{size}-{number}-{way}.parquet"
            batch = _batch(shared, file, kept, gone if way == "deletes" else gone[:0], number + 1)
            used = measured(meter, folder(shared, name), partial(_commit, shared, name, batch, number, WAYS[way]))
            if number:
                found.append({"way": way, "round": number, "rows": size, **used})
            held[way].put(kept, number + 1)
        held["deletes"].alive[gone] = False
    for way, name in names.items():
        check(shared, name, held[way])
    return found


def _are_of(size: int, number: int) -> Any:
    """Return which ids are of the days that a batch names."""
    days = np.arange(size, dtype=np.int64) * _SPREAD % _RANGE // (_RANGE // DAYS + 1)
    return np.isin(days, [(number * OF_A_BATCH + n) % DAYS for n in range(OF_A_BATCH)])


def _with_day(ids: DataFrame) -> DataFrame:
    day: Column = F.expr(f"CAST((id * {_SPREAD} % {_RANGE}) DIV {_RANGE // DAYS + 1} AS int)")
    return ids.withColumn("day", F.date_add(F.lit("2026-01-01").cast("date"), day))


def _batch(shared: JobContext, file: Path, kept: Any, gone: Any, version: int) -> DataFrame:
    """Return the rows of a batch, and `IS_DELETE`; a delete has no values."""
    ids, is_delete = np.concatenate([kept, gone]), np.arange(len(kept) + len(gone)) >= len(kept)
    pq.write_table(pa.table({"id": ids, IS_DELETE: is_delete}), file, row_group_size=len(ids) // 2)
    read = shared.spark.read.schema(f"id bigint, {IS_DELETE} boolean").parquet(str(file))
    made = _with_day(rows(read, version))
    return made.withColumn("day", F.when(~F.col(IS_DELETE), F.col("day")))


def _create(shared: JobContext, name: str, version: int) -> None:
    properties = layout.properties(
        format_version=version,
        target_file_size_bytes=128 << 20,
        keep_snapshots=100,
        offset_columns=(),
        declared={},
    )
    columns = Struct((*ROW.fields, _DAY))
    tables.create(shared.iceberg, name, columns, partition_by=(_BY,), properties=properties, key=("id",))


def _commit(shared: JobContext, name: str, batch: DataFrame, number: int, rules: Rules) -> None:
    at = shared.clock()
    staged = stage_changes(
        shared.iceberg, name, batch, key=["id"], pipeline=PIPELINE, new_id=shared.new_id, at=at, rules=rules
    )
    publish(shared, staged.files, request(number + 1, number + 2), changes=staged.changes)
