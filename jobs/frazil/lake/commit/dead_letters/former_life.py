"""Decide about the dead letters of a table that was dropped, when its pipeline begins with a new one."""

from __future__ import annotations

from pyspark.sql import functions as F

from frazil.errors import DeadLetterTableMismatch
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry, of
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import ancestors
from frazil.lake.ledger.offsets import Offsets


def must_clear(iceberg: Iceberg, pipeline: str, side_table: str, begin: Offsets, *, compacted: bool) -> bool:
    """Return whether a new table that begins at `begin` must first empty its dead-letter table; False if that is new too.

    The dead letters may go only if all their records are landed again: they are of the same topic, none is before `begin`, and
    the topic is not `compacted` and has had one life as long as the dead-letter table exists. Raises `DeadLetterTableMismatch` if
    that is not so, or no longer known; no dead letter is removed that could be the only copy of a record.
    """
    side = iceberg.load(side_table)
    newest = entry(side, pipeline)
    if side.currentSnapshot() is None:
        return False
    letters = iceberg.spark.table(f"{iceberg.name}.{side_table}")
    ends = letters.groupBy("topic", "partition").agg(F.min("offset").alias("first"), F.max("offset").alias("last"))
    places = [(row["topic"], row["partition"], row["first"], row["last"]) for row in ends.collect()]
    if not places:
        return newest is not None
    committed = newest.end.at if newest is not None and newest.end is not None else {}
    are_again = all(
        t == begin.topic and begin.at.get(p, first + 1) <= first and last < committed.get(p, 0)
        for t, p, first, last in places
    )
    is_same = newest is not None and newest.end is not None and newest.end.topic_id == begin.topic_id
    if not compacted and is_same and are_again and newest is not None and _is_one_life(side, newest):
        return True
    raise DeadLetterTableMismatch.of_earlier_table(pipeline, side_table)


def _is_one_life(side: Java, newest: Entry) -> bool:
    """Return whether the topic was never re-created or truncated since the dead-letter table's first commit, or it was emptied."""
    oldest = 0
    for snapshot in ancestors(side, newest.snapshot_id):
        found, oldest = of(snapshot), int(snapshot.sequenceNumber())
        if found.end is None:
            continue
        if ledger.EVENTS in found.summary or found.end.topic_id != (newest.end.topic_id if newest.end else None):
            return False
        if found.number == 1 and found.start is not None and found.start.same_as(found.end):
            return True
    return oldest == 1
