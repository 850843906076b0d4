"""Decisions: the dead letters that a commit decided, and whether they are in their table yet."""

from __future__ import annotations

import json
from collections.abc import Sequence

from frazil.lake.data_files import DataFile, named_file
from frazil.lake.ledger import Entry
from frazil.lake.reader import Snapshot, StoredTable


def open_decision(commits: Sequence[Snapshot], side: StoredTable | None, pipeline: str) -> Entry | None:
    """The newest commit whose decision the side table has not finished; None if all is done.

    One at most can be open: a driver finishes what it finds open before it goes on.
    """
    decided = next((commit.entry for commit in commits if commit.entry.side is not None), None)
    if decided is None or decided.end is None:
        return None
    done = side.commits(pipeline) if side is not None else ()
    reached = (commit.entry for commit in done)
    if any(e.commit_id == decided.commit_id or (e.end is not None and e.end.reaches(decided.end)) for e in reached):
        return None
    return decided


def decided_files(table: StoredTable, location: str, side_table: str) -> tuple[DataFile, ...] | None:
    """The data files that a decision names for a side table; None if the file that names them is gone."""
    try:
        document = json.loads(table.read_text(location))
    except FileNotFoundError:
        return None
    return tuple(
        named_file(
            file["file-path"],
            file["file-format"],
            rows=file["record-count"],
            size=file["file-size-in-bytes"],
            spec_id=file["spec-id"],
        )
        for side in document["tables"]
        if side["table"] == side_table
        for file in side["files"]
    )


def ahead(side: StoredTable | None, decisions: Sequence[Snapshot], pipeline: str) -> Snapshot | None:
    """Return the side table's newest commit if the first table, with these commits, has not come as far."""
    newest = next(iter(side.commits(pipeline)), None) if side is not None else None
    end = decisions[0].entry.end if decisions else None
    there = newest.entry.end if newest is not None else None
    if end is None or there is None or there.topic_id != end.topic_id or end.reaches(there):
        return None
    return newest


def as_of(side: StoredTable, decisions: Sequence[Snapshot], pipeline: str) -> Snapshot | None:
    """The newest snapshot of a side table that finishes nothing beyond `decisions`, the commits of the first table.

    The side table is loaded after the first, so a driver at work may have added to it meanwhile.
    """
    end = decisions[0].entry.end if decisions else None
    chosen = side.head
    for snapshot in side.ancestors(side.head):
        if not snapshot.belongs_to(pipeline):
            continue
        there = snapshot.entry.end
        if end is None or there is None or there.topic_id != end.topic_id or end.reaches(there):
            break
        chosen = side.snapshots.get(snapshot.parent_id) if snapshot.parent_id is not None else None
    return chosen
