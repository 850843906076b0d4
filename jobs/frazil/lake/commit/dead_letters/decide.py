"""Several tables, one decision: the first table's commit decides for the side tables too, and whoever comes next finishes.

What is to be done at the side tables is written as JSON to a small file in the first table's metadata folder, and the first
table's commit names that file (`frazil.side`) and numbers it. A side table's own summary carries the number of the decision
that it has finished. Nothing is decoded twice, so a crash or a new release in between changes no verdict.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F

from frazil.errors import CatalogUnavailable, DeadLetterTableMismatch
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.dead_letters import side_table
from frazil.lake.commit.dead_letters.side_state import SideState
from frazil.lake.commit.dead_letters.side_table import Look, look
from frazil.lake.commit.dead_letters.write_dead_letters import finish
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.other_commits import OtherCommit
from frazil.lake.commit.replaced_rows import RowChanges
from frazil.lake.commit.request import CommitRequest, Committed, Committer, Extra
from frazil.lake.iceberg_java import Iceberg, thrown
from frazil.lake.java_classes import Java
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry, of
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import ancestors
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.stage import Staged
from frazil.schemas.iceberg import field_ids

GONE = ("NotFoundException", "FileNotFoundException", "NoSuchKeyException")


def decide_and_finish(
    job: Committer,
    staged: Staged,
    side_tables: Sequence[Staged],
    request: CommitRequest,
    changes: RowChanges | None = None,
    met: Callable[[OtherCommit], None] = lambda commit: None,
) -> Committed:
    """Commit `staged`, and with it the decision on `side_tables`; then append each of `side_tables` to its own table.

    The rows that `changes` finds are deleted in the same commit; `met` is as in `commit`.

    Raises what `commit` raises, and before anything is committed: `DecisionRequired` if a side table is not the one that the
    ledger describes, `StageAgain` if it is not the one that its rows were staged for.
    """
    side_tables = [side for side in side_tables if not side.is_empty]
    if not side_tables:
        return commit(job, staged, request, changes=changes, met=met)
    iceberg, numbered_from = job.iceberg, 0
    for side in side_tables:
        found = look(iceberg, staged.table, side.table, request.pipeline)
        is_own = found.last is not None and found.last.end is not None and found.last.end.same_as(request.committed)
        if is_own and found.state not in (SideState.FINISHED, SideState.OPEN):
            raise side_table.refusal(found, staged.table, side.table, request.pipeline)
        if is_own and not _fits(iceberg, side, found):
            what = "the dead-letter table was dropped or replaced, or lost a column"
            raise StageAgain(what, where=f"table {side.table}")
        numbered_from = max(numbered_from, found.finished)
    tables = []
    for side in side_tables:
        table = iceberg.load(side.table)
        files = [iceberg.file_json(table, f) for f in side.files]
        tables.append({**part(side), "rows": side.rows, "at": side.at, "files": files})
    return decide(job, staged, tables, request, Extra(numbered_from=numbered_from), changes, met)


def _fits(iceberg: Iceberg, side: Staged, found: Look) -> bool:
    if found.side is None or str(found.side.uuid()) != side.table_uuid:
        return False
    return set(side.field_ids.values()) <= set(field_ids(iceberg.schema_json(found.side)).values())


def part(side: Staged) -> dict[str, Any]:
    """Return what a decision says of a side table that nothing is appended to; see `finish` for what may be added."""
    return {
        "table": side.table,
        "uuid": side.table_uuid,
        "field_ids": side.field_ids,
        "rows": 0,
        "at": side.at,
        "files": [],
    }


def decide(
    job: Committer,
    staged: Staged,
    tables: Sequence[Mapping[str, Any]],
    request: CommitRequest,
    extra: Extra,
    changes: RowChanges | None = None,
    met: Callable[[OtherCommit], None] = lambda commit: None,
) -> Committed:
    """Commit `staged` with the decision on side `tables` (parts of its document), then finish it.

    `met` is as in `commit`.
    """
    iceberg = job.iceberg
    table = iceberg.load(staged.table)
    # JSON, but called `.stats`: table buckets refuse files in `metadata/` whose ending is none of Iceberg's own, and readers
    # that search the folder take `.metadata.json` for the table's.
    # Each try has a file of its own: an earlier one of the same records may yet turn out to be committed, and names its own.
    name = f"frazil-side-{request.commit_id(staged.table_uuid)}-{request.run}-{uuid.uuid4().hex[:8]}.stats"
    location = f"{table.location()}/metadata/{name}"
    document = {
        "version": 1,
        "commit_id": request.commit_id(staged.table_uuid),
        "table_uuid": staged.table_uuid,
        "counts": json.loads(str(request.counts)),
        "tables": tables,
    }
    iceberg.write_text(table, location, json.dumps(document))
    job.failpoint("decide.written")
    named = replace(extra, summary={**extra.summary, ledger.SIDE: location})
    committed = commit(job, staged, request, named, changes, met)
    job.failpoint("decide.decided")
    decided = Entry.of(
        committed.snapshot_id,
        {**request.summary(staged.table_uuid), ledger.SIDE: location, ledger.DECISION: str(committed.number)},
    )
    finish(job, document, request, decided=decided)
    table.io().deleteFile(location)
    return committed


def finish_open(job: Committer, table: str, side_table_: str, pipeline: str) -> int:
    """Finish what the last decision on `table` left open for the dead-letter table; returns how many rows that appended.

    0 means that all was done. Raises `DecisionRequired` if the dead-letter table is not the one that the ledger describes, or
    the decision's file is gone before it was finished.
    """
    iceberg = job.iceberg
    found = look(iceberg, table, side_table_, pipeline)
    last = found.last
    if last is None or found.state is SideState.FINISHED:
        return 0
    if found.state is not SideState.OPEN:
        raise side_table.refusal(found, table, side_table_, pipeline)
    document = open_document(iceberg, found, table, side_table_, pipeline)
    if document is None:
        return 0
    assert last.start is not None
    assert last.end is not None
    request = CommitRequest(
        pipeline=pipeline,
        run=job.run,
        version=job.version,
        start=last.start,
        end=last.end,
        committed=None,
        topic_id=last.end.topic_id,
        staged_us=int(last.summary[ledger.STAGED_AT]) if ledger.STAGED_AT in last.summary else None,
        accepted=last.summary.get(ledger.EVENTS),
        replay=last.summary.get(ledger.REPLAY),
    )
    rows = finish(job, document, request, decided=last)
    found.main.io().deleteFile(str(last.side))
    return rows


def open_decision(iceberg: Iceberg, table: str, side_table_: str, pipeline: str) -> tuple[str, ...] | None:
    """Return the files that the last decision on `table` still needs: its own, and the data files it names.

    None: it is finished. Raises `DecisionRequired` if it is open and its file is gone.
    """
    found = look(iceberg, table, side_table_, pipeline)
    last = found.last
    if last is None or found.state is SideState.FINISHED:
        return None
    if last.side is None:
        return ()
    document = open_document(iceberg, found, table, side_table_, pipeline)
    if document is None:
        return None
    return (last.side, *(file["file-path"] for side in document["tables"] for file in side["files"]))


def open_document(iceberg: Iceberg, found: Look, table: str, side_table_: str, pipeline: str) -> dict[str, Any] | None:
    """Return the decision that the newest entry names; None if another driver finished it just now.

    Raises `DeadLetterTableMismatch` if its file does not exist, `CatalogUnavailable` if it cannot be read.
    """
    assert found.last is not None
    try:
        parsed: dict[str, Any] = json.loads(iceberg.read_text(found.main, str(found.last.side)))
        return parsed
    except Py4JJavaError as error:
        if look(iceberg, table, side_table_, pipeline).state is SideState.FINISHED:
            return None
        what = f"the last decision's file {found.last.side} cannot be read ({thrown(error)})"
        if thrown(error) in GONE:
            raise DeadLetterTableMismatch.of(
                pipeline, side_table_, f"{what}, and its dead letters are not in the dead-letter table"
            ) from None
        raise CatalogUnavailable(what, where=f"pipeline {pipeline}, table {table}", do="Try again") from None


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
