"""Walk a table's history backwards, also across snapshots that were expired.

Expiry removes snapshots from the table's metadata. Older metadata files still name them, with their parents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

from frazil.lake.ledger.entry import Entry

if TYPE_CHECKING:
    from frazil.lake.iceberg_java import Iceberg

Java = Any
S = TypeVar("S")
Find = Callable[[Any], S | None]


def ancestors(table: Java, snapshot_id: int) -> Iterator[Java]:
    """Yield a snapshot and its ancestors, newest first, as far as the table still has them."""
    snapshot = table.snapshot(snapshot_id)
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None


def walk(
    first: S | None, known: list[Find[S]], older: Iterator[Find[S]], id_of: Find[int], parent_of: Find[int]
) -> Iterator[S]:
    """Yield a snapshot and its ancestors, newest first; `known` and `older` metadata find a snapshot by its id.

    A parent that was expired is looked up in `older` metadata, newest first. The walk ends at a snapshot without a parent, or where
    no metadata has the parent. Some tools erase its id in the child when they expire it; older metadata still has it.
    """

    def parent(child: S) -> S | None:
        ids = (parent_of(same) for find in known if (same := find(id_of(child))) is not None)
        number = next((one for one in ids if one is not None), None)
        return next((s for find in known if (s := find(number)) is not None), None) if number is not None else None

    snapshot = first
    while snapshot is not None:
        yield snapshot
        child, snapshot = snapshot, parent(snapshot)
        while snapshot is None and (find := next(older, None)) is not None:
            known.append(find)
            snapshot = parent(child)


def lineage(iceberg: Iceberg, table: Java, snapshot_id: int) -> Iterator[Java]:
    """Yield a snapshot and its ancestors, newest first, also expired ones that older metadata files name (20 by default)."""
    known, older = [table.operations().current().snapshot], _older(iceberg, table)
    yield from walk(table.snapshot(snapshot_id), known, older, methodcaller("snapshotId"), methodcaller("parentId"))


def head_follows(iceberg: Iceberg, table: Java, tagged: Entry | None) -> bool:
    """Return whether main's head is the tagged snapshot or descends from it; True for a table without the tag.

    The answer is True only if the walk back meets the tagged snapshot. If the snapshots in between were expired and no older
    metadata file names them, a rollback cannot be excluded, and the answer is False. Frazil's own maintenance keeps them.
    """
    if tagged is None:
        return True
    head = table.currentSnapshot()
    if head is None:
        return False
    sequence = table.snapshot(tagged.snapshot_id).sequenceNumber()
    for snapshot in lineage(iceberg, table, head.snapshotId()):
        if snapshot.snapshotId() == tagged.snapshot_id:
            return True
        if snapshot.sequenceNumber() <= sequence:
            return False
    return False


def _older(iceberg: Iceberg, table: Java) -> Iterator[Find[Java]]:
    """Yield the older metadata that the table lists, newest first, as far as the files exist."""
    io = table.io()
    for log in reversed(iceberg.metadata(table).get("metadata-log", ())):
        if not io.newInputFile(log["metadata-file"]).exists():
            return
        yield iceberg.older_metadata(table, log["metadata-file"]).snapshot
