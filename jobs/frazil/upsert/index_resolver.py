"""The search for keys by an index, where that costs less than reading the table's keys for every batch.

The index is a cache of one snapshot. It answers only for the head that it has seen: if the head moved, it follows, or is dropped.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from frazil.lake.commit.request import Committer
from frazil.lake.delete_files.java_writers import tasks
from frazil.lake.delete_files.staged_deletes import Found, StagedDeletes
from frazil.lake.iceberg_java import said
from frazil.lake.java_classes import Java
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.upsert.key_index.head_changes import commits_between, follow
from frazil.upsert.key_index.index import NOWHERE, Places, PlacesOfKeys
from frazil.upsert.key_index.read_keys import KeyColumns, RowsLacking, keyed_rows
from frazil.upsert.key_index.sorted_entries import BYTES
from frazil.upsert.resolver_protocol import (
    FILE,
    HASH,
    IS_DELETE,
    MOVED,
    PARTITION,
    POSITION,
    SECOND_HASH,
    BatchKeys,
    Head,
    KeyPositionResolver,
    Remembered,
    grouped,
)

if TYPE_CHECKING:
    import pyarrow as pa

ROOM = 2.5
"""So much of its size an index needs on disk: while it is merged it is there twice."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The condition under which an index pays: searches that took longer than with one, together as long as it takes to make one.

    A batch with an index takes `batch_seconds`. Making one takes `seconds_a_row` and `fixed_seconds`.
    """

    batch_seconds: float = 0.1
    fixed_seconds: float = 1.0
    seconds_a_row: float = 5e-7

    def build_seconds(self, rows: int) -> float:
        """Return how long an index of so many rows takes."""
        return self.fixed_seconds + rows * self.seconds_a_row

    def learned(self, rows: int, seconds: float) -> Cost:
        """Return the cost after an index of so many rows was made in this time."""
        return replace(self, seconds_a_row=max(seconds - self.fixed_seconds, 0.0) / max(rows, 1))

    def failed(self) -> Cost:
        """Return the cost after an index could not be made: it may be so again, and the next one has to pay more."""
        return replace(self, fixed_seconds=4 * self.fixed_seconds)


class NoIndex(Exception):  # it says what happened
    """The index cannot be made or cannot follow; the message says why."""


@dataclass(slots=True)
class _Index:
    """An index of the rows of one snapshot, and what was found of the last batches on it."""

    table_uuid: str
    identity: tuple[object, ...]
    snapshot_id: int
    places: PlacesOfKeys
    uncounted: int | None = None  # rows that the table's account does not know, as other engines wrote or deleted them
    looked: Places | None = None
    made: list[tuple[StagedDeletes, Places]] = field(default_factory=list)


class IndexResolver:
    """The search for the keys of one table, by an index as soon as it pays; for one run.

    `report` is called with `built` when an index was made, and its rows, seconds and bytes; with `dropped` and the reason when it
    was dropped or cannot be made. Temporary files are in `folder`, or where the system has them. Used by one thread at a time.
    """

    def __init__(
        self,
        scan: KeyPositionResolver,
        job: Committer,
        report: Callable[[str, Mapping[str, Any]], None],
        cost: Cost | None = None,
        folder: str | None = None,
    ) -> None:
        self._scan, self._report = scan, report
        self._iceberg, self._clock, self._new_id = job.iceberg, job.clock, job.new_id
        self._cost, self._folder = cost or Cost(), folder
        self._index: _Index | None = None
        self._spent = 0.0
        self._has_room = True

    def find(self, head: Head, keys: BatchKeys, remembered: Remembered = Remembered()) -> Found:  # noqa: B008 # frozen
        """See `KeyPositionResolver`; the keys have a second hash."""
        index = self._ready(head, keys)
        if index is not None:
            return _found(index, keys.rows)
        began = self._clock()
        found = self._scan.find(head, keys, remembered)
        self._spent += max(self._clock() - began - self._cost.batch_seconds, 0.0)
        return found

    def wrote(self, deletes: StagedDeletes) -> None:
        """Remember the deletes of the rows that were found last: a commit that has them is the driver's own."""
        index = self._index
        if index is not None and index.snapshot_id == deletes.snapshot_id and index.looked is not None:
            index.made.append((deletes, index.looked))

    def _ready(self, on: Head, keys: BatchKeys) -> _Index | None:
        """Return the index of the head; None if there is none."""
        table, head, account = on.table, on.snapshot_id, on.account
        columns = KeyColumns.of(self._iceberg.schema_json(table), keys.names, on.until)
        try:
            if columns is None:
                if self._index is None:
                    return None
                raise NoIndex("a column of the key was renamed")
            if self._index is not None:
                return self._follow(self._index, table, head, columns, account)
            return self._make(table, head, columns, account)
        except NoIndex as error:
            self.drop(str(error))
        except (Py4JJavaError, PySparkException, OSError, MemoryError, OverflowError, RowsLacking) as error:
            self._cost = self._cost.failed()
            is_of_spark = isinstance(error, Py4JJavaError | PySparkException)
            self.drop(said(error) if is_of_spark else str(error) or type(error).__name__)
        return None

    def drop(self, why: str) -> None:
        """Go on without an index until one pays again."""
        self._index, self._spent = None, 0.0
        self._report("dropped", {"why": why})

    def _make(self, table: Java, head: int, columns: KeyColumns, account: KeyAccount | None) -> _Index | None:
        rows = int(table.snapshot(head).summary().get("total-records") or 0)
        if not self._has_room or self._spent < self._cost.build_seconds(rows):
            return None
        needs, free = round(rows * BYTES * ROOM), shutil.disk_usage(self._folder or tempfile.gettempdir()).free
        if needs > free:
            self._has_room = False
            raise NoIndex(f"{needs >> 20} MiB are needed for temporary files, and {free >> 20} MiB are free")
        began = self._clock()
        places = PlacesOfKeys(self._folder)
        files = tasks(self._iceberg, table, head, None)
        for some in keyed_rows(self._iceberg, table, files, columns, unique_id=self._new_id()):
            places.add(some)
        places.settle(1)
        seconds = self._clock() - began
        self._index = _Index(str(table.uuid()), columns.identity, head, places)
        self._count(self._index, account, are_counted=False)
        self._spent, self._cost = 0.0, self._cost.learned(rows, seconds)
        self._report("built", {"rows": places.rows, "seconds": round(seconds, 3), "bytes": places.bytes})
        return self._index

    def _follow(self, index: _Index, table: Java, head: int, columns: KeyColumns, account: KeyAccount | None) -> _Index:
        """Bring the index to the head. Raises `NoIndex` if it cannot follow."""
        if index.table_uuid != str(table.uuid()):
            raise NoIndex("the table was replaced")
        if index.identity != columns.identity:
            raise NoIndex("the columns of the key changed, or an operator decided that keys moved")
        if index.snapshot_id == head:
            return index
        commits = commits_between(self._iceberg, table, index.snapshot_id, head)
        if commits is None:
            raise NoIndex("the table's head does not follow the snapshot of the index")
        found = follow(commits, frozenset(index.places.paths), [deletes for deletes, _ in index.made])
        if isinstance(found, str):
            raise NoIndex(found)
        self._index = None  # until it has done all
        if found.deleted is not None:
            index.places.delete(next(places for deletes, places in index.made if deletes is found.deleted))
        index.places.forget(found.gone)
        files = tasks(self._iceberg, table, head, found.new) if found.new else {}
        if len(files) != len(found.new):
            raise NoIndex("a data file is not in the table")
        for some in keyed_rows(self._iceberg, table, files, columns, unique_id=self._new_id()):
            index.places.add(some)
        index.places.settle()
        index.snapshot_id, index.looked, index.made = head, None, []
        self._count(index, account, are_counted=found.are_counted)
        self._index = index
        return index

    def _count(self, index: _Index, account: KeyAccount | None, *, are_counted: bool) -> None:
        """Raise `NoIndex` if the index has other rows than the table's account, which knows all that changed."""
        uncounted = index.places.rows - account.rows if account is not None else None
        if are_counted and None not in (uncounted, index.uncounted) and uncounted != index.uncounted:
            raise NoIndex(f"the index has {index.places.rows} rows, and the table's account says otherwise")
        index.uncounted = uncounted


def _found(index: _Index, keys: pa.Table) -> Found:
    import pyarrow as pa

    high, low = (keys[name].to_numpy().view("u8") for name in (HASH, SECOND_HASH))
    places = index.looked = index.places.look(high, low)
    is_delete, hashes, partition = (keys[name].to_numpy()[places.key] for name in (IS_DELETE, HASH, PARTITION))
    return grouped(
        pa.table(
            {
                FILE: pa.array(places.path, pa.string()),
                POSITION: places.position,
                IS_DELETE: is_delete,
                HASH: hashes,
                MOVED: (places.partition != NOWHERE) & (places.partition != partition),
            }
        )
    )
