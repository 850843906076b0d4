"""An operator's decision about a table, or its dead-letter table, counted from the rows of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from frazil.declaration import Pipeline
from frazil.errors import DecisionRequired, InvalidInput
from frazil.job.context import JobContext
from frazil.lake import row_offsets
from frazil.lake.commit.dead_letters import of_batches as letters
from frazil.lake.commit.dead_letters.decide import open_document
from frazil.lake.commit.dead_letters.outcomes import landed
from frazil.lake.commit.dead_letters.side_state import SideState, belongs
from frazil.lake.commit.dead_letters.side_table import Look
from frazil.lake.layout import prefix_of
from frazil.lake.ledger.entries import entry_of_head
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import head_follows, lineage
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Total, absent
from frazil.recovery import decisions
from frazil.recovery.decisions import LETTERS, Acceptance, Accepted, not_happened
from frazil.recovery.only_copies import check_is_in_log, check_lands_again
from frazil.recovery.two_logs import check_is_one_log, check_is_one_topic, check_was_one_log
from frazil.recovery.undone_batches import (
    behind,
    check_was_not_replayed,
    head_again,
    head_or_hold,
    restored,
    undecided,
    undone,
)
from frazil.schemas.dead_letter_outcomes import LANDED
from frazil.schemas.iceberg import field_ids


def missing(pipeline: Pipeline, entry: Entry, end: Offsets, counted: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return how many records up to `end` are in neither table, by partition, by the totals that `entry` has.

    `counted` are rows and dead letters by partition, of one source each. Of an upsert table they are dead letters only: its commits
    carry on how many records landed, for all partitions together. So what is lost is named for the first partitions that can lack
    so much. Raises `InvalidInput` if the ledger has no totals, or if more was counted than the totals account for.
    """
    counts = list(counted)
    lost = {p: n - sum(rows.get(p, 0) for rows in counts) for p, n in _expected(pipeline, entry, end).items()}
    left = sum(lost.values()) - (entry.keys.records if entry.keys is not None else 0)
    if left < 0 or any(n < 0 for n in lost.values()):
        table = pipeline.table
        raise InvalidInput(
            f"there are more rows and dead letters than the ledger accounts for, by partition: {lost}",
            where=f"tables {table.identifier} and {table.dead_letters}",
            do=f"`frazil verify {pipeline.name} --deep` says what is wrong; repair that first",
        )
    for p, n in sorted(lost.items()):
        lost[p] = min(n, left)
        left -= lost[p]
    return {p: n for p, n in sorted(lost.items()) if n}


def _expected(pipeline: Pipeline, entry: Entry, end: Offsets) -> dict[int, int]:
    """Return how many rows and dead letters the ledger accounts for up to `end`, by partition."""
    totals = entry.totals
    if totals is None:
        raise InvalidInput(
            "the ledger has no totals, so the missing dead letters cannot be counted",
            where=f"table {pipeline.table.identifier}",
        )
    expected = dict[int, int]()
    for p in {*end.at, *totals.at, *(c.partition for c in totals.closed)}:
        accounts = [(c.start, c.end, absent(c)) for c in totals.closed if c.partition == p]
        if p in totals.at or p in end.at:
            now = totals.at.get(p, Total(0))  # a partition that was added later begins at 0
            accounts.append((now.start, end.at.get(p, now.start), absent(now)))
        expected[p] = sum(to - start - without_row for start, to, without_row in accounts)
    return expected


@dataclass(frozen=True, slots=True)
class Recovery:
    """A pipeline's tables as they were found."""

    pipeline: Pipeline
    job: JobContext
    found: Look

    def rolled_back(self, event: Accepted) -> tuple[Acceptance, dict[str, Any] | None]:
        """Return the decision after a rollback, and what it adds to the dead-letter table's part; None for no part.

        The table counts first: if its head is behind its ledger, the decision is about its rows. Else it is about the
        dead-letter table.
        """
        last, state = self._last, self.found.state
        if not head_follows(self.job.iceberg, self.found.main, last):
            return self._table_rolled_back(event)
        if state is SideState.AHEAD and event is Accepted.ROLLED_BACK_REPLAY:
            check_was_one_log(self.pipeline, self.found)
            batches, lost = self._undecided(last)
            check_lands_again(self.pipeline, self.job, self.found, self._committed, batches, do=restored(self.pipeline))
            part = {"remove": batches, "reopen": last.number}
            return Acceptance(event, self._committed, self._committed, lost), part
        if state is not SideState.ROLLED_BACK:
            raise not_happened(event, f"table {self.pipeline.table.identifier}")
        pending = self._open_part()
        if event is Accepted.ROLLED_BACK_HOLD:
            self._check_has_outcomes()
            lost = self._lacking(last, self._committed, pending=pending)
            return Acceptance(event, self._committed, self._committed, lost), {"over_rollback": True, **pending}
        assert self.found.side is not None
        assert self.found.newest is not None
        head = self.found.side.currentSnapshot()
        kept = {int(s.snapshotId()) for s in lineage(self.job.iceberg, self.found.side, self.found.newest.snapshot_id)}
        if head is None or int(head.snapshotId()) not in kept:
            what = "the dead-letter table got other commits since it was rolled back, so its last commit cannot be restored"
            do = f"`frazil accept {self.pipeline.name} rolled-back-hold --reason …` keeps it as it is"
            raise InvalidInput(what, where=f"table {self.pipeline.table.dead_letters}", do=do)
        return Acceptance(event, self._committed, self._committed), {"restore": True, **pending}

    def side_table_replaced(self) -> Acceptance:
        """Return the decision to go on with the dead-letter table as it is, and to give up what it lacks."""
        table, state = self.pipeline.table, self.found.state
        if state is not SideState.MISMATCH and not (state is SideState.OPEN and self._cannot_finish()):
            raise not_happened(Accepted.SIDE_TABLE_REPLACED, f"table {table.dead_letters}")
        lost = self._lacking(self._last, self._committed, pending={})
        side, newest = self.found.side, self.found.newest
        if lost and side is not None and newest is not None and not belongs(str(self.found.main.uuid()), newest):
            what = "the dead-letter table belongs to another table, and its rows are not those that are missing here"
            raise InvalidInput(what, where=f"table {table.dead_letters}", do="Rename or drop it, then accept again")
        if (
            side is not None
            and side.currentSnapshot() is not None
            and (newest.number if newest else 0) < self._last.replayed
        ):
            what = "the dead-letter table lacks the outcomes of replays, so its dead letters would land once more"
            raise InvalidInput(what, where=f"table {table.dead_letters}", do="Rename or drop it, then accept again")
        return Acceptance(Accepted.SIDE_TABLE_REPLACED, self._committed, self._committed, lost)

    def _table_rolled_back(self, event: Accepted) -> tuple[Acceptance, dict[str, Any] | None]:
        head = entry_of_head(self.job.iceberg, self.found.main, self.pipeline.name)
        if head is None or head.end is None:
            return self._unknown(event)
        check_was_not_replayed(self.pipeline, self.job.iceberg, self.found, head)
        check_is_one_log(self.pipeline, self.job.iceberg, self.found, head)
        is_replay = event is Accepted.ROLLED_BACK_REPLAY
        found = undone(self.pipeline, self.job, self.found, head, exact=is_replay)
        has_part, is_complete = self._has_part, self._is_complete
        # A topic that was re-created or truncated has offsets again: then not each dead letter found by offset is of these commits.
        is_safe = found.are_exact or head.totals is None or not head.totals.closed
        if is_replay:
            do = head_or_hold(self.pipeline, self._last)
            check_lands_again(self.pipeline, self.job, self.found, head.end, found.batches, do=do)
            check_is_in_log(self.pipeline, self.job, self._committed, head.end, found.offsets_lost, do=do)
            is_known = is_complete and found.are_exact and not found.gave_up
            lost = {} if is_known else self._lacking(head, head.end, pending={}, without=found.batches)
            if is_complete and lost and not (is_safe and found.gave_up):  # some are of commits that stay
                what = (
                    f"without the dead letters after the table's offsets records would be missing, by partition: {lost}"
                )
                raise InvalidInput(what, where=f"table {self.pipeline.table.dead_letters}", do=do)
            decided = Acceptance(event, head.end, head.end, lost)
            part = {"remove": found.batches, "over_rollback": True, **self._reopened(head)}
            return decided, part if has_part else None
        if is_complete and not found.gave_up and (is_safe or not has_part):
            kept = letters.counted(self._letters(), found.batches) if has_part else {}
            return decisions.rolled_back_hold(self._committed, head.end, kept), self._reopened(
                head
            ) if has_part else None
        return self._counted_hold(head, decisions.rolled_back_hold(self._committed, head.end, {}).before)

    def _counted_hold(self, entry: Entry, before: Offsets) -> tuple[Acceptance, dict[str, Any] | None]:
        """Return the decision to keep the table, which gives up what both tables lack by the account that `entry` carries."""
        pending = {} if self._is_complete else self._open_part()
        lost = self._lacking(entry, self._committed, pending=pending)
        decided = Acceptance(Accepted.ROLLED_BACK_HOLD, before, self._committed, lost)
        again = self._reopened(entry) if self._has_part else {}
        if self._is_complete:
            return decided, again or None
        return decided, {"over_rollback": True, **pending, **again}

    def _reopened(self, entry: Entry) -> dict[str, Any]:
        """Return the part of a decision by which dead letters are open again that a replay after `entry` had landed."""
        return {"reopen": entry.number} if self._last.replayed > entry.replayed else {}

    def _check_has_outcomes(self) -> None:
        """Raise `InvalidInput` if a dead-letter table that was rolled back lacks outcomes: dead letters would land once more."""
        head = entry_of_head(self.job.iceberg, self.found.side, self.pipeline.name)
        if self._last.replayed > (head.number if head is not None else 0):
            what = "the dead-letter table was rolled back to before a replay, so its dead letters would land once more"
            do = f"`frazil accept {self.pipeline.name} rolled-back-replay --reason …` restores its last commit"
            raise InvalidInput(what, where=f"table {self.pipeline.table.dead_letters}", do=do)

    def _unknown(self, event: Accepted) -> tuple[Acceptance, dict[str, Any] | None]:
        """Return the decision on a table of whose history no commit of the pipeline is left: it can be held, not replayed.

        The account of the newest entry goes on. Raises `InvalidInput` if it is of several logs and lacks records.
        """
        last, table = self._last, self.pipeline.table.identifier
        if event is Accepted.ROLLED_BACK_REPLAY or last.keys is not None:  # no account of keys is that of other rows
            what = "no snapshot in the table's history says where to begin again"
            do = head_or_hold(self.pipeline, last) if last.keys is None else head_again(last)
            raise InvalidInput(what, where=f"table {table}", do=do)
        decided, part = self._counted_hold(last, self._committed)
        if decided.lost and last.totals is not None and last.totals.closed:
            raise InvalidInput(
                f"records are missing, and it is not known of which topic or log, by partition: {dict(decided.lost)}",
                where=f"table {table}",
                do=head_again(last),
            )
        return decided, part

    def _undecided(self, last: Entry) -> tuple[list[dict[str, Any]], dict[int, int]]:
        """Return the batches that only the dead-letter table has, as the table was set back; and what decisions since gave up.

        If their commits were expired, they are found by their offsets, and counted. Raises `InvalidInput` if the rest does not
        add up to what the ledger accounts for.
        """
        found = undecided(self.job, self.found, self.pipeline.name)
        if found is not None:
            lost = self._lacking(last, self._committed, pending={}, without=found.batches) if found.gave_up else {}
            return found.batches, lost
        batches = behind(self.pipeline, self.job, self.found, self._committed)
        lost = self._lacking(last, self._committed, pending={}, without=batches)
        if lost:
            raise InvalidInput(
                "commits to the dead-letter table have expired, and without the dead letters after the table's offsets "
                f"it lacks records, by partition: {lost}",
                where=f"table {self.pipeline.table.dead_letters}",
                do=restored(self.pipeline),
            )
        return batches, {}

    def _cannot_finish(self) -> bool:
        """Return whether the newest decision is open and its dead letters cannot get into the dead-letter table."""
        try:
            document = self._document()
        except DecisionRequired:
            return True
        side = self.found.side
        if document is None or side is None:
            return document is not None
        uuid, columns = str(side.uuid()), set(field_ids(self.job.iceberg.schema_json(side)).values())
        return any(p["uuid"] != uuid or not set(p["field_ids"].values()) <= columns for p in document["tables"])

    def _open_part(self) -> dict[str, Any]:
        """Return the data files of the newest decision, if it is open: the next decision appends them."""
        last, newest, side = self._last, self.found.newest, self.found.side
        is_open = last.side is not None and (
            newest is None or (newest.number, newest.commit_id) != (last.number, last.commit_id)
        )
        if not is_open or side is None:
            return {}
        try:
            document = self._document()
        except DecisionRequired:
            return {}
        parts = [part for part in (document or {"tables": []})["tables"] if part["uuid"] == str(side.uuid())]
        if not parts:
            return {}
        outcomes = [one for p in parts for one in p.get("outcomes") or ()]
        more = {"outcomes": outcomes} if outcomes else {}
        return {"files": [f for p in parts for f in p["files"]], "rows": sum(p["rows"] for p in parts), **more}

    def _document(self) -> dict[str, Any] | None:
        table = self.pipeline.table
        return open_document(self.job.iceberg, self.found, table.identifier, table.dead_letters, self.pipeline.name)

    def _lacking(
        self, entry: Entry, end: Offsets, *, pending: Mapping[str, Any], without: list[dict[str, Any]] | None = None
    ) -> dict[int, int]:
        """Return, by partition, the records up to `end` that are in neither table, by the account that `entry` carries.

        `pending` are data files that are to be appended to the dead-letter table, `without` batches that are to be removed from it.
        """
        totals, table, spark = entry.totals, self.pipeline.table, self.job.spark
        closed = totals.closed if totals is not None else ()
        topics = {self.pipeline.topic.name, end.topic, *(c.topic for c in closed)}
        counted = []
        if entry.keys is None:  # the rows of an upsert table say nothing of the records that they superseded
            counted.append(row_offsets.rows_of(spark, self._named(table.identifier), topics, prefix_of(self.pipeline)))
        if self.found.side is not None:
            counted.append(row_offsets.rows_of(spark, self._named(table.dead_letters), topics, LETTERS))
            counted.append({p: -n for p, n in self._recovered(entry, pending).items()})
            if without:
                counted.append({p: -n for p, n in letters.counted(self._letters(), without).items()})
        if pending.get("files"):
            side, unique_id = table.dead_letters, self.job.new_id()
            counted.append(
                row_offsets.rows_of_files(self.job.iceberg, side, pending["files"], LETTERS, unique_id=unique_id)
            )
        if lost := missing(self.pipeline, entry, end, counted):
            check_is_one_topic(self.pipeline, entry)
        return lost

    def _recovered(self, entry: Entry, pending: Mapping[str, Any]) -> dict[int, int]:
        """Return, by partition, the dead letters that count as landed by the account that `entry` carries."""
        found = landed(self._letters(), entry.number)
        for outcome in pending.get("outcomes") or ():
            for p, ranges in outcome["at"].items() if outcome.get("outcome") in LANDED else ():
                found[int(p)] = found.get(int(p), 0) + sum(after - first for first, after in ranges)
        return found

    def _letters(self) -> Any:
        return self.job.spark.table(self._named(self.pipeline.table.dead_letters))

    def _named(self, identifier: str) -> str:
        return f"{self.job.iceberg.name}.{identifier}"

    @property
    def _has_part(self) -> bool:
        """Return whether there is a dead-letter table that a decision about the table concerns."""
        return self.found.newest is not None and self.found.state is not SideState.MISMATCH

    @property
    def _is_complete(self) -> bool:
        return self.found.state is SideState.FINISHED or not self._has_part

    @property
    def _last(self) -> Entry:
        assert self.found.last is not None
        return self.found.last

    @property
    def _committed(self) -> Offsets:
        assert self._last.end is not None
        return self._last.end
