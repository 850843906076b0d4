"""Commit the outcomes of dead letters: one decision of the table about rows and outcomes, on the entry that it was made for."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from frazil.declaration import Pipeline
from frazil.errors import Fenced, InvalidInput
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters import side_table
from frazil.lake.commit.dead_letters.decide import decide, finish_open, part
from frazil.lake.commit.dead_letters.side_state import SideState
from frazil.lake.commit.dead_letters.side_table import Look, look
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.replaced_rows import RowChanges
from frazil.lake.commit.request import CommitRequest, Committed, Extra
from frazil.lake.ledger.entries import entries_of
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.next_offsets import canonical
from frazil.lake.ledger.totals import Counts
from frazil.lake.stage import Staged, empty_commit
from frazil.replay.open_letters import DeadLetters, Letter, outcomes
from frazil.schemas.dead_letter_outcomes import DeadLetterOutcome

ATTEMPTS = 10
"""So often a commit is tried: a driver may commit in between each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The outcomes of the dead letters of one batch, and the rows of those that landed; without rows for a discard.

    `outcomes` has the dead letters by outcome, those that were tried and stay open under None. `staged_us` is when the rows were
    staged, microseconds since 1970. `why` is the reason of a discard. `mode` is that of `CommitRequest`.
    """

    outcomes: Mapping[DeadLetterOutcome | None, Sequence[Letter]]
    rows: Staged | None = None
    changes: RowChanges | None = None
    counts: Counts = field(default_factory=Counts)
    schema_ids: tuple[int, ...] = ()
    staged_us: int | None = None
    mode: str | None = None
    why: str | None = None


def settled_tables(pipeline: Pipeline, job: JobContext, *, finishes: bool = True) -> Look:
    """Return a pipeline's table and dead-letter table when no decision is open; one that is left open if it `finishes` none.

    Raises `InvalidInput` without dead letters, and `DecisionRequired` if an operator must decide about the tables first.
    """
    table, name = pipeline.table, pipeline.name
    for identifier in (table.identifier, table.dead_letters):
        if not job.iceberg.exists(identifier):
            what = "the table does not exist, so no record was rejected"
            raise InvalidInput(what, where=f"table {identifier}", do="Run the pipeline first")
    for _ in range(ATTEMPTS):
        found = look(job.iceberg, table.identifier, table.dead_letters, name)
        if found.state is not SideState.OPEN or not finishes:
            break
        finish_open(job, table.identifier, table.dead_letters, name)
    if found.last is None or found.last.end is None or found.side is None or found.side.currentSnapshot() is None:
        raise InvalidInput(
            "the pipeline has rejected no record", where=f"table {table.dead_letters}", do="Run the pipeline first"
        )
    if found.state not in (SideState.FINISHED, SideState.OPEN):
        raise side_table.refusal(found, table.identifier, table.dead_letters, name)
    return found


def dead_letters(pipeline: Pipeline, job: JobContext, found: Look) -> DeadLetters:
    """Return the dead letters of the tables as they were found."""
    assert found.side is not None
    return DeadLetters(pipeline, job, found.side, int(found.side.currentSnapshot().snapshotId()))


def commit_outcomes(
    pipeline: Pipeline,
    job: JobContext,
    found: Look,
    decided: Decided,
    check: Callable[[Look, Entry], None] = lambda found, entry: None,
) -> Committed:
    """Commit a decision about dead letters that were read in the tables `found`, then finish it in the dead-letter table.

    If batches of the topic came since, it is committed after them, unless `check` of the tables as they are then raises. Raises
    `StageAgain` if anything else came, and what `decide` raises.
    """
    last, table = found.last, pipeline.table
    assert last is not None
    numbers = {"open" if name is None else name.value: len(of) for name, of in decided.outcomes.items()}
    named = canonical({"id": f"{job.run}-{uuid.uuid4().hex[:12]}", **numbers})
    listed = outcomes(decided.outcomes, why=decided.why)
    side = {**part(empty_commit(job.iceberg, table.dead_letters, at=job.clock())), "outcomes": listed}
    rows = decided.rows or empty_commit(job.iceberg, table.identifier, at=job.clock())
    on = last
    for attempt in range(ATTEMPTS):
        assert on.end is not None
        request = CommitRequest(
            pipeline=pipeline.name,
            run=job.run,
            version=job.version,
            start=on.end,
            end=on.end,
            committed=on.end,
            topic_id=on.end.topic_id,
            counts=decided.counts,
            schema_ids=decided.schema_ids or on.schema_ids,
            staged_us=decided.staged_us,
            valid_through=on.valid_through,
            on=on.snapshot_id,
            settled=on.snapshot_id,
            mode=decided.mode,
            replay=named,
        )
        try:
            return decide(job, rows, [side], request, Extra(numbered_from=found.finished), decided.changes)
        except Fenced:
            if attempt == ATTEMPTS - 1:
                raise
            found = settled_tables(pipeline, job)
            on = _after_batches(pipeline, found, last)
            check(found, on)
    raise AssertionError("the last attempt returns or raises")


def _after_batches(pipeline: Pipeline, found: Look, last: Entry) -> Entry:
    """Return the newest entry, if only batches came after `last`. Raises `StageAgain` for anything else."""
    now, where = found.last, f"pipeline {pipeline.name}"
    assert now is not None
    for one in entries_of(found.main, pipeline.name, now.snapshot_id):
        if one.snapshot_id == last.snapshot_id:
            return now
        if one.event is not None or one.is_replay:
            raise StageAgain("an operator or another replay decided meanwhile", where=where)
    raise StageAgain("the table was rolled back meanwhile", where=where)
