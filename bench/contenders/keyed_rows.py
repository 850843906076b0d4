"""Tables of about a hundred bytes a row with a number as key, batches of random changes, and what a table must hold after them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.lake import layout, tables
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.stage import constant
from frazil.schemas.types import Field, Kind, Primitive, Struct
from frazil.upsert.resolver_protocol import IS_DELETE

ROWS_A_FILE = 500_000
BATCH = 30_000
PRIME = 2**31 - 1
NAMES = ("id", "version", "amount", "name", "note", "_kafka_partition", "_kafka_offset")
_KINDS = (Kind.LONG, Kind.INT, Kind.DOUBLE, Kind.STRING, Kind.STRING, Kind.INT, Kind.LONG)
ROW = Struct(tuple(Field(name, Primitive(kind)) for name, kind in zip(NAMES, _KINDS, strict=True)))


def create(iceberg: Iceberg, table: str, version: int, *, copy_on_write: bool = False) -> None:
    """Create an empty table with the properties of Frazil's; another engine is to replace files, or to add deletes."""
    mode = "copy-on-write" if copy_on_write else "merge-on-read"
    properties = layout.properties(
        format_version=version,
        target_file_size_bytes=128 << 20,
        keep_snapshots=100,
        offset_columns=(),
        declared={f"write.{what}.mode": mode for what in ("delete", "update", "merge")},
    )
    tables.create(iceberg, table, ROW, properties=properties, key=("id",))


def rows(ids: DataFrame, version: int) -> DataFrame:
    """Return the rows of some ids in a version; other columns of `ids` follow.

    A literal would have the code of each batch compiled again, and a commit does not need that.
    """
    of_batch = constant(F.lit(version).cast("int"), F.col("id").cast("int"))
    made = {
        "id": F.col("id"),
        "version": of_batch,
        "amount": F.col("id").cast("double") / 7,
        "name": F.md5(F.col("id").cast("string")),
        "note": F.sha1(F.concat_ws("-", F.col("id"), of_batch)),
        "_kafka_partition": F.lit(0).cast("int"),
        "_kafka_offset": F.col("id"),
    }
    more = [name for name in ids.columns if name != "id"]
    return ids.select(*(column.alias(name) for name, column in made.items()), *more)


def fill(spark: SparkSession, iceberg: Iceberg, table: str, count: int) -> None:
    """Write the first version of ids 0 to `count` - 1."""
    ids = spark.range(0, count, 1, max(2, count // ROWS_A_FILE))
    rows(ids, 0).writeTo(f"{iceberg.name}.{table}").append()


@dataclass
class Held:
    """The ids that a table holds after some batches, and the version of each."""

    count: int
    alive: Any = field(init=False)
    version: Any = field(init=False)

    def __post_init__(self) -> None:
        self.alive, self.version = np.ones(self.count, bool), np.zeros(self.count, np.int64)

    def put(self, ids: Any, version: int) -> None:
        """Note that a batch wrote ids in a version."""
        self.alive[ids], self.version[ids] = True, version

    @property
    def expected(self) -> tuple[int, int, int, int]:
        """The number of rows, the sums of their ids and of the squares of these, modulo `PRIME`, and that of their versions.

        A row of an older version lowers the last one; an id that is there twice in place of another one changes one of the others.
        """
        ids = np.flatnonzero(self.alive)
        return len(ids), int(ids.sum()), int((ids * ids % PRIME).sum()), int(self.version[ids].sum())


@dataclass
class Changes(Held):
    """A table's ids, and batches of random changes of them."""

    random: np.random.Generator

    def batch(self, number: int, file: Path) -> None:
        """Write a batch to a file, ids and whether each is deleted: 80 % updates, 10 % inserts and 10 % deletes of random rows."""
        size = min(BATCH, self.count // 10)
        chosen = self.random.choice(np.flatnonzero(self.alive), size * 9 // 10, replace=False)
        updated, deleted = chosen[: size * 8 // 10], chosen[size * 8 // 10 :]
        inserted = np.arange(len(self.alive), len(self.alive) + size // 10)
        self.alive = np.concatenate([self.alive, np.ones(len(inserted), bool)])
        self.version = np.concatenate([self.version, np.full(len(inserted), number)])
        self.put(updated, number)
        self.alive[deleted] = False
        ids = np.concatenate([updated, inserted, deleted])
        is_delete = np.arange(len(ids)) >= len(updated) + len(inserted)
        order = self.random.permutation(len(ids))
        pq.write_table(pa.table({"id": ids[order], IS_DELETE: is_delete[order]}), file, row_group_size=size // 2)
