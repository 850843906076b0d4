"""Decide whether a staged batch may be committed on the table's current state. Pure: values in, a verdict out.

The table of all verdicts is docs/exactly-once.md; `lake/commit/commit.py` reads the base inside its transaction and acts on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from frazil.errors import Fenced, FrazilError, RolledBack, TableReplaced, TopicRecreated, WriteModeDiffers
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.offsets import Offsets, canonical
from frazil.lake.ledger.totals import Counts
from frazil.lake.stage import Staged


class StageAgain(FrazilError):
    """The staged files may be gone, or no longer fit the table: the batch is to be staged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """The offsets and the account of what was staged: all that a commit says beside its files.

    `committed` are the table's offsets when the batch was planned (`None`: no ledger yet); `topic_id` is the topic's id as asked
    again after staging. `windows` are those that an operator's
    decision begins, by their names in `ledger.WINDOWS`; other commits carry them on. `over_rollback` is an operator's word that
    a head behind the tag is meant. `staged_us` is when the batch was staged, microseconds since 1970: its dead letters have it
    as `rejected_at`. `on` is the snapshot whose entry the commit was decided on, where equal offsets are not enough; `on_head`
    is the head that it was decided on. `settled` is the snapshot of the entry whose decision on dead letters is known to be
    finished. `keys` is the account of the keys that an operator's decision makes; other commits carry it on. `mode` is
    the write mode of the rows with their key, as `ledger.made_for` gives it; None for a commit without rows.
    """

    pipeline: str
    run: str
    version: str
    start: Offsets
    end: Offsets
    committed: Offsets | None
    topic_id: str
    counts: Counts = field(default_factory=Counts)
    schema_ids: tuple[int, ...] = ()
    valid_through: int | None = None
    accepted: str | None = None
    windows: Mapping[str, Offsets] = field(default_factory=dict)
    over_rollback: bool = False
    staged_us: int | None = None
    on: int | None = None
    on_head: int | None = None
    settled: int | None = None
    keys: KeyAccount | None = None
    mode: str | None = None

    def summary(self, table_uuid: str) -> dict[str, str]:
        """Return the snapshot's summary entries."""
        entries = {
            ledger.FORMAT: ledger.FORMAT_VERSION,
            ledger.PIPELINE: self.pipeline,
            ledger.COMMIT_ID: self.commit_id(table_uuid),
            ledger.START: str(self.start),
            ledger.END: str(self.end),
            ledger.COUNTS: str(self.counts),
            ledger.SCHEMA_IDS: canonical(list(self.schema_ids)),
            ledger.RUN: self.run,
            ledger.VERSION: self.version,
        }
        if self.valid_through is not None:
            entries[ledger.VALID_THROUGH] = str(self.valid_through)
        if self.accepted is not None:
            entries[ledger.EVENTS] = self.accepted
        if self.staged_us is not None:
            entries[ledger.STAGED_AT] = str(self.staged_us)
        return entries

    def commit_id(self, table_uuid: str) -> str:
        """See `ledger.commit_id`."""
        return ledger.commit_id(self.pipeline, table_uuid, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Base:
    """What the transaction's own table says. Nothing that was read before the transaction counts."""

    table_uuid: str
    field_ids: Mapping[str, int]
    tagged: Entry | None
    head_follows_tag: bool
    own_commit: int | None  # the snapshot that carries this commit id and run
    last: Entry | None = (
        None  # the newest entry that the head has: the tagged one, unless main was rolled back behind it
    )
    head: int | None = None  # the head's snapshot
    mode: str = ledger.APPEND  # the table's write mode, with its key

    @property
    def keys(self) -> KeyAccount | None:
        """The account of the keys; None for an append table, and before the first commit."""
        return self.last.keys if self.last is not None else None


class Verdict(StrEnum):
    """What to do with a staged batch on this base.

    `APPEND`: this driver writes it. `DONE`: an earlier try succeeded and its answer was lost. The others refuse: `FENCED` by
    another driver's commit, `REPLACED` table, columns that are `GONE`, `ROLLED_BACK` by hand, `DECIDED` by an operator since the
    batch was planned, `RECREATED` topic, `OTHER_MODE` of writing, or another key, than the table was made for.
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


def check(base: Base, staged: Staged, batch: CommitRequest) -> Verdict:
    """Return the complete decision, from values only; the table is docs/exactly-once.md."""
    if base.table_uuid != staged.table_uuid:
        return Verdict.REPLACED
    if base.own_commit is not None:
        return Verdict.DONE
    if batch.mode not in (None, base.mode):
        return Verdict.OTHER_MODE
    if _is_gone(base, staged):
        return Verdict.GONE
    if not base.head_follows_tag and not batch.over_rollback:
        return Verdict.ROLLED_BACK
    committed = base.tagged.end if base.tagged else None
    if not (committed.same_as(batch.committed) if committed else batch.committed is None) or not _is_as_decided(
        base, batch
    ):
        return Verdict.FENCED
    if _may_be_open(base, batch):
        return Verdict.DECIDED
    if batch.topic_id != batch.end.topic_id:
        return Verdict.RECREATED
    return Verdict.APPEND


def _is_gone(base: Base, staged: Staged) -> bool:
    """Return whether a column that was written is gone, or has left its name to another one.

    A rename alone harms nothing: files name columns by id. But rows are searched by the names that the key had when it was staged.
    """
    return not set(staged.field_ids.values()) <= set(base.field_ids.values()) or any(
        base.field_ids.get(name, number) != number for name, number in staged.field_ids.items()
    )


def _is_as_decided(base: Base, batch: CommitRequest) -> bool:
    """Return whether nothing was committed since the commit was decided, not even with the same offsets."""
    tagged = base.tagged.snapshot_id if base.tagged else None
    return batch.on in (None, tagged) and batch.on_head in (None, base.head)


def _may_be_open(base: Base, batch: CommitRequest) -> bool:
    """Return whether an operator's decision, whose dead-letter half may be missing, came since the batch was planned.

    Such a decision can leave the offsets unchanged. A commit on top of it would hide that it is open.
    """
    last = base.tagged
    if last is None or last.side is None or ledger.EVENTS not in last.summary:
        return False
    return last.snapshot_id not in (batch.on, batch.settled)


def refusal(verdict: Verdict, base: Base, staged: Staged, batch: CommitRequest) -> FrazilError:
    """Return the error of a verdict that refuses."""
    where = f"pipeline {batch.pipeline}, table {staged.table}"
    winner = (base.tagged.run or "") if base.tagged else ""
    match verdict:
        case Verdict.FENCED:
            holds = base.tagged.end if base.tagged else None
            return Fenced(
                f"run {winner or 'unknown'} committed first; the table holds {holds}, this run expected {batch.committed}",
                where=where,
                do="Nothing of this run's batch was added; the other driver goes on",
                winner=winner,
            )
        case Verdict.REPLACED:
            return TableReplaced(
                f"the table was dropped and created again (uuid {base.table_uuid}, staged for {staged.table_uuid})",
                where=where,
                do="Run again to land into the new table",
            )
        case Verdict.GONE:
            return StageAgain("a column that was written is no longer the same field", where=where)
        case Verdict.DECIDED:
            return StageAgain("an operator decided since the batch was planned", where=where)
        case Verdict.OTHER_MODE:
            return WriteModeDiffers.of(batch.pipeline, staged.table, declared=str(batch.mode), made_for=base.mode)
        case Verdict.ROLLED_BACK:
            return RolledBack.of_table(batch.pipeline, staged.table)
        case _:
            end = batch.end
            return TopicRecreated.of(batch.pipeline, end.topic, topic_id=str(batch.topic_id), committed_id=end.topic_id)
