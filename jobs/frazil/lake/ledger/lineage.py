"""Walk a table's history backwards, also across snapshots that were expired.

Expiry removes snapshots from the table's metadata. Older metadata files still name them, with their parents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entry import Entry


def ancestors(table: Java, snapshot_id: int) -> Iterator[Java]:
    """Yield a snapshot and its ancestors, newest first, as far as the table still has them."""
    snapshot = table.snapshot(snapshot_id)
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None


def lineage(iceberg: Iceberg, table: Java, snapshot_id: int) -> Iterator[Java]:
    """Yield a snapshot and its ancestors, newest first.

    A parent that was expired is read from the older metadata files that the table lists (20 by default), newest file first.
    The walk ends at a snapshot without a parent, or where no file that still exists names the parent.
    """
    known, older = [table.operations().current()], _older(iceberg, table)
    snapshot = table.snapshot(snapshot_id)
    while snapshot is not None:
        yield snapshot
        child, snapshot = snapshot, _parent(snapshot, known)
        while snapshot is None and (metadata := next(older, None)) is not None:
            known.append(metadata)
            snapshot = _parent(child, known)


def _parent(child: Java, known: Sequence[Java]) -> Java | None:
    """Return the parent. Some tools erase its id in the child when they expire it; older files still have it."""
    found = (s.parentId() for m in known if (s := m.snapshot(child.snapshotId())) is not None)
    parent = next((i for i in found if i is not None), None)
    return next((s for m in known if (s := m.snapshot(parent)) is not None), None) if parent is not None else None


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


def _older(iceberg: Iceberg, table: Java) -> Iterator[Java]:
    """Yield the older metadata that the table lists, newest first, as far as the files exist."""
    io = table.io()
    for log in reversed(iceberg.metadata(table).get("metadata-log", ())):
        if not io.newInputFile(log["metadata-file"]).exists():
            return
        yield iceberg.older_metadata(table, log["metadata-file"])
