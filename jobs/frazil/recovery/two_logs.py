"""A table that was set back to before the topic was re-created, or its log truncated: what it lost is of two logs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, takewhile

from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.lake.commit.dead_letters.side_state import SideState
from frazil.lake.commit.dead_letters.side_table import Look, side_lineage
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import items
from frazil.lake.ledger.entries import of
from frazil.lake.ledger.entry import PIPELINE, TABLE, Entry
from frazil.lake.ledger.lineage import ancestors, lineage
from frazil.recovery.decisions import ENDS_OF_LOGS
from frazil.recovery.undone_batches import event_of, is_later, restored


def check_is_one_log(pipeline: Pipeline, iceberg: Iceberg, found: Look, head: Entry) -> None:
    """Raise `InvalidInput` if the offsets of the table's `head` and those of its ledger are of two logs.

    Then their difference is no number of records. Records of the earlier log cannot be landed again, so their dead letters must
    stay.
    """
    last = found.last
    assert last is not None
    number = max((entry.number for entry in _delivered_ends(found, pipeline, head)), default=None)
    sequence = _last_end(pipeline, iceberg, found, head)
    if is_one_log(head, last) and number is sequence is None:
        return
    first = last  # the earliest commit of the later log that the table still has: the head can be set to it
    for snapshot in ancestors(found.main, last.snapshot_id):
        entry = of(snapshot)
        if entry.summary.get(PIPELINE) != pipeline.name:
            continue
        is_before = int(snapshot.sequenceNumber()) < (sequence or 0) or entry.number < (number or 0)
        if is_before or not is_one_log(entry, last):
            break
        first = entry
    other = f", or to snapshot {first.snapshot_id} and accept again" if first is not last else ""
    raise InvalidInput(
        "the topic was re-created or truncated since the table's head, so the undone commits have offsets of two logs",
        where=f"table {pipeline.table.identifier}",
        do=f"Set the head to snapshot {last.snapshot_id} again{other}",
    )


def check_is_one_topic(pipeline: Pipeline, last: Entry) -> None:
    """Raise `InvalidInput` if the table has rows of another topic, too: what is counted by partition may be of either."""
    now = {last.end.topic} if last.end is not None else set[str]()
    if before := {one.topic for one in (last.totals.closed if last.totals is not None else ())} - now:
        raise InvalidInput(
            f"the table has records of topic {', '.join(sorted(before))}, too: of which topic records are missing is not known",
            where=f"table {pipeline.table.identifier}",
            do="Land the topic into a new table",
        )


def check_was_one_log(pipeline: Pipeline, found: Look) -> None:
    """Raise `InvalidInput` if the table was set back to before its log ended, and the dead-letter table has decisions since.

    A replay would remove the dead letters of these decisions, and records of the earlier log cannot be landed again.
    """
    last = found.last
    assert last is not None
    table = pipeline.table
    topics = {entry.end.topic_id for entry in (last, *_delivered_since(found, pipeline, last)) if entry.end is not None}
    if len(topics) > 1 or any(_delivered_ends(found, pipeline, last)):
        raise InvalidInput(
            "the table was set back to before the topic was re-created or truncated: dead letters since are of two logs",
            where=f"table {table.dead_letters}",
            do=restored(pipeline),
        )


def is_one_log(earlier: Entry, later: Entry) -> bool:
    """Return whether offsets and account show no end of a log between two commits: no offset went back, no account was closed.

    A log that was truncated and has grown past the later commit shows neither.
    """
    if earlier.end is None or later.end is None:
        return False
    before, after = (entry.totals.closed if entry.totals is not None else () for entry in (earlier, later))
    return later.end.reaches(earlier.end) and before == after


def _last_end(pipeline: Pipeline, iceberg: Iceberg, found: Look, head: Entry) -> int | None:
    """Return the sequence number of the table's last commit after the `head` by which its log ended; None if there is none.

    A commit that was undone counts too, as long as the table, or older metadata that it lists, has it.
    """
    main, last = found.main, found.last
    assert last is not None
    current, kept, since = main.currentSnapshot(), set[int](), -1
    for snapshot in lineage(iceberg, main, int(current.snapshotId())) if current is not None else ():
        kept.add(int(snapshot.snapshotId()))
        if int(snapshot.snapshotId()) == head.snapshot_id:
            since = int(snapshot.sequenceNumber())
            break
    undone = takewhile(lambda s: int(s.snapshotId()) not in kept, lineage(iceberg, main, last.snapshot_id))
    later = (s for s in chain(items(main.snapshots()), undone) if int(s.sequenceNumber()) > since)
    return max((int(s.sequenceNumber()) for s in later if event_of(s, pipeline.name) in ENDS_OF_LOGS), default=None)


def _delivered_ends(found: Look, pipeline: Pipeline, since: Entry) -> Iterator[Entry]:
    """Yield the decisions by which the log ended, of the dead-letter table and later than a table's entry `since`.

    Those that a rollback of the dead-letter table undid are among them.
    """
    yield from (entry for entry in _delivered_since(found, pipeline, since) if entry.event in ENDS_OF_LOGS)
    if found.side is None:
        return
    for snapshot in items(found.side.snapshots()):
        is_of = snapshot.summary().get(TABLE) == str(found.main.uuid())
        if is_of and event_of(snapshot, pipeline.name) in ENDS_OF_LOGS and is_later(entry := of(snapshot), since):
            yield entry


def _delivered_since(found: Look, pipeline: Pipeline, since: Entry) -> Iterator[Entry]:
    """Yield the dead-letter table's entries of later decisions than that of a table's entry `since`, newest first."""
    if found.state is SideState.MISMATCH:
        return  # it is of another table
    for entry in side_lineage(found.side, found.newest, pipeline.name):
        if not is_later(entry, since):
            return
        yield entry
