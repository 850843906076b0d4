"""The batches whose dead letters an operator's decision removes: those that the table no longer holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters import of_batches as letters
from frazil.lake.commit.dead_letters.side_state import SideState
from frazil.lake.commit.dead_letters.side_table import Look, side_lineage
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, items
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entries_of, of
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import ancestors, lineage
from frazil.lake.ledger.next_offsets import Offsets
from frazil.recovery.decisions import Accepted


def head_again(last: Entry) -> str:
    """Return the one way out for a table that can neither be landed again nor be left as it is."""
    return f"Set the head to snapshot {last.snapshot_id} again"


def head_or_hold(pipeline: Pipeline, last: Entry) -> str:
    """Return the ways out for a table that was rolled back; `last` is its newest entry."""
    return (
        f"{head_again(last)}, or "
        f"`frazil accept {pipeline.name} rolled-back-hold --reason …` keeps the tables as they are"
    )


def restored(pipeline: Pipeline) -> str:
    """Return the ways out for a table that was set back to before commits of its dead-letter table."""
    table = pipeline.table
    return (
        f"Restore {table.dead_letters} and {table.identifier} to the same moment, or rename the former and "
        f"`frazil accept {pipeline.name} side-table-replaced --reason …`"
    )


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches whose dead letters an operator's decision removes.

    `are_exact` says that each is of an undone commit; else they were found by their offsets, or not all were found. `gave_up` says
    that decisions which gave records up are undone with them: the account before these expects their dead letters again.
    `offsets_lost` are partition, first and next offset of what undone decisions said that retention took, the oldest first.
    """

    batches: list[dict[str, Any]]
    are_exact: bool
    gave_up: bool
    offsets_lost: tuple[tuple[int, int, int], ...] = ()


def undone(pipeline: Pipeline, job: JobContext, found: Look, head: Entry, *, exact: bool) -> Batches:
    """Return the batches with dead letters between the table's newest entry and the entry of its `head`, after a rollback.

    They are not exact if their snapshots are not kept; with `exact` that raises `InvalidInput`. Nor are they if an earlier
    rollback among them was held: the commits that it undid are in no history of the table any more.
    """
    main, last = found.main, found.last
    assert last is not None
    assert last.end is not None
    assert head.end is not None
    current = main.currentSnapshot()
    head_id = int(current.snapshotId()) if current is not None else None
    kept = {int(s.snapshotId()) for s in lineage(job.iceberg, main, head_id)} if head_id is not None else set()
    reached, entries = False, list[Entry]()
    for snapshot in lineage(job.iceberg, main, last.snapshot_id):
        reached = int(snapshot.snapshotId()) in kept
        if reached:
            break
        entries.append(of(snapshot))
    entries = [entry for entry in entries if entry.summary.get(ledger.PIPELINE) == pipeline.name]
    events, gave_up = {entry.event for entry in entries}, any(map(_gave_up, entries))
    is_hold, is_replay = Accepted.ROLLED_BACK_HOLD in events, Accepted.ROLLED_BACK_REPLAY in events
    commits = [entry for entry in entries if entry.side is not None and entry.event is None and not entry.is_replay]
    gone = tuple(lost for entry in reversed(entries) for lost in _offsets_lost(entry))
    if not reached and exact and (is_replay or not is_hold):
        raise InvalidInput(
            "snapshots between the table's head and its last commit have expired, so it is not known which dead letters "
            "are theirs",
            where=f"table {pipeline.table.identifier}",
            do=head_or_hold(pipeline, last),
        )
    if is_hold or not reached:
        # A replay removed the dead letters of the commits before it: if those are in the head's history, the account expects them.
        gave_up = gave_up or (is_replay and not reached)
        return Batches(behind(pipeline, job, found, head.end), are_exact=False, gave_up=gave_up, offsets_lost=gone)
    batches = [letters.batch_of(commit) for commit in commits]
    is_unnamed = _are_unnamed(pipeline, job, found, commits, batches)
    return Batches(batches, are_exact=not is_unnamed, gave_up=gave_up or is_unnamed, offsets_lost=gone)


def _are_unnamed(
    pipeline: Pipeline, job: JobContext, found: Look, commits: Sequence[Entry], batches: Sequence[Mapping[str, Any]]
) -> bool:
    """Return whether dead letters of these commits do not say their batch any more: a column was dropped and added again."""
    if found.side is None or found.state is not SideState.FINISHED:
        return False
    made = sum(sum(entry.counts.rejected.values()) for entry in commits if entry.counts is not None)
    there = job.spark.table(f"{job.iceberg.name}.{pipeline.table.dead_letters}")
    if made == 0 or sum(letters.counted(there, batches).values()) >= made:
        return False
    return not there.where("run IS NULL OR rejected_at IS NULL").isEmpty()


def _offsets_lost(entry: Entry) -> list[tuple[int, int, int]]:
    """Return what a decision says that retention took: partition, first and next offset."""
    if entry.event != Accepted.OFFSETS_LOST or entry.start is None or entry.end is None or entry.counts is None:
        return []
    return [(p, entry.start.at.get(p, 0), entry.end.at[p]) for p in entry.counts.gaps if p in entry.end.at]


def check_was_not_replayed(pipeline: Pipeline, iceberg: Iceberg, found: Look, head: Entry) -> None:
    """Raise `InvalidInput` if the table's `head` has commits that were undone and landed again since.

    That replay removed their dead letters, and those of the commits that landed the records again may be other ones. It counts
    also if it was undone itself.
    """
    main, last = found.main, found.last
    assert last is not None
    history = list(lineage(iceberg, main, int(main.currentSnapshot().snapshotId())))  # the newest first
    number = {int(snapshot.snapshotId()): n for n, snapshot in enumerate(history)}
    every = {int(s.snapshotId()): s for s in chain(items(main.snapshots()), lineage(iceberg, main, last.snapshot_id))}
    for snapshot_id, replay in every.items():
        if snapshot_id in number or event_of(replay, pipeline.name) != Accepted.ROLLED_BACK_REPLAY:
            continue
        fork = next(
            (n for s in lineage(iceberg, main, snapshot_id) if (n := number.get(int(s.snapshotId()))) is not None), 0
        )
        before = [s for s in history[:fork] if int(s.sequenceNumber()) < int(replay.sequenceNumber())]
        if any(s.summary().get(ledger.PIPELINE) == pipeline.name and of(s).end is not None for s in before):
            raise InvalidInput(
                "the table's head has commits that were undone and landed again since: their dead letters were removed",
                where=f"table {pipeline.table.identifier}, snapshot {head.snapshot_id}",
                do=head_again(last),
            )


def event_of(snapshot: Java, pipeline: str) -> str | None:
    """Return the decision of a pipeline's operator that a snapshot records; None if it records none."""
    summary = snapshot.summary()
    is_decision = summary.get(ledger.EVENTS) is not None and summary.get(ledger.PIPELINE) == pipeline
    return of(snapshot).event if is_decision else None


def behind(pipeline: Pipeline, job: JobContext, found: Look, held: Offsets) -> list[dict[str, Any]]:
    """Return the batches that have dead letters now from the offsets `held` on."""
    if found.side is None:
        return []
    return letters.batches_behind(job.spark.table(f"{job.iceberg.name}.{pipeline.table.dead_letters}"), held)


def undecided(job: JobContext, found: Look, pipeline: str) -> Batches | None:
    """Return the batches that the dead-letter table has and the table, which was set back, has not.

    None if commits between those that both have and the newest one were expired.
    """
    last, batches, oldest, gave_up = found.last, list[dict[str, Any]](), found.newest, False
    assert last is not None
    for entry in side_lineage(found.side, found.newest, pipeline):
        if not is_later(entry, last):
            break
        oldest = entry
        # A decision may also have removed dead letters that are expected again.
        gave_up = gave_up or ledger.EVENTS in entry.summary
        if ledger.UPKEEP not in entry.summary and not entry.is_replay:
            batches += letters.batches_added(job.iceberg, found.side, entry, new_id=job.new_id)
    else:
        # Whether the oldest entry that is kept was the first of all is known from the table's first snapshot only.
        if oldest is not None and not _begins_with(found.side, oldest):
            return None
    # An operator's decision may have appended what a batch had decided that the table still has.
    kept = {(one.run, letters.staged_us(one)) for one in entries_of(found.main, pipeline, last.snapshot_id)}
    own = [batch for batch in batches if (batch["run"], batch["staged_us"]) not in kept]
    return Batches(own, are_exact=True, gave_up=gave_up)


def _gave_up(entry: Entry) -> bool:
    """Return whether an operator's decision gave up records."""
    counts = entry.counts
    return entry.event is not None and counts is not None and any(n > 0 for n in counts.gaps.values())


def is_later(entry: Entry, last: Entry) -> bool:
    """Return whether an entry of the dead-letter table is of a later decision than the table's newest one."""
    return entry.number > last.number


def _begins_with(side: Any, oldest: Entry) -> bool:
    """Return whether every snapshot before this entry's is kept, so that none of them had an entry.

    The first is known by its sequence number: some tools erase the id of a parent that they expire.
    """
    *_, first = ancestors(side, oldest.snapshot_id)
    return int(first.sequenceNumber()) <= 1
