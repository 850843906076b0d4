"""The batches whose dead letters an operator's decision removes: those that the table no longer holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.job.context import JobContext
from frazil.lake import ledger, letters
from frazil.lake.commit.append import STAGED_AT_MOST_SECONDS
from frazil.lake.commit.entries import of
from frazil.lake.commit.side_state import is_ahead
from frazil.lake.commit.side_table import Look, side_lineage
from frazil.lake.ledger import Entry
from frazil.lake.lineage import lineage
from frazil.recovery.decisions import Accepted

STAGED_AT_MOST_MS = round(STAGED_AT_MOST_SECONDS * 1000)


def undone(
    pipeline: Pipeline, job: JobContext, found: Look, head: Entry, *, exact: bool
) -> tuple[list[dict[str, Any]], bool]:
    """Return the batches with dead letters between the table's newest entry and the entry of its `head`, after a rollback, and
    whether each is of one commit.

    If their snapshots are not kept, all dead letters of these offsets that were staged since are one batch. That is not exact:
    with `exact` it raises `InvalidInput`. If an earlier rollback among them was held, all dead letters of these offsets are one
    batch: the commits that it undid are in no history of the table any more.
    """
    main, last, commits = found.main, found.last, list[Entry]()
    assert last is not None
    assert last.end is not None
    assert head.end is not None
    current = main.currentSnapshot()
    head_id = int(current.snapshotId()) if current is not None else None
    kept = {int(s.snapshotId()) for s in lineage(job.iceberg, main, head_id)} if head_id is not None else set()
    reached = is_hold = False
    for snapshot in lineage(job.iceberg, main, last.snapshot_id):
        reached = int(snapshot.snapshotId()) in kept
        if reached:
            break
        entry = of(snapshot)
        if entry.summary.get(ledger.PIPELINE) != pipeline.name:
            continue
        is_hold = is_hold or entry.event == Accepted.ROLLED_BACK_HOLD
        if entry.side is not None and entry.event is None:
            commits.append(entry)
    if is_hold:
        return [letters.batch_behind(head.end, last.end)], False
    since_ms = head.at_ms - STAGED_AT_MOST_MS
    if not reached and not exact:
        return [letters.batch_by_time(replace(last, start=head.end), run=None, since_ms=since_ms)], False
    if not reached:
        raise InvalidInput(
            "snapshots between the table's head and its last commit have expired, so it is not known which dead letters "
            "are theirs",
            where=f"table {pipeline.table.identifier}",
            do=f"Set the head to snapshot {last.snapshot_id} again, or "
            f"`frazil accept {pipeline.name} rolled-back-hold --reason …` keeps the table as it is",
        )
    deliveries = list(side_lineage(found.side, found.newest, pipeline.name))
    return letters.batches_of(job.iceberg, found.side, commits, deliveries, since_ms=since_ms, new_id=job.new_id), True


def undecided(job: JobContext, found: Look, pipeline: str) -> list[dict[str, Any]] | None:
    """Return the batches that the dead-letter table has and the table, which was set back, has not.

    None if commits between those that both have and the newest one were expired.
    """
    last, batches, oldest = found.last, list[dict[str, Any]](), found.newest
    assert last is not None
    for entry in side_lineage(found.side, found.newest, pipeline):
        if not is_later(entry, last):
            return batches
        oldest = entry
        if ledger.EVENTS not in entry.summary and ledger.UPKEEP not in entry.summary:
            batches += letters.batches_added(job.iceberg, found.side, entry, new_id=job.new_id)
    # The oldest entry that is kept: whether it was the first of all is known from the table's first snapshot only.
    return batches if oldest is None or _begins_with(found.side, oldest) else None


def is_later(entry: Entry, last: Entry) -> bool:
    """Return whether an entry of the dead-letter table is of a later decision than the table's newest one."""
    if last.number is not None and entry.number is not None:
        return entry.number > last.number
    return is_ahead(entry.end, last.end)


def _begins_with(side: Any, oldest: Entry) -> bool:
    """Return whether every snapshot before this entry's is kept, so that none of them had an entry."""
    snapshot = side.snapshot(oldest.snapshot_id)
    while snapshot is not None and snapshot.parentId() is not None:
        parent = side.snapshot(snapshot.parentId())
        if parent is None:
            return False
        snapshot = parent
    return snapshot is not None
