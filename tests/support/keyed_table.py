"""A table of keyed rows, batches of changes for it, and what the table must hold after them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.declaration.environment import Environment
from frazil.declaration.partitioning import PartitionField, Transform
from frazil.lake import layout, tables
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.other_commits import OtherCommit
from frazil.lake.commit.request import CommitRequest, Committed
from frazil.lake.data_location import place_data
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts
from frazil.lake.stage import Staged, TableWriter, empty_commit, stage
from frazil.schemas.types import Field, Kind, Primitive, Struct
from frazil.upsert.key_changes import KeyChanges, UpsertBatch
from frazil.upsert.resolver_protocol import (
    HASH,
    IS_DELETE,
    PARTITION,
    SECOND_HASH,
    BatchKeys,
    KeyPositionResolver,
    key_hash,
)
from tests.support import oracle
from tests.support.jobs import job

ROW = Struct(
    (Field("id", Primitive(Kind.LONG)), Field("day", Primitive(Kind.INT)), Field("word", Primitive(Kind.STRING)))
)
Row = tuple[int, str]
"""Day and word of a key."""


@dataclass(frozen=True)
class Batch:
    """What a driver staged: rows in no snapshot, the keys, and the offset behind it."""

    staged: Staged
    changes: KeyChanges
    start: int
    end: int


@dataclass
class KeyedTable:
    """A table `id -> (day, word)` whose batches move one offset each."""

    spark: SparkSession
    iceberg: Iceberg
    environment: Environment
    name: str
    version: int = 2
    partitioned: bool = False
    state: dict[int, Row] = field(default_factory=dict)
    at: int = 0
    is_alone: bool = True
    """Whether no other engine has changed rows: the account knows nothing of such."""
    index: KeyPositionResolver | None = None
    by: PartitionField = PartitionField(Transform.IDENTITY, "day")  # noqa: RUF009 # frozen

    def create(self) -> KeyedTable:
        """Make the table, with its ledger."""
        tables.create(
            self.iceberg,
            self.name,
            ROW,
            partition_by=(self.by,) if self.partitioned else (),
            properties=layout.properties(
                format_version=self.version,
                target_file_size_bytes=1 << 20,
                keep_snapshots=5,
                offset_columns=(),
                declared={},
            ),
        )
        place_data(self.iceberg, self.name)
        commit(
            job(self.iceberg, clock=lambda: 1001.0),
            empty_commit(self.iceberg, self.name, at=1000.0),
            self.request(None, 0),
        )
        return self

    def request(self, held: int | None, end: int, run: str = "me") -> CommitRequest:
        """Return a commit's offsets."""

        def offsets(at: int) -> Offsets:
            return Offsets("orders", "T1", {0: at})

        return CommitRequest(
            pipeline="p",
            run=run,
            version="1",
            start=offsets(held or 0),
            end=offsets(end),
            committed=None if held is None else offsets(held),
            topic_id="T1",
            counts=Counts(read=end - (held or 0), written=end - (held or 0)),
        )

    def staged(self, rows: Mapping[int, Row | None]) -> Batch:
        """Stage a batch behind what the table holds: new rows by key, None for a delete."""
        frame = self._frame({key: row for key, row in rows.items() if row is not None})
        staged = stage(self.iceberg, self.name, frame, unique_id=uuid.uuid4().hex, at=1000.0)
        marks = {"id": list(rows), IS_DELETE: [row is None for row in rows.values()], PARTITION: [0] * len(rows)}
        keys = self._arrow(marks, f"id long, {IS_DELETE} boolean, {PARTITION} int")
        hashes = {HASH: key_hash(keys, ["id"]), SECOND_HASH: key_hash(keys, ["id"], is_second=True)}
        keys = keys.withColumns(hashes)
        changes = self.changes(keys)
        return Batch(staged, changes, self.at, self.at + 1)

    def changes(self, keys: DataFrame) -> KeyChanges:
        """Return the changes of these keys."""
        writer = TableWriter(self.iceberg, self.name, lambda: uuid.uuid4().hex)
        return KeyChanges(writer, BatchKeys(keys.toArrow(), keys.schema), UpsertBatch(at=0.0), self.index)

    def _frame(self, rows: Mapping[int, Row]) -> DataFrame:
        days, words = [row[0] for row in rows.values()], [row[1] for row in rows.values()]
        return self._arrow({"id": list(rows), "day": days, "word": words}, "id long, day int, word string")

    def _arrow(self, columns: Mapping[str, list[Any]], schema: str) -> DataFrame:
        """Return a frame that needs no Python worker."""
        kinds = {"long": pa.int64(), "int": pa.int32(), "string": pa.string(), "boolean": pa.bool_()}
        types = [kinds[column.split(" ")[1]] for column in schema.split(", ")]
        arrays = [pa.array(values, kind) for values, kind in zip(columns.values(), types, strict=True)]
        return self.spark.createDataFrame(pa.table(arrays, names=list(columns)), schema=schema)

    def publish(
        self,
        batch: Batch,
        *,
        run: str = "me",
        failpoint: Callable[[str], None] = lambda _: None,
        met: Callable[[OtherCommit], None] = lambda _: None,
    ) -> Committed:
        """Commit a batch."""
        request = self.request(batch.start, batch.end, run)
        made = job(self.iceberg, run=run, clock=lambda: 1001.0, failpoint=failpoint)
        return commit(made, batch.staged, request, changes=batch.changes, met=met)

    def apply(self, rows: Mapping[int, Row | None], **options: object) -> Committed:
        """Stage and commit a batch, and do the same to the state that the table must have."""
        published = self.publish(self.staged(rows), **options)  # type: ignore[arg-type]
        self.expect(rows)
        return published

    def expect(self, rows: Mapping[int, Row | None]) -> None:
        """Do a committed batch to the state that the table must have."""
        self.at += 1
        for key, row in rows.items():
            if row is None:
                self.state.pop(key, None)
            else:
                self.state[key] = row

    @property
    def held(self) -> int | None:
        """The offset that the table holds."""
        last = entry(self.iceberg.load(self.name), "p")
        return last.end.at[0] if last is not None and last.end is not None else None

    def check(self) -> None:
        """Assert that the table holds the state: as Spark and as PyIceberg read it."""
        wanted = sorted((key, *row) for key, row in self.state.items())
        rows = self.spark.table(self.path).select("id", "day", "word").collect()
        assert sorted(map(tuple, rows)) == wanted
        found = oracle.rows(self.environment, self.name)
        assert sorted((row["id"], row["day"], row["word"]) for row in found) == wanted
        account = entry(self.iceberg.load(self.name), "p").keys  # type: ignore[union-attr]
        assert (
            account is None
            or not self.is_alone
            or (account.rows, account.hash) == (len(wanted), self.hash_of(*self.state))
        )

    @property
    def path(self) -> str:
        """The table as Spark names it, with its catalog."""
        return f"{self.iceberg.name}.{self.name}"

    def compact(self) -> None:
        """Rewrite all data files into one, without their deleted rows."""
        self.spark.sql(
            f"CALL {self.iceberg.name}.system.rewrite_data_files(table => '{self.name}', options => "
            "map('rewrite-all', 'true', 'delete-file-threshold', '1'))"
        )

    def rewrite_deletes(self) -> None:
        """Rewrite all delete files, as another engine does between compactions."""
        self.spark.sql(
            f"CALL {self.iceberg.name}.system.rewrite_position_delete_files(table => '{self.name}', "
            "options => map('rewrite-all', 'true'))"
        )

    def expire(self) -> None:
        """Expire all snapshots but the newest."""
        self.spark.sql(
            f"CALL {self.iceberg.name}.system.expire_snapshots(table => '{self.name}', "
            "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
        )

    def hash_of(self, *keys: int) -> int:
        """Return the sum of keys' hashes, modulo 2^64."""
        frame = self._arrow({"id": list(keys)}, "id long")
        return sum(row[0] for row in frame.select(key_hash(frame, ["id"]).alias("h")).collect()) % 2**64

    def insert(self, key: int, row: Row) -> None:
        """Insert a row as another engine does."""
        self.is_alone = False
        self._frame({key: row}).writeTo(self.path).append()

    def delete(self, key: int) -> None:
        """Delete a row as another engine does."""
        self.is_alone = False
        self.spark.sql(f"DELETE FROM {self.path} WHERE id = {key}")

    def size(self) -> int:
        """Return how many rows Spark counts."""
        return int(self.spark.table(self.path).agg(F.count("id")).collect()[0][0])
