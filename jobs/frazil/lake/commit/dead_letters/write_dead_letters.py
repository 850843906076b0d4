"""Finish a decision at its side tables: remove, restore and append what its document says, each time with the same result.

A part of the document names a side `table` and its `uuid`, and the data `files` to append. It may also say: `remove`, which dead
letters go first (see `of_batches`); `clear`, that all rows go; `over_rollback`, that the head may be behind the last commit;
`restore`, that it is set back to the last commit first; `outcomes` and `reopen`, which dead letters get another outcome (see
`outcomes`). Whoever finishes does all of it until the side table's ledger has the
decision's number; that commit is made by compare-and-set on the entry that was read before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from frazil.errors import CatalogUnavailable, DeadLetterTableMismatch, Fenced
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.dead_letters import of_batches as letters
from frazil.lake.commit.dead_letters import outcomes
from frazil.lake.commit.dead_letters.side_state import SideState, compare
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.request import CommitRequest, Committer, Extra
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.entry import Entry
from frazil.lake.stage import Staged

TRIES = 50  # each one lost to another client's commit


def finish(job: Committer, document: Mapping[str, Any], request: CommitRequest, *, decided: Entry) -> int:
    """Do what is open of the decision of entry `decided`; return how many rows that appended.

    `request` is what the side tables' commits say. Raises what `commit` raises but `Fenced` and
    `StageAgain`, and `DeadLetterTableMismatch` if a side table was replaced or lost a column.
    """
    iceberg, appended, tries = job.iceberg, 0, 0
    for part in document["tables"]:
        # One look at the table says both whether it is finished and what it holds: whoever finishes it after that fences us.
        while not _is_finished(found := _same_table(iceberg, part, request), document, request, decided):
            job.failpoint("finish.started")
            if part.get("remove"):
                letters.remove(iceberg.spark, f"{iceberg.name}.{part['table']}", part["remove"])
                job.failpoint("finish.removed")
            try:
                _commit(job, part, found, document, request, decided)
                appended += part["rows"]
            except Fenced as fenced:  # another driver finished it, or a decision before it: ask again
                tries += 1
                if tries == TRIES:
                    raise CatalogUnavailable(fenced.what, where=fenced.where, do="Run again") from None
            except StageAgain:  # what is decided is not staged again
                what = f"the table lost a column while {part['rows']} of its rows were decided and not yet appended"
                raise DeadLetterTableMismatch.of(request.pipeline, part["table"], what) from None
        job.failpoint("finish.finished")
    return appended


def _commit(
    job: Committer,
    part: Mapping[str, Any],
    found: Java,
    document: Mapping[str, Any],
    request: CommitRequest,
    decided: Entry,
) -> None:
    last = entry(found, request.pipeline)
    staged = Staged(
        table=part["table"],
        table_uuid=part["uuid"],
        field_ids=part["field_ids"],
        files=(),
        rows=part["rows"],
        bytes=0,
        at=job.clock(),  # a decision does not age: its files are protected by being named in it
        documents=tuple(part["files"]),
    )
    extra = {
        ledger.COMMIT_ID: document["commit_id"],
        ledger.COUNTS: json.dumps(document["counts"]),
        ledger.TABLE: document["table_uuid"],
        ledger.DECISION: str(decided.number),
    }
    if decided.run is not None:
        extra[ledger.STAGED_BY] = decided.run
    restore = bool(part.get("restore"))
    commit(
        job,
        staged,
        replace(
            request,
            committed=last.end if last else None,
            on=last.snapshot_id if last else None,
            on_head=None,
            over_rollback=restore or bool(part.get("over_rollback")),
            mode=None,
        ),
        Extra(
            summary=extra,
            finishes=True,
            restore=restore,
            clear=bool(part.get("clear")),
            rewritten=outcomes.rewriting(job, part, decided.number),
        ),
    )


def _same_table(iceberg: Iceberg, part: Mapping[str, Any], request: CommitRequest) -> Java:
    if iceberg.exists(part["table"]):
        table = iceberg.load(part["table"])
        if str(table.uuid()) == part["uuid"]:
            return table
    raise DeadLetterTableMismatch.of(
        request.pipeline,
        part["table"],
        f"the table was dropped or replaced while {part['rows']} of its rows were decided and not yet appended",
    )


def _is_finished(side: Java, document: Mapping[str, Any], request: CommitRequest, decided: Entry) -> bool:
    """Return whether the side table, as loaded, has this decision or a later one."""
    state = compare(document["table_uuid"], decided, entry(side, request.pipeline), head_follows=True)
    return state in (SideState.FINISHED, SideState.AHEAD)
