"""Decide whether a staged batch may be committed on the table's current state. Pure: values in, a verdict out.

The table of all verdicts is docs/exactly-once.md; `commit_rows_and_offsets` reads the state in its transaction and acts on them.
"""

from __future__ import annotations

from enum import StrEnum

from frazil.errors import (
    Fenced,
    FrazilError,
    OtherPipeline,
    RolledBack,
    TableReplaced,
    TopicRecreated,
    WriteModeDiffers,
)
from frazil.lake.commit.request import CommitRequest
from frazil.lake.commit.table_state import TableState
from frazil.lake.ledger import entry as ledger
from frazil.lake.stage import Staged


class StageAgain(FrazilError):
    """The staged files may be gone, or no longer fit the table: the batch is to be staged again."""


class ReplayedMeanwhile(StageAgain):
    """Dead letters were replayed since the batch was planned: their table must follow, then the batch can be committed as it is."""


class Verdict(StrEnum):
    """The decision about a staged batch on this state of the table.

    `APPEND`: this driver writes it. `DONE`: an earlier try succeeded and its answer was lost. The others refuse: `FENCED` by
    another driver's commit, `REPLACED` table, columns that are `GONE`, `ROLLED_BACK` by hand, `DECIDED` by an operator since the
    batch was planned, `RECREATED` topic, `OTHER_MODE` of writing, or another key, than the table was made for,
    `OTHER_PIPELINE` that has committed to it.
    """

    APPEND = "append"
    DONE = "done"
    FENCED = "fenced"
    REPLACED = "replaced"
    GONE = "gone"
    ROLLED_BACK = "rolled_back"
    DECIDED = "decided"
    RECREATED = "recreated"
    OTHER_MODE = "other_mode"
    OTHER_PIPELINE = "other_pipeline"


def check(state: TableState, staged: Staged, request: CommitRequest) -> Verdict:
    """Return the complete decision, from values only; the table is docs/exactly-once.md."""
    if state.table_uuid != staged.table_uuid:
        return Verdict.REPLACED
    if state.own_commit is not None:
        return Verdict.DONE
    if state.others:
        return Verdict.OTHER_PIPELINE
    if request.mode not in (None, state.mode):
        return Verdict.OTHER_MODE
    if _is_gone(state, staged):
        return Verdict.GONE
    if not state.head_follows_tag and not request.over_rollback:
        return Verdict.ROLLED_BACK
    committed = state.tagged.end if state.tagged else None
    if not (committed.same_as(request.committed) if committed else request.committed is None) or not _is_as_decided(
        state, request
    ):
        return Verdict.FENCED
    if _may_be_open(state, request):
        return Verdict.DECIDED
    if request.topic_id != request.end.topic_id:
        return Verdict.RECREATED
    return Verdict.APPEND


def _is_gone(state: TableState, staged: Staged) -> bool:
    """Return whether a column that was written is gone, or has left its name to another one.

    A rename alone harms nothing: files name columns by id. But rows are searched by the names that the key had when it was staged.
    """
    return not set(staged.field_ids.values()) <= set(state.field_ids.values()) or any(
        state.field_ids.get(name, number) != number for name, number in staged.field_ids.items()
    )


def _is_as_decided(state: TableState, request: CommitRequest) -> bool:
    """Return whether nothing was committed since the commit was decided, not even with the same offsets."""
    tagged = state.tagged.snapshot_id if state.tagged else None
    return request.on in (None, tagged) and request.on_head in (None, state.head)


def _may_be_open(state: TableState, request: CommitRequest) -> bool:
    """Return whether a decision of an operator or a replay, whose dead-letter half may be missing, came since the plan.

    Such a decision can leave the offsets unchanged. A commit on top of it would hide that it is open.
    """
    last = state.tagged
    if last is None or last.side is None or not (ledger.EVENTS in last.summary or last.is_replay):
        return False
    return last.snapshot_id not in (request.on, request.settled)


def refusal(verdict: Verdict, state: TableState, staged: Staged, request: CommitRequest) -> FrazilError:
    """Return the error of a verdict that refuses."""
    where = f"pipeline {request.pipeline}, table {staged.table}"
    winner = (state.tagged.run or "") if state.tagged else ""
    match verdict:
        case Verdict.FENCED if state.tagged is not None and state.tagged.event is not None:
            return StageAgain(f"an operator decided about {state.tagged.event}", where=where)
        case Verdict.FENCED:
            holds = state.tagged.end if state.tagged else None
            return Fenced(
                f"run {winner or 'unknown'} committed first; the table holds {holds}, this run expected {request.committed}",
                where=where,
                do="Nothing of this run's batch was added; the other driver goes on",
                winner=winner,
            )
        case Verdict.REPLACED:
            return TableReplaced(
                f"the table was dropped and created again (uuid {state.table_uuid}, staged for {staged.table_uuid})",
                where=where,
                do="Run again to land into the new table",
            )
        case Verdict.GONE:
            return StageAgain("a column that was written is no longer the same field", where=where)
        case Verdict.DECIDED if state.tagged is not None and state.tagged.is_replay:
            return ReplayedMeanwhile("dead letters were replayed since the batch was planned", where=where)
        case Verdict.DECIDED:
            return StageAgain("an operator decided since the batch was planned", where=where)
        case Verdict.OTHER_PIPELINE:
            return OtherPipeline.of(request.pipeline, staged.table, state.others)
        case Verdict.OTHER_MODE:
            return WriteModeDiffers.of(request.pipeline, staged.table, declared=str(request.mode), made_for=state.mode)
        case Verdict.ROLLED_BACK:
            return RolledBack.of_table(request.pipeline, staged.table)
        case _:
            end = request.end
            return TopicRecreated.of(
                request.pipeline, end.topic, topic_id=str(request.topic_id), committed_id=end.topic_id
            )
