"""The keys of a staged batch, and the deletes of their rows: made on the head of a commit, and made again on another one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from frazil.errors import KeysMoved
from frazil.lake.delete_files.staged_deletes import Found, StagedDeletes, write
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount, StaleKeys
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.remembered_deletes import RememberedDeletes
from frazil.lake.stage import TableWriter
from frazil.upsert.fold import Rules
from frazil.upsert.resolver_protocol import (
    HASH,
    IS_DELETE,
    KAFKA_OFFSET,
    KAFKA_PARTITION,
    PLACE,
    BatchKeys,
    Head,
    KeyPositionResolver,
    Remembered,
    total,
)
from frazil.upsert.scan_resolver import ScanResolver, check_names
from frazil.upsert.stale_keys import Places, RejectedKeys, StaleKeysOfBatch

ROWS_A_TASK = 50_000
"""Spark's own number of tasks after a shuffle, 200, would be as many files of a batch and seconds of starting tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertBatch:
    """The facts of one batch of an upsert table.

    It was staged `at` this time, in seconds since 1970, and has about so many `records`: they decide how many tasks fold them, and
    so how many files they become. `rules` say how its changes take effect. If it `clears` the table, the source's table was
    truncated: all rows go.
    """

    at: float
    records: int = ROWS_A_TASK
    rules: Rules = Rules()  # noqa: RUF009 # frozen
    clears: bool = False

    @property
    def at_us(self) -> int:
        """The time at which the batch was staged, in microseconds since 1970."""
        return round(self.at * 1_000_000)


class KeyChanges:
    """Every row of a table whose key the batch writes or deletes is to go in the batch's commit.

    Keys are searched on the head of the commit: positions of another snapshot may be those of other rows. Rows of another Kafka
    partition are older than the batch where its rules order rows, or say that keys moved; else they are refused.
    `rejected` are the keys of the batch's rejected records, which are known once these are staged.
    """

    late = marked = tied = 0
    """Records that are late, keys whose row is marked as deleted, and ties with rows of the table: of compared changes only."""

    def __init__(
        self, writer: TableWriter, keys: BatchKeys, batch: UpsertBatch, resolver: KeyPositionResolver | None = None
    ) -> None:
        self._writer, self._keys, self._batch = writer, keys, batch
        self._iceberg, self._table, self._pipeline = writer.iceberg, writer.table, writer.pipeline
        self._resolver = resolver or ScanResolver(writer.iceberg, writer.table)
        self._made: StagedDeletes | None = None
        is_delete = keys.rows[IS_DELETE].to_numpy().astype(bool)
        self.clears = batch.clears
        self.deletes = int(is_delete.sum())
        self.writes = len(is_delete) - self.deletes
        self._written_hash = total(keys.rows[HASH].to_numpy()[~is_delete])
        self._is_landed = is_delete | ~is_delete  # the keys whose change replaces all that their row was
        self._is_applied = self._is_landed
        self.remembered: RememberedDeletes | None = None
        self._found_deleted = Remembered()
        self.rejected: RejectedKeys | None = None
        self.stale: StaleKeys | None = None
        self._stale_of: StaleKeysOfBatch | None = None

    def on(self, table: Java, head: int, last: Entry | None = None) -> StagedDeletes:
        """Return the deletes on the snapshot `head` of the loaded `table`; those of an earlier call if the head is the same.

        `last` is the newest entry that the head has. The stale keys are known then.
        """
        made = self._searched(table, head, last)
        if self._keys.newest is None:
            return made
        self._stale_of = self._stale_of or StaleKeysOfBatch(
            self._iceberg, self._landed(), self.rejected, clears=self.clears, staged_us=self._batch.at_us
        )
        self.stale = self._stale_of.after(table, last)
        return replace(made, beside=self._stale_of.written)

    def _landed(self) -> Places:
        """Return the newest record of each key that the batch changes."""
        assert self._keys.newest is not None
        partitions, offsets = (self._keys.newest.field(number).to_numpy(zero_copy_only=False) for number in range(2))
        hashes, landed = self._keys.rows[HASH].to_numpy(), self._is_landed
        return Places(hashes[landed], partitions[landed], offsets[landed])

    def _searched(self, table: Java, head: int, last: Entry | None) -> StagedDeletes:
        if self._made is None or self._made.snapshot_id != head:
            self._made = None
            is_empty = str(table.snapshot(head).summary().get("total-data-files")) == "0"
            if self.clears or not self._keys.rows.num_rows or is_empty:
                late, tied = self._found_deleted.late, self._found_deleted.tied
                self._made = StagedDeletes(snapshot_id=head, clears=self.clears, found=Found(late=late, ties=len(tied)))
            else:
                check_names(table, self._keys.names)
                on = Head(table, head, last.keys if last is not None else None)
                found = self._resolver.find(on, self._keys, self._found_deleted)
                self._made = write(self._iceberg, table, head, found)
                self._resolver.wrote(self._made)
        return self._made

    def applied(self) -> frozenset[tuple[int, int]]:
        """Return partition and offset of the record of each key that takes effect."""
        if PLACE in self._keys.rows.column_names:
            place = self._keys.rows[PLACE].combine_chunks()
            places = [place.field(name) for name in (KAFKA_PARTITION, KAFKA_OFFSET)]
        else:
            assert self._keys.newest is not None
            places = [self._keys.newest.field(number) for number in range(2)]
        columns = (each.to_numpy(zero_copy_only=False)[self._is_applied].tolist() for each in places)
        return frozenset(zip(*columns, strict=True))

    @property
    def count(self) -> int:
        """The number of keys."""
        return int(self._keys.rows.num_rows)

    def is_on(self, committed: Offsets | None) -> bool:
        """Return whether what is known of the changes is still so where these offsets are committed: nothing depends on rows."""
        return True

    def check(self, deletes: StagedDeletes) -> None:
        """Raise `KeysMoved` if a key's row is of another Kafka partition than its record, and nothing orders the two."""
        if deletes.found.moved and not (self._batch.rules.ordered or self._batch.rules.moved):
            raise KeysMoved.of(self._pipeline, self._table, deletes.found.moved)

    def account(self, before: KeyAccount, deletes: StagedDeletes, records: int) -> KeyAccount:
        """Return the table's account after a commit of these deletes and the batch's rows, which are of so many records."""
        found, cleared = deletes.found, before.rows if deletes.clears else 0
        if deletes.clears:
            before = replace(before, rows=0, hash=0)
        return KeyAccount(
            removed=before.removed,
            rows=before.rows + self.writes + self.marked - found.rows,
            hash=(before.hash + self._written_hash - found.hash) % 2**64,
            records=before.records + records,
            inserted=self.writes - found.updated,
            updated=found.updated,
            deleted=found.deleted,
            absent=self.deletes - found.deleted,
            late=before.late + self.late,
            cleared=cleared,
            doubled=found.rows - found.updated - found.deleted,
        )

    def forget(self) -> None:
        """Make the deletes again at the next call, also on the same head."""
        self._made = None
