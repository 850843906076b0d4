"""The keys of a staged batch, and the deletes of their rows: made on the head of a commit, and made again on another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from frazil.errors import KeysMoved
from frazil.lake.commit.check import StageAgain
from frazil.lake.delete_files.staged_deletes import Found, StagedDeletes, write
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount, StaleKeys
from frazil.lake.ledger.offsets import Offsets
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.upsert.key_literals import Truncation
from frazil.upsert.pruned_scan import check_omitted
from frazil.upsert.scan_resolver import HASH, IS_DELETE, Remembered, find, key_names, total
from frazil.upsert.stale_keys import Places, RejectedKeys, StaleKeysOfBatch

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from pyspark.sql import DataFrame


class KeyIndex(Protocol):
    """A cache of where keys are, which knows what it is a cache of: `IndexedSearch` is one."""

    def find(
        self,
        table: Java,
        head: int,
        keys: pa.Table,
        schema: Any,
        *,
        until: int,
        account: KeyAccount | None,
        search: Callable[[], Found],
    ) -> Found:
        """Return what `search` returns, perhaps without it."""

    def made(self, deletes: StagedDeletes, /) -> None:
        """Take notice of the deletes that were written for what was found last; they may be committed."""


class KeyChanges:
    """Every row of a table whose key the batch writes or deletes is to go in the batch's commit.

    `keys` and `schema` are as in `positions.find`. Keys are searched on the head of the commit: positions of another snapshot may
    be those of other rows. `pipeline` is for messages. `moves` says that rows of another Kafka partition are older than the batch,
    `clears` that the source's table was truncated: all rows go.
    `newest` is partition and offset of each key's newest record, `staged_us` when the batch was staged: without them, no stale keys
    are counted.
    An `index` may answer instead of the search.
    """

    def __init__(
        self,
        iceberg: Iceberg,
        table: str,
        keys: pa.Table,
        schema: Any,
        *,
        pipeline: str = "",
        moves: bool = False,
        clears: bool = False,
        index: KeyIndex | None = None,
        newest: pa.StructArray | None = None,
        staged_us: int = 0,
    ) -> None:
        self._index = index
        self._iceberg, self._table, self._keys, self._schema = iceberg, table, keys, schema
        self._pipeline, self._moves, self.clears = pipeline, moves, clears
        self._made: StagedDeletes | None = None
        is_delete = keys[IS_DELETE].to_numpy().astype(bool)
        self.deletes = int(is_delete.sum())
        self.writes = len(is_delete) - self.deletes
        self._written_hash = total(keys[HASH].to_numpy()[~is_delete])
        self.remembered: RememberedDeletes | None = None
        self._found_deleted = Remembered()
        self._newest, self._staged_us = newest, staged_us
        self.rejected: RejectedKeys | None = None
        self.stale: StaleKeys | None = None
        self._stale_of: StaleKeysOfBatch | None = None

    def on(self, table: Java, head: int, last: Entry | None = None) -> StagedDeletes:
        """Return the deletes on the snapshot `head` of the loaded `table`; those of an earlier call if the head is the same.

        `last` is the newest entry that the head has. The stale keys are known then.
        """
        made = self._searched(table, head, last)
        if self._newest is None:
            return made
        self._stale_of = self._stale_of or StaleKeysOfBatch(
            self._iceberg, self._landed(), self.rejected, clears=self.clears, staged_us=self._staged_us
        )
        self.stale = self._stale_of.after(table, last)
        return replace(made, beside=self._stale_of.written)

    def _landed(self) -> Places:
        """Return the newest record of each key that the batch changes."""
        assert self._newest is not None
        partitions, offsets = (self._newest.field(number).to_numpy(zero_copy_only=False) for number in range(2))
        is_landed = self._is_landed()
        return Places(self._keys[HASH].to_numpy()[is_landed], partitions[is_landed], offsets[is_landed])

    def _is_landed(self) -> np.ndarray[Any, Any]:
        """Return of which keys the batch's change counts."""
        import numpy as np

        return np.ones(self._keys.num_rows, bool)

    def _searched(self, table: Java, head: int, last: Entry | None) -> StagedDeletes:
        if self._made is None or self._made.snapshot_id != head:
            self._made = None
            if self.clears or not self._keys.num_rows or _is_empty(table, head):
                late, tied = self._found_deleted.late, self._found_deleted.tied
                self._made = StagedDeletes(snapshot_id=head, clears=self.clears, found=Found(late=late, ties=len(tied)))
            else:
                check_names(table, key_names(self._schema))
                found = self._found(table, head, last.keys if last is not None else None)
                self._made = write(self._iceberg, table, head, found)
                if self._index is not None:
                    self._index.made(self._made)
        return self._made

    def _found(self, table: Java, head: int, account: KeyAccount | None) -> Found:
        until = account.until if account is not None else 0
        key = key_names(self._schema)

        def search() -> Found:
            partitioned_by = partition_sources(table)
            prune = (by.prunes(len(self._keys[name].unique())) for name, by in partitioned_by.items() if name in key)
            is_checked = any(prune)  # else Iceberg compares nothing but the bounds of files

            def check(rows: DataFrame) -> None:
                if is_checked:
                    check_omitted(self._iceberg, table, head, rows, self._keys.select(key))

            return find(
                self._iceberg.spark,
                f"{self._iceberg.name}.{self._table}",
                head,
                self._keys,
                self._schema,
                named=_names_on(table, head, self._schema.fieldNames()),
                until=until,
                partitioned_by=partitioned_by,
                remembered=self._found_deleted,
                check=check,
            )

        if self._index is None:
            return search()
        return self._index.find(table, head, self._keys, self._schema, until=until, account=account, search=search)

    def is_on(self, committed: Offsets | None) -> bool:
        """Return whether what is known of the changes is still so where these offsets are committed: nothing depends on rows."""
        return True

    def check(self, deletes: StagedDeletes) -> None:
        """Raise `KeysMoved` if a key's row is of another Kafka partition than its record, and nothing orders the two."""
        if deletes.found.moved and not self._moves:
            raise KeysMoved.of(self._pipeline, self._table, deletes.found.moved)

    def account(self, before: KeyAccount, deletes: StagedDeletes, records: int) -> KeyAccount:
        """Return the table's account after a commit of these deletes and the batch's rows, which are of so many records."""
        found, cleared = deletes.found, before.rows if deletes.clears else 0
        if deletes.clears:
            before = replace(before, rows=0, hash=0)
        return KeyAccount(
            removed=before.removed,
            rows=before.rows + self.writes - found.rows,
            hash=(before.hash + self._written_hash - found.hash) % 2**64,
            records=before.records + records,
            inserted=self.writes - found.updated,
            updated=found.updated,
            deleted=found.deleted,
            absent=self.deletes - found.deleted,
            late=before.late,
            cleared=cleared,
            doubled=found.rows - found.updated - found.deleted,
        )

    def forget(self) -> None:
        """Make the deletes again at the next call, also on the same head."""
        self._made = None


def check_names(table: Java, names: Sequence[str]) -> None:
    """Raise `StageAgain` if a column of the key is no longer found by the name that it had when the batch was staged."""
    if gone := [name for name in names if table.schema().findField(name) is None]:
        raise StageAgain(f"the column {gone[0]} was renamed since the batch was staged", where=f"table {table.name()}")


def _names_on(table: Java, head: int, names: Sequence[str]) -> dict[str, str]:
    """Return the names of columns in the schema of a snapshot: it is read by that one, which may be older than a rename."""
    schema_id, found = table.snapshot(head).schemaId(), dict[str, str]()
    then: Java = table.schemas().get(schema_id) if schema_id is not None else table.schema()
    for name in names:
        column = table.schema().findField(name)
        was = then.findColumnName(column.fieldId()) if column is not None else None
        if was is not None:
            found[name] = str(was)
    return found


def partition_sources(table: Java) -> dict[str, Truncation]:
    """Return the columns that the table's data files are or were partitioned by, and how they are truncated."""
    fields = [field for spec in table.specs().values() for field in items(spec.fields())]
    found: dict[str, Truncation] = {}
    for source in {int(field.sourceId()) for field in fields}:
        column = table.schema().findField(source)
        if column is None:
            continue
        transforms = {str(field.transform()) for field in fields if int(field.sourceId()) == source}
        are_buckets = all(one.startswith("bucket[") for one in transforms)
        widths = tuple(sorted(int(one[9:-1]) for one in transforms if one.startswith("truncate[")))
        types = {str(schema.findType(source)) for schema in table.schemas().values()} if widths else set()
        was_int = "int" in types and str(column.type()) == "long"
        found[str(table.schema().findColumnName(source))] = Truncation(widths, was_int, are_buckets)
    return found


def _is_empty(table: Java, head: int) -> bool:
    return str(table.snapshot(head).summary().get("total-data-files")) == "0"
