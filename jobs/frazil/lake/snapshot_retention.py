"""The choice of a table's snapshots that may go. Pure: values in, snapshot ids out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from frazil.lake.ledger import entry as ledger

DAY_MS = 86_400_000
MOST_BY_AGE = 10_000
"""The most snapshots that stay by age. Each is about 1 KB of the metadata that every commit writes and every query reads;
with a commit each 10 seconds these are 28 hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """One snapshot, as far as retention asks. `at_ms` is when it was committed, in milliseconds since 1970."""

    id: int
    parent_id: int | None = None
    sequence: int
    at_ms: int
    operation: str = "append"
    summary: Mapping[str, str] = field(default_factory=dict)

    @property
    def removes_files(self) -> bool:
        """Return whether it took data files out of the table: compaction does, and every engine's delete.

        A batch of an upsert table adds files that delete rows, and upkeep merges these: both take out no data file. Delete
        files that they replace are left to the removal of orphans.
        """
        is_ours = ledger.KEYS in self.summary or ledger.UPKEEP in self.summary
        takes_none = is_ours and "deleted-data-files" not in self.summary
        return self.operation != "append" and not takes_none


@dataclass(frozen=True, slots=True)
class History:
    """A table's snapshots, oldest first, and what branches and tags refer to."""

    snapshots: tuple[Past, ...]
    refs: Mapping[str, int]
    head_id: int | None = None

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> History:
        """Read it from a metadata file."""
        found = [
            Past(
                id=snapshot["snapshot-id"],
                parent_id=snapshot.get("parent-snapshot-id"),
                sequence=snapshot.get("sequence-number", 0),
                at_ms=snapshot["timestamp-ms"],
                operation=snapshot.get("summary", {}).get("operation", "append"),
                summary={k: v for k, v in snapshot.get("summary", {}).items() if k != "operation"},
            )
            for snapshot in metadata.get("snapshots", ())
        ]
        head = metadata.get("current-snapshot-id")
        return cls(
            tuple(sorted(found, key=lambda s: s.sequence)),
            {name: ref["snapshot-id"] for name, ref in metadata.get("refs", {}).items()},
            head if head is not None and head >= 0 else None,
        )

    def snapshot(self, snapshot_id: int | None) -> Past | None:
        """Return a snapshot by its id; None if there is none, or no longer."""
        return next((s for s in self.snapshots if s.id == snapshot_id), None)

    @property
    def head(self) -> Past | None:
        """The current snapshot."""
        return self.snapshot(self.head_id)

    @property
    def ledger(self) -> Past | None:
        """The snapshot that holds the ledger: the newest with offsets that a pipeline's tag marks, else the newest with offsets."""
        ids = {i for name, i in self.refs.items() if name.startswith(ledger.tag(""))}
        tagged = [s for s in self.snapshots if s.id in ids]
        found = [s for s in self.snapshots if ledger.END in s.summary]
        marked = [s for s in tagged if s in found] or found or tagged
        return max(marked, key=lambda s: s.sequence, default=None)

    def lineage(self) -> set[int]:
        """Return the head and its ancestors, as far as the table still has them."""
        by_id, found = {s.id: s for s in self.snapshots}, set()
        snapshot = by_id.get(self.head_id) if self.head_id is not None else None
        while snapshot is not None and snapshot.id not in found:
            found.add(snapshot.id)
            snapshot = by_id.get(snapshot.parent_id) if snapshot.parent_id is not None else None
        return found


def expirable(
    history: History,
    *,
    keep: int,
    since_ms: int,
    disregard: Iterable[str] = (),
    with_data: bool,
) -> tuple[int, ...]:
    """Return the ids of the snapshots that may go, oldest first.

    The newest `keep` stay. Of those that were committed at `since_ms` or later, the newest `MOST_BY_AGE` stay. What a branch or a
    tag refers to stays, unless it is one of the tags to `disregard`. The ledger's snapshot and all newer ones stay: their parents
    prove that the table was not rolled back. While the head does not descend from the ledger's snapshot, nothing may go. Both
    rules are off if a tag is disregarded.

    `with_data` says that the caller also deletes the data files that only these snapshots refer to. Without it, a snapshot
    that removed files, the one before it, and what is not in the head's lineage stay too: only they still say which data
    files can be deleted one day.
    """
    disregarded, lineage = set(disregard), history.lineage()
    held = None if disregarded else history.ledger
    if held is not None and held.id not in lineage:
        return ()
    referred = {snapshot_id for name, snapshot_id in history.refs.items() if name not in disregarded}
    older = history.snapshots[: max(0, len(history.snapshots) - keep)]
    crowded = {s.id for s in history.snapshots[:-MOST_BY_AGE]}
    going = [s for s in older if s.id not in referred and (s.at_ms < since_ms or s.id in crowded)]
    going = [s for s in going if s.id != history.head_id]
    if held is not None:
        going = [s for s in going if s.sequence < held.sequence]
    if with_data:
        return tuple(s.id for s in going)
    tellers = {i for s in history.snapshots if s.removes_files for i in (s.id, s.parent_id)}
    return tuple(s.id for s in going if s.id in lineage and s.id not in tellers)


def since(now_ms: int, keep_days: int | None, *, grace_ms: int = 0) -> int:
    """Return the moment since which no snapshot goes: declared days ago, or `grace_ms` if nothing or less is declared."""
    return now_ms - max(grace_ms, (keep_days or 0) * DAY_MS)
