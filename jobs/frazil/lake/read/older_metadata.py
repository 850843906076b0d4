"""Read the older metadata files of a table: they still name snapshots that expiry removed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def lineage(table: Table) -> Iterator[Snapshot]:
    """Yield the head and its ancestors, newest first; `lake/ledger/lineage.py` does the same inside Spark.

    A parent that was expired is read from the older metadata files that the table lists, newest file first. The walk ends at
    a snapshot without a parent, or where no file that still exists names the parent. Raises what the table's `FileIO` raises
    if a file exists and cannot be read.
    """
    known, older = [{s.snapshot_id: s for s in table.metadata.snapshots}], _older(table)
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        child, snapshot = snapshot, _parent(snapshot, known)
        while snapshot is None and (found := next(older, None)) is not None:
            known.append(found)
            snapshot = _parent(child, known)


def _parent(child: Snapshot, known: Sequence[Mapping[int, Snapshot]]) -> Snapshot | None:
    """Return the parent. Some tools erase its id in the child when they expire it; older files still have it."""
    ids = (s.parent_snapshot_id for m in known if (s := m.get(child.snapshot_id)) is not None)
    parent = next((i for i in ids if i is not None), None)
    return next((m[parent] for m in known if parent in m), None) if parent is not None else None


def _older(table: Table) -> Iterator[dict[int, Snapshot]]:
    from pyiceberg.serializers import FromInputFile

    for log in reversed(table.metadata.metadata_log):
        file = table.io.new_input(log.metadata_file)
        if not file.exists():
            return
        yield {snapshot.snapshot_id: snapshot for snapshot in FromInputFile.table_metadata(file).snapshots}
