"""A table that was set back to before the topic was re-created, or its log truncated: what it lost is of two logs."""

from __future__ import annotations

from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.lake.commit.entries import of
from frazil.lake.commit.side_table import Look, side_lineage
from frazil.lake.ledger import PIPELINE, Entry
from frazil.lake.lineage import ancestors
from frazil.lake.totals import Closed
from frazil.recovery.decisions import Accepted
from frazil.recovery.undone_batches import is_later
from frazil.recovery.ways_out import restored

_ENDS_OF_LOGS = (Accepted.TOPIC_RECREATED, Accepted.LOG_TRUNCATED, Accepted.LOG_TRUNCATED_REPLAY)


def check_is_one_log(pipeline: Pipeline, found: Look, head: Entry) -> None:
    """Raise `InvalidInput` if the offsets of the table's `head` and those of its ledger are of two logs.

    Then their difference is no number of records. Records of the earlier log cannot be landed again, so their dead letters must
    stay.
    """
    last = found.last
    assert last is not None
    if is_one_log(head, last):
        return
    first = last  # the earliest commit of the later log that the table still has: the head can be set to it
    for snapshot in ancestors(found.main, last.snapshot_id):
        entry = of(snapshot)
        if entry.summary.get(PIPELINE) != pipeline.name:
            continue
        if not is_one_log(entry, last):
            break
        first = entry
    other = f", or to snapshot {first.snapshot_id} and accept again" if first is not last else ""
    raise InvalidInput(
        "the topic was re-created or truncated since the table's head, so the undone commits have offsets of two logs",
        where=f"table {pipeline.table.identifier}",
        do=f"Set the head to snapshot {last.snapshot_id} again{other}",
    )


def check_was_one_log(pipeline: Pipeline, found: Look) -> None:
    """Raise `InvalidInput` if the table was set back to before its log ended, and the dead-letter table has decisions since.

    A replay would remove the dead letters of these decisions, and records of the earlier log cannot be landed again.
    """
    last = found.last
    assert last is not None
    table = pipeline.table
    for entry in side_lineage(found.side, found.newest, pipeline.name):
        if not is_later(entry, last):
            return
        if _is_of_another_topic(last, entry) or entry.event in _ENDS_OF_LOGS:
            raise InvalidInput(
                "the table was set back to before the topic was re-created or truncated: dead letters since are of two logs",
                where=f"table {table.dead_letters}",
                do=restored(pipeline),
            )


def is_one_log(earlier: Entry, later: Entry) -> bool:
    """Return whether no log ended between two commits: the same topic, no offset went back, no account was closed."""
    if earlier.end is None or later.end is None:
        return False
    return later.end.reaches(earlier.end) and _closed(earlier) == _closed(later)


def _closed(entry: Entry) -> tuple[Closed, ...]:
    return entry.totals.closed if entry.totals is not None else ()


def _is_of_another_topic(last: Entry, entry: Entry) -> bool:
    return last.end is not None and entry.end is not None and entry.end.topic_id != last.end.topic_id
