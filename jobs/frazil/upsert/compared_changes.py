"""Changes whose rows depend on those in the table: compared on its head before the rows are staged, and again in the commit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import types as T

from frazil.errors import RememberedDeletesLost
from frazil.lake.commit.fence import StageAgain
from frazil.lake.delete_files.staged_deletes import Found, StagedDeletes
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import ancestors
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.lake.stage import TableWriter
from frazil.upsert.fold import RECORDS, REPEATED
from frazil.upsert.key_changes import KeyChanges, UpsertBatch
from frazil.upsert.key_literals import Truncation
from frazil.upsert.ordering import DeletedKeys, FilesLost
from frazil.upsert.resolver_protocol import HASH, IS_DELETE, LACKS, NUMBER, BatchKeys, total
from frazil.upsert.scan_resolver import partition_sources

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_CHANGE = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")


class ComparedChanges(KeyChanges):
    """Changes of which some are late, or keep the values of the row that they delete.

    `compare` compares them with the rows on the table's head. The staged rows are right as long as rows stay as they are: the
    commit is of that head, or of one that only compaction made of it, on which the keys are searched and compared again.
    `found` and `unresolved`, the numbers of keys that lack a value, are known once they are compared.
    """

    def __init__(self, writer: TableWriter, keys: BatchKeys, batch: UpsertBatch) -> None:
        import pyarrow as pa

        count = keys.rows.num_rows
        self._records, self._repeated = (keys.rows[name].to_numpy() for name in (RECORDS, REPEATED))
        rows = keys.rows.drop_columns([RECORDS, REPEATED]).append_column(NUMBER, pa.array(range(count), pa.int32()))
        fields = [field for field in keys.schema.fields if field.name not in (RECORDS, REPEATED)]
        schema = T.StructType([*fields, T.StructField(NUMBER, T.IntegerType(), nullable=False)])
        super().__init__(writer, BatchKeys(rows, schema, keys.newest), batch)
        self.key, self.rules = self._keys.names, batch.rules
        self._deleted_keys = (
            DeletedKeys(self._iceberg, schema, batch.at_us, batch.rules.remember_us, writer.new_id)
            if batch.rules.ordered
            else None
        )
        self._known = RememberedDeletes()
        self._compared_on: int | None = None
        self.found = Found()
        self.repeated = 0
        self.unresolved = frozenset[int]()
        self._end: Offsets | None = None

    def is_on(self, committed: Offsets | None) -> bool:
        """Return whether the table that the changes were compared with holds the records up to these offsets, and no more."""
        return self._end.same_as(committed) if self._end is not None else committed is None

    def partition_sources(self) -> Mapping[str, Truncation]:
        """Return the columns that the table is partitioned by, as `key_changes.partition_sources` does."""
        return partition_sources(self._iceberg.load(self._table))

    def compare(self) -> None:
        """Compare with the rows on the table's head: what was found, and what the changes do, is known then."""
        import numpy as np

        table = self._iceberg.load(self._table)
        if table.currentSnapshot() is None:
            raise StageAgain("the table has no snapshot any more", where=f"table {self._table}")
        head = int(table.currentSnapshot().snapshotId())
        last = entry(table, self._pipeline)
        self._end = last.end if last is not None else None
        self._known = last.remembered_deletes if last is not None else RememberedDeletes()
        if self._deleted_keys is not None:
            with self._files_can_be_read():
                self._found_deleted = self._deleted_keys.search(table, self._known, self._keys.rows)
        self.found = self._searched(table, head, last).found
        self._compared_on = head
        is_late, is_kept = (np.zeros(self._keys.rows.num_rows, bool) for _ in range(2))
        is_late[sorted(self.found.late)], is_kept[sorted(self.found.kept)] = True, True
        is_delete, lacks = (self._keys.rows[mark].to_numpy().astype(bool) for mark in (IS_DELETE, LACKS))
        is_marked = ~is_late & is_delete & (~lacks | is_kept | self.rules.ordered) & self.rules.soft
        # A write that lacks values is none if no row has them.
        is_written = ~is_late & ~is_delete & (~lacks | is_kept)
        self.unresolved = frozenset(np.flatnonzero(~is_late & ~is_delete & ~is_written).tolist())
        hashes = self._keys.rows[HASH].to_numpy()
        self.late, self.repeated = int(self._records[is_late].sum()), int(self._repeated[~is_late].sum())
        # A row that has values of the one before stays stale if that was: a rejected record may have had newer ones.
        self._is_landed = (is_written & ~(lacks & is_kept)) | (~is_late & is_delete)
        self._is_applied = is_written | (~is_late & is_delete)
        self.writes, self.deletes = int(is_written.sum()), int((~is_late & is_delete).sum())
        self.marked, self.tied = int(is_marked.sum()), self.found.ties
        self._written_hash = total(hashes[is_written | is_marked])
        if self._deleted_keys is not None:
            is_gone = ~is_late & is_delete & (not self.rules.soft)
            with self._files_can_be_read():
                self.remembered = self._deleted_keys.after(table, self._known, self._keys.rows.filter(is_gone))

    @contextmanager
    def _files_can_be_read(self) -> Iterator[None]:
        """Say what it means if files of remembered deletes do not exist, or are damaged."""
        try:
            yield
        except FilesLost as lost:
            last = entry(self._iceberg.load(self._table), self._pipeline)
            if last is None or last.remembered_deletes != self._known:
                raise StageAgain(f"the table no longer names {lost}", where=f"table {self._table}") from None
            raise RememberedDeletesLost.of(self._pipeline, self._table, str(lost)) from None

    def keys_of(self, numbers: Collection[int]) -> pa.Table:
        """Return the key columns of the keys with these numbers."""
        return self._keys.rows.select(self.key).take(sorted(numbers))

    def check_written(self, rows: int) -> None:
        """Raise `StageAgain` if another number of rows was staged than was compared."""
        if rows != self.writes + self.marked:
            what = f"{rows} rows were staged for {self.writes + self.marked} keys"
            raise StageAgain(what, where=f"table {self._table}")

    def on(self, table: Java, head: int, last: Entry | None = None) -> StagedDeletes:
        """Return the deletes as `KeyChanges.on` does. Raises `StageAgain` if rows changed since the batch was staged."""
        if (last.remembered_deletes if last is not None else RememberedDeletes()) != self._known:
            raise StageAgain("other deletes are remembered since the batch was staged", where=f"table {self._table}")
        if head != self._compared_on and not self._has_same_rows(table, head):
            raise StageAgain("rows were changed since the batch was staged", where=f"table {self._table}")
        made = super().on(table, head, last)
        if (made.found.late, made.found.kept) != (self.found.late, self.found.kept):
            raise StageAgain("other records of the batch are late now", where=f"table {self._table}")
        new = self.remembered.without(self._known.locations) if self.remembered is not None else RememberedDeletes()
        return replace(made, beside=(*new.locations, *made.beside))

    def _has_same_rows(self, table: Java, head: int) -> bool:
        """Return whether all snapshots between the compared one and `head` left the rows as they were."""
        for snapshot in ancestors(table, head):
            if int(snapshot.snapshotId()) == self._compared_on:
                return True
            summary = snapshot.summary()
            if str(snapshot.operation()) != "replace" and any(
                summary.get(key) not in (None, "0") for key in _ROWS_CHANGE
            ):
                return False
        return False
