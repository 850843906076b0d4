"""A pipeline's ledger entries, read from the snapshots of a loaded table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java, entries, items
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger import last_records
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import ancestors, lineage


def entry_of_head(iceberg: Iceberg, table: Java, pipeline: str) -> Entry | None:
    """Return the newest ledger entry of a pipeline among the table's head and its ancestors, expired ones too."""
    head = table.currentSnapshot()
    return entry_behind(iceberg, table, pipeline, head.snapshotId()) if head is not None else None


def entry_behind(iceberg: Iceberg, table: Java, pipeline: str, snapshot_id: int) -> Entry | None:
    """Return the newest ledger entry of a pipeline among a snapshot and its ancestors, expired ones too."""
    return next((e for s in lineage(iceberg, table, snapshot_id) if (e := _of(s, pipeline)) is not None), None)


def has_records(table: Java, pipeline: str) -> bool:
    """Return whether a table has had records of a pipeline: an upsert table may have no row left of them."""
    newest, head = entry(table, pipeline), table.currentSnapshot()
    if newest is not None and newest.keys is not None:
        return newest.keys.records > 0
    return head is not None and int(head.summary().get("total-records") or 0) > 0


def entries_of(table: Java, pipeline: str, snapshot_id: int) -> Iterator[Entry]:
    """Yield a pipeline's ledger entries of a snapshot and its ancestors, newest first, as far as they are kept."""
    for snapshot in ancestors(table, snapshot_id):
        if (found := _of(snapshot, pipeline)) is not None:
            yield found


def entry(table: Java, pipeline: str) -> Entry | None:
    """Return a pipeline's newest ledger entry, with its last records; every reader and every commit goes by this one.

    It is the one that the pipeline's tag marks. If a later one descends from it, the tag was moved and that one counts. If the
    table has no such tag, or it marks another writer's snapshot, it is the newest one of all snapshots, also of those that are not
    in the head's history. None if no snapshot has offsets of the pipeline.
    """
    found = _newest(table, pipeline)
    if found is None or found.end is None:
        return found
    known = table.properties().get(last_records.property_name(pipeline))
    last = last_records.LastRecords.parse(known, found.end.topic_id).before(found.end.at)
    value = table.properties().get(last_records.caught_up_name(pipeline))
    caught_up = last_records.CaughtUp.parse(value, found.end.topic_id, str(found.end))
    if caught_up is None and found.keys is not None and found.keys.records:
        # The rows are of another topic: deletes of their keys may be gone from this one.
        caught_up = last_records.NOT_KNOWN
    return replace(found, end=replace(found.end, last=replace(last, caught_up=caught_up)))


def _newest(table: Java, pipeline: str) -> Entry | None:
    ref, head = table.refs().get(ledger.tag(pipeline)), table.currentSnapshot()
    tagged = _of(table.snapshot(ref.snapshotId()), pipeline) if ref is not None else None
    if tagged is None:
        found = [(int(s.sequenceNumber()), e) for s in items(table.snapshots()) if (e := _of(s, pipeline)) is not None]
        return max(found, key=lambda pair: pair[0])[1] if found else None
    later: Entry | None = None
    for snapshot in ancestors(table, head.snapshotId()) if head is not None else ():
        if snapshot.snapshotId() == tagged.snapshot_id:
            return later or tagged
        later = later or _of(snapshot, pipeline)
    return tagged


def of(snapshot: Java) -> Entry:
    """Return a snapshot's summary as an entry, whoever made it."""
    return Entry.of(int(snapshot.snapshotId()), entries(snapshot.summary()), int(snapshot.timestampMillis()))


def _of(snapshot: Java, pipeline: str) -> Entry | None:
    found = of(snapshot)
    return found if found.end is not None and found.summary.get(ledger.PIPELINE) == pipeline else None
