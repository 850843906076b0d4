"""An operator's decision after a refusal, written into the ledger of the table.

The table's commit is the decision. What follows from it for the dead-letter table is the open part of that decision, which
this command, any later one, or any later run finishes: see `lake.decide`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from frazil.declaration import Pipeline
from frazil.declaration.options import Isolation
from frazil.errors import ColumnsMissing, DeadLetterTableMismatch, ForeignTable, InvalidInput, OtherPipeline, RolledBack
from frazil.ingest.setup import existing_table, table_setup
from frazil.ingest.setup.table_masks import keeps_columns, masks_differ, take_masks
from frazil.job.context import JobContext
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.dead_letters.decide import decide, finish_open, open_document, part
from frazil.lake.commit.dead_letters.side_state import SideState
from frazil.lake.commit.dead_letters.side_table import Look, look
from frazil.lake.commit.request import CommitRequest, Extra
from frazil.lake.layout import Layout
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.lineage import head_follows
from frazil.lake.ledger.next_offsets import canonical
from frazil.lake.ledger.stop import Stop
from frazil.lake.ledger.totals import Counts
from frazil.lake.stage import empty_commit
from frazil.recovery import decisions
from frazil.recovery.decisions import Acceptance, Accepted, can_happen, not_happened
from frazil.recovery.divergence import truncated_log
from frazil.recovery.ledger_lost import ledger_lost
from frazil.recovery.rows import Recovery
from frazil.upsert.ordering import lost_files


def accept(pipeline: Pipeline, event: Accepted, reason: str, job: JobContext) -> Acceptance:
    """Write an operator's decision, with its reason, into the pipeline's ledger; return what it made of it.

    The table's commit comes first and is the decision; then the dead-letter table follows. If that is interrupted, the next
    run or `accept` finishes it. Raises `InvalidInput` if there is nothing to decide, `Fenced` if another driver or `accept`
    commits meanwhile: then nothing was changed.
    """
    return _Accepting(pipeline, event, reason, job).accept()


@dataclass(frozen=True, slots=True)
class _Accepting:
    pipeline: Pipeline
    event: Accepted
    reason: str
    job: JobContext

    def accept(self) -> Acceptance:
        self._check_table()
        found, decided, more = self._decided()
        self._write(found, decided, [] if more is None else [{**self._part(), **more}])
        if self.event is Accepted.MASK_FROM_NOW_ON:  # until this, a run stops as before, and it is decided again
            take_masks(self.pipeline, self.job, self._layout())
        return decided

    def _layout(self) -> Layout:
        return existing_table.layout_of(self.job.iceberg, self.pipeline)

    def _decided(self) -> tuple[Look, Acceptance, Mapping[str, Any] | None]:
        """Return the tables, the decision, and what it adds to the dead-letter table's part; None for no part."""
        found = self._look()
        if self.event is Accepted.LEDGER_LOST:
            return found, ledger_lost(self.pipeline, self.job, found), {} if found.newest is not None else None
        if found.last is None or found.last.end is None:
            where = f"table {self.pipeline.table.identifier}"
            raise InvalidInput("the table has no ledger", where=where, do="Run the pipeline first")
        if self.event is Accepted.SIDE_TABLE_REPLACED:
            table_setup.make_dead_letters(self.job, self.pipeline)
            found = self._look()
            return found, Recovery(self.pipeline, self.job, found).side_table_replaced(), {}
        if self.event in (Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD):
            while found.state is SideState.OPEN:  # another operator may decide between finishing and looking
                found = self._finished_or_rolled_back(found)
            return (found, *Recovery(self.pipeline, self.job, found).rolled_back(self.event))
        self._finish_open()
        while (found := self._look()).state is SideState.OPEN:
            self._finish_open()
        decided = self._of_the_topic(found)
        return found, decided, {} if decided.is_in_dead_letter_table and found.newest is not None else None

    def _check_table(self) -> None:
        """Raise `InvalidInput` if there is no table, if it is not the pipeline's, or if it lacks columns that rows need."""
        where = f"table {self.pipeline.table.identifier}"
        if not self.job.iceberg.exists(self.pipeline.table.identifier):
            what = "the catalog has no Iceberg table of this name, or it is a view"
            raise InvalidInput(what, where=where, do="Run the pipeline first")
        try:
            existing_table.columns_to_add(self.pipeline, self._layout())
        except (ColumnsMissing, ForeignTable, OtherPipeline) as error:
            raise InvalidInput(error.what, where=where, do=error.do) from None

    def _of_the_topic(self, found: Look) -> Acceptance:
        """Return the ledger that an event of the topic makes."""
        assert found.last is not None
        assert found.last.end is not None
        if not can_happen(self.event, self.pipeline.write):
            raise not_happened(self.event, f"pipeline {self.pipeline.name}")
        if self.event is Accepted.SOURCE_TRUNCATED and not self.pipeline.is_change_data:
            raise not_happened(self.event, f"pipeline {self.pipeline.name}")
        committed, topic, kafka = found.last.end, self.pipeline.topic, self.job.kafka
        if self.event is Accepted.MASK_FROM_NOW_ON:
            if not masks_differ(self.pipeline, self._layout()):
                raise not_happened(self.event, f"pipeline {self.pipeline.name}")
            if not keeps_columns(self.pipeline, self._layout()):
                what = "the masks may give a key other values, or a column another type, as far as the table knows it"
                do = "Declare the masks as before, of renamed fields by the earlier names"
                do = f"{do}, or name another table and delete this one"
                raise InvalidInput(what, where=f"pipeline {self.pipeline.name}, shape.mask", do=do)
            return Acceptance(self.event, committed, committed)
        if self.event is Accepted.REMEMBERED_DELETES_LOST:
            known = found.last.remembered_deletes
            return decisions.remembered_deletes_lost(committed, known, lost_files(found.main, known))
        spans, topic_id = kafka.offsets(topic.name, self.pipeline.isolation), kafka.topic(topic.name).topic_id
        if self.event is Accepted.REJECTED_RECORDS:
            return decisions.rejected_records(committed, topic_id, Stop.of(found.main.properties(), self.pipeline.name))
        if ledger.window_of(self.event) in ledger.WINDOWS:
            # With open transactions, too: what they hold back was written before the decision.
            spans = kafka.offsets(topic.name, Isolation.READ_UNCOMMITTED)
            return decisions.up_to_the_ends(self.event, committed, topic_id, spans)
        if self.event is Accepted.TOPIC_RECREATED:
            return decisions.topic_recreated(committed, topic.name, topic_id, spans)
        if self.event in (Accepted.LOG_TRUNCATED, Accepted.LOG_TRUNCATED_REPLAY):
            # An open transaction is no end of the log: what it holds may have landed, and must not land again.
            spans = kafka.offsets(topic.name, Isolation.READ_UNCOMMITTED)
            return truncated_log(self.pipeline, self.job, self.event, committed, topic_id, spans)
        return decisions.offsets_lost(committed, topic_id, spans)

    def _write(self, found: Look, decided: Acceptance, parts: Sequence[Mapping[str, Any]]) -> None:
        """Commit the decision to the table with an empty snapshot, and have the dead-letter table follow."""
        job, last = self.job, found.last
        committed = last.end if last else None
        at = datetime.fromtimestamp(job.clock(), UTC).isoformat()
        lost = {str(p): n for p, n in decided.lost.items()}
        until = decided.windows.get(ledger.window_of(self.event))
        more = {} if until is None else {ledger.UNTIL: {str(p): o for p, o in until.at.items()}}
        is_rollback = self.event in (Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD)
        head = found.main.currentSnapshot()
        request = CommitRequest(
            pipeline=self.pipeline.name,
            run=job.run,
            version=job.version,
            start=decided.before,
            end=decided.after,
            committed=committed,
            topic_id=decided.after.topic_id,
            counts=Counts(gaps=decided.lost),
            accepted=canonical({"event": self.event.value, "reason": self.reason, "at": at, "lost": lost, **more}),
            windows=decided.windows,
            over_rollback=is_rollback,
            on=last.snapshot_id if last else None,
            on_head=int(head.snapshotId()) if is_rollback and head is not None else None,
        )
        staged = empty_commit(job.iceberg, self.pipeline.table.identifier, at=job.clock())
        job.failpoint("accept.decided")
        extra = dict[str, str]()
        if decided.remembered is not None:
            extra[ledger.REMEMBERED_DELETES] = str(decided.remembered)
        if self.event is Accepted.SIDE_TABLE_REPLACED and last is not None and last.replayed:
            extra[ledger.REPLAYED] = canonical(
                {"number": last.replayed}
            )  # a new table has no dead letter with an outcome
        if decided.records is not None:
            extra[ledger.ACCEPTED_RECORDS] = canonical({str(p): ranges for p, ranges in decided.records.items()})
        if parts:
            numbered_from = found.newest.number if found.newest is not None else 0
            decide(job, staged, parts, request, Extra(summary=extra, numbered_from=numbered_from))
        else:
            commit(job, staged, request, Extra(summary=extra))

    def _part(self) -> dict[str, Any]:
        """Return a decision's part for the dead-letter table as it is now: its ledger follows, its rows stay."""
        job = self.job
        return part(empty_commit(job.iceberg, self.pipeline.table.dead_letters, at=job.clock()))

    def _look(self) -> Look:
        table = self.pipeline.table
        return look(self.job.iceberg, table.identifier, table.dead_letters, self.pipeline.name)

    def _finished_or_rolled_back(self, found: Look) -> Look:
        """Finish what the last decision left open; or, if its dead-letter table was rolled back since, let this one replace it.

        Dead letters that the last decision removes must go first, so then the error stays. If its file is gone, it was finished,
        and the dead-letter table is not the one that got it: that is decided when the table's rows are.
        """
        table = self.pipeline.table
        try:
            document = open_document(self.job.iceberg, found, table.identifier, table.dead_letters, self.pipeline.name)
        except DeadLetterTableMismatch:
            if head_follows(self.job.iceberg, found.main, found.last):
                raise
            return replace(found, state=SideState.MISMATCH)
        try:
            self._finish_open()
        except RolledBack:
            if document is not None and not any(p.get("remove") or p.get("clear") for p in document["tables"]):
                return replace(found, state=SideState.ROLLED_BACK)
            raise
        return self._look()

    def _finish_open(self) -> None:
        """Finish what the last decision left open."""
        table = self.pipeline.table
        finish_open(self.job, table.identifier, table.dead_letters, self.pipeline.name)
