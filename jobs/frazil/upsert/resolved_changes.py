"""Changes whose rows depend on those in the table: compared on its head before the rows are staged, and again in the commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from frazil.errors import RememberedDeletesLost
from frazil.lake.commit.check import StageAgain
from frazil.lake.delete_files.staged_deletes import Found, StagedDeletes
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.lineage import ancestors
from frazil.lake.ledger.offsets import Offsets
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.upsert.deleted_keys import DeletedKeys, FilesLost
from frazil.upsert.fold import RECORDS, REPEATED, Rules
from frazil.upsert.key_changes import KeyChanges, partition_sources
from frazil.upsert.key_literals import Truncation
from frazil.upsert.scan_resolver import HASH, IS_DELETE, LACKS, MARKS, NUMBER, total

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_ROWS_CHANGE = ("added-data-files", "deleted-data-files", "added-delete-files", "removed-delete-files")


class ResolvedChanges(KeyChanges):
    """Changes of which some are late, or keep the values of the row that they delete.

    `resolve` compares them with the rows on the table's head. The staged rows are right as long as rows stay as they are: the
    commit is of that head, or of one that only compaction made of it, on which the keys are searched and compared again.
    """

    def __init__(
        self,
        iceberg: Iceberg,
        table: str,
        keys: pa.Table,
        schema: Any,
        *,
        pipeline: str,
        rules: Rules,
        staged_us: int,
        new_id: Callable[[], str],
        clears: bool = False,
        newest: pa.StructArray | None = None,
    ) -> None:
        import numpy as np
        import pyarrow as pa

        keys = keys.append_column(NUMBER, pa.array(range(keys.num_rows), pa.int32()))
        schema = T.StructType([*schema.fields, T.StructField(NUMBER, T.IntegerType(), nullable=False)])
        self._records, self._repeated = (keys[name].to_numpy() for name in (RECORDS, REPEATED))
        fields = [field for field in schema.fields if field.name not in (RECORDS, REPEATED)]
        super().__init__(
            iceberg,
            table,
            keys.drop_columns([RECORDS, REPEATED]),
            T.StructType(fields),
            pipeline=pipeline,
            moves=rules.ordered or rules.moved,
            clears=clears,
            newest=newest,
            staged_us=staged_us,
        )
        self.key = [field.name for field in fields if field.name not in MARKS]
        self._deleted_keys = (
            DeletedKeys(iceberg, self._schema, staged_us, rules.remember_us, new_id) if rules.ordered else None
        )
        self._known = RememberedDeletes()
        self._rules = rules
        self._resolved_on: int | None = None
        self.found = Found()
        self.late = self.marked = self.repeated = 0
        self._replaces_all = np.ones(keys.num_rows, bool)
        self.unresolved = frozenset[int]()
        self._end: Offsets | None = None

    def is_on(self, committed: Offsets | None) -> bool:
        """Return whether the table that the changes were compared with holds the records up to these offsets, and no more."""
        return self._end.same_as(committed) if self._end is not None else committed is None

    def partition_sources(self) -> Mapping[str, Truncation]:
        """Return the columns that the table is partitioned by, as `key_changes.partition_sources` does."""
        return partition_sources(self._iceberg.load(self._table))

    def resolve(self) -> None:
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
                self._found_deleted = self._deleted_keys.search(table, self._known, self._keys)
        self.found = self._searched(table, head, last).found
        self._resolved_on = head
        is_late, is_kept = (np.zeros(self._keys.num_rows, bool) for _ in range(2))
        is_late[sorted(self.found.late)], is_kept[sorted(self.found.kept)] = True, True
        is_delete, lacks = (self._keys[mark].to_numpy().astype(bool) for mark in (IS_DELETE, LACKS))
        is_marked = ~is_late & is_delete & (~lacks | is_kept | self._rules.ordered) & self._rules.soft
        # A write that lacks values is none if no row has them.
        is_written = ~is_late & ~is_delete & (~lacks | is_kept)
        self.unresolved = frozenset(np.flatnonzero(~is_late & ~is_delete & ~is_written).tolist())
        hashes = self._keys[HASH].to_numpy()
        self.late, self.repeated = int(self._records[is_late].sum()), int(self._repeated[~is_late].sum())
        # A row that has values of the one before stays stale if that was: a rejected record may have had newer ones.
        self._replaces_all = (is_written & ~(lacks & is_kept)) | (~is_late & is_delete)
        self.writes, self.deletes = int(is_written.sum()), int((~is_late & is_delete).sum())
        self.marked = int(is_marked.sum())
        self._written_hash = total(hashes[is_written | is_marked])
        if self._deleted_keys is not None:
            is_gone = ~is_late & is_delete & (not self._rules.soft)
            with self._files_can_be_read():
                self.remembered = self._deleted_keys.after(table, self._known, self._keys.filter(is_gone))

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
        return self._keys.select(self.key).take(sorted(numbers))

    def check_written(self, rows: int) -> None:
        """Raise `StageAgain` if another number of rows was staged than was compared."""
        if rows != self.writes + self.marked:
            what = f"{rows} rows were staged for {self.writes + self.marked} keys"
            raise StageAgain(what, where=f"table {self._table}")

    def on(self, table: Java, head: int, last: Entry | None = None) -> StagedDeletes:
        """Return the deletes as `KeyChanges.on` does. Raises `StageAgain` if rows changed since the batch was staged."""
        if (last.remembered_deletes if last is not None else RememberedDeletes()) != self._known:
            raise StageAgain("other deletes are remembered since the batch was staged", where=f"table {self._table}")
        if head != self._resolved_on and not self._has_same_rows(table, head):
            raise StageAgain("rows were changed since the batch was staged", where=f"table {self._table}")
        made = super().on(table, head, last)
        if (made.found.late, made.found.kept) != (self.found.late, self.found.kept):
            raise StageAgain("other records of the batch are late now", where=f"table {self._table}")
        new = self.remembered.without(self._known.locations) if self.remembered is not None else RememberedDeletes()
        return replace(made, beside=(*new.locations, *made.beside))

    def _is_landed(self) -> np.ndarray[Any, Any]:
        return self._replaces_all

    def account(self, before: KeyAccount, deletes: StagedDeletes, records: int) -> KeyAccount:
        """Return the account as `KeyChanges.account` does, with the late records and the rows that are kept as deleted."""
        after = super().account(before, deletes, records)
        return replace(after, rows=after.rows + self.marked, late=before.late + self.late)

    def _has_same_rows(self, table: Java, head: int) -> bool:
        """Return whether all snapshots between the compared one and `head` left the rows as they were."""
        for snapshot in ancestors(table, head):
            if int(snapshot.snapshotId()) == self._resolved_on:
                return True
            summary = snapshot.summary()
            if str(snapshot.operation()) != "replace" and any(
                summary.get(key) not in (None, "0") for key in _ROWS_CHANGE
            ):
                return False
        return False
