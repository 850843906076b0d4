"""Follow a table of current state: append what each of its commits changed to its history, one commit after the other.

The state's commit decides and the history follows. Whoever comes next goes on behind the last commit that the history has, so
readers may see the state ahead of its history, and never behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from frazil.errors import HistoryMismatch
from frazil.lake import ledger
from frazil.lake.commit.committer import Committer
from frazil.lake.commit.entries import entries_of, entry_of_head, of
from frazil.lake.history import history_columns
from frazil.lake.history.changed_keys import AFTER, CAME, WENT, is_there
from frazil.lake.history.changed_keys import BEFORE as ROW_BEFORE
from frazil.lake.history.history_commit import commit
from frazil.lake.history.history_ledger import BEGUN, HISTORY, HistoryAccount, Recorded
from frazil.lake.history.history_rows import history_values
from frazil.lake.history.recorded import recorded, summary
from frazil.lake.history.row_changes import CannotFollow, ChangedFiles, changed_rows
from frazil.lake.java_classes import Java
from frazil.lake.ledger import Entry
from frazil.lake.lineage import head_follows, lineage
from frazil.lake.offsets import Offsets
from frazil.lake.row_offsets import quoted
from frazil.lake.spark_key_hash import key_hash
from frazil.lake.stage import Staged, empty_commit, stage
from frazil.schemas.iceberg import identifier_fields


class HistoryJob(Committer, Protocol):
    """A job as far as a history needs it."""

    @property
    def new_id(self) -> Callable[[], str]:
        """Return a new name that no other file has."""


@dataclass(slots=True)
class Followed:
    """What following did: `commits` of the state that were recorded, and `rows`. `began` is the history's first account."""

    commits: int = 0
    rows: int = 0
    undone: int = 0
    began: HistoryAccount | None = None


@dataclass(frozen=True, slots=True)
class Follower:
    """The history of one pipeline's table, by one driver. `properties` are those of a new history."""

    job: HistoryJob
    pipeline: str
    state: str
    history: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def follow(self) -> Followed:
        """Record every commit of the state that its history lacks. A history without commits begins at the state's head.

        Raises `HistoryMismatch` if the history is not of this table, or the state lacks snapshots that it did not record.
        """
        done, iceberg = Followed(), self.job.iceberg
        while True:
            state = iceberg.load(self.state)
            if state.currentSnapshot() is None:
                return done
            history_columns.make(self.job, self.history, state, self.properties)
            history = iceberg.load(self.history)
            last = self._last(history, state)
            if last is not None:
                self._mark(state, history)
            if last is None:
                done.began = self._begin(state) or done.began
            elif (snapshots := self._behind(state, last)) is None:
                # Another driver may have recorded a commit since the state was loaded: only a later look says what was undone.
                state = iceberg.load(self.state)
                if self._behind(state, last) is None:
                    done.undone += self._undo(state, history, last)
            elif self._record_all(state, last, snapshots, done):
                return done

    def _last(self, history: Java, state: Java) -> Recorded | None:
        """Return what the history has. Raises `HistoryMismatch` if it is no history of the state."""
        if history.properties().get(ledger.WRITE_MODE) != HISTORY:
            raise self._mismatch("the table was not made as a history")
        last = recorded(history, self.pipeline)
        if last is None:
            if history.currentSnapshot() is not None:
                raise self._mismatch("the table has rows, and no commit says of which state they are")
            return None
        if last.table_uuid != str(state.uuid()):
            raise self._mismatch("the table is the history of a table that was dropped and created again")
        if not head_follows(self.job.iceberg, history, last.entry):
            raise self._mismatch("the history was rolled back behind the last commit that it has recorded")
        return last

    def _mark(self, state: Java, history: Java) -> None:
        """Have the state say that it has this history, so that it is missed if it is dropped; once for each history."""
        name, uuid = f"{BEGUN}{self.pipeline}", str(history.uuid())
        if state.properties().get(name) != uuid:
            state.updateProperties().set(name, uuid).commit()

    def _begin(self, state: Java) -> HistoryAccount | None:
        """Begin the history at the state's head, which stays as it is; None if another driver began first."""
        head = state.currentSnapshot()
        newest = entry_of_head(self.job.iceberg, state, self.pipeline)
        if newest is None:
            raise self._mismatch("the state has no ledger yet")
        keys = newest.keys
        rows = keys.rows if keys is not None else 0
        account = HistoryAccount(
            rows=rows, hash=keys.hash if keys is not None else 0, since=int(head.sequenceNumber()), began=rows
        )
        empty = empty_commit(self.job.iceberg, self.history, at=self.job.clock())
        said = self._summary(_offsets(newest), account, state, _at(head))
        self.job.failpoint("history.began")
        return account if commit(self.job, empty, said, pipeline=self.pipeline, on=None) else None

    def _behind(self, state: Java, last: Recorded) -> list[Java] | None:
        """Return the state's snapshots behind the last recorded one, oldest first; None if that was undone."""
        found: list[Java] = []
        for snapshot in lineage(self.job.iceberg, state, state.currentSnapshot().snapshotId()):
            if int(snapshot.snapshotId()) == last.snapshot_id:
                return found[::-1]
            if int(snapshot.sequenceNumber()) <= last.sequence:
                return None
            found.append(snapshot)
        raise self._mismatch(
            f"the state's snapshots behind {last.snapshot_id} were expired before their changes were recorded"
        )

    def _undo(self, state: Java, history: Java, last: Recorded) -> int:
        """Take back what the history has of commits that the state no longer has; return 1."""
        is_there = {
            int(one.snapshotId()) for one in lineage(self.job.iceberg, state, state.currentSnapshot().snapshotId())
        }
        entries = map(Recorded.of, entries_of(history, self.pipeline, last.entry.snapshot_id))
        base = next((one for one in entries if one.snapshot_id in is_there), None)
        if base is None:
            raise self._mismatch("the state was rolled back behind all commits that its history still knows")
        empty = empty_commit(self.job.iceberg, self.history, at=self.job.clock())
        at = (base.snapshot_id, base.sequence)  # it may have expired
        said = self._summary(_offsets(base.entry), base.account, state, at)
        on = last.entry.snapshot_id
        return int(commit(self.job, empty, said, pipeline=self.pipeline, on=on, undone_behind=base.sequence))

    def _record_all(self, state: Java, last: Recorded, snapshots: Sequence[Java], done: Followed) -> bool:
        """Record these snapshots; return whether the history is done with them, or the run is to end."""
        offsets = _offsets(last.entry)
        for snapshot in snapshots:
            if self.job.stopping():
                return True
            found = of(snapshot)
            if str(snapshot.operation()) == "replace" or ledger.UPKEEP in found.summary:
                continue  # upkeep changes no row
            is_own = found.end is not None and found.summary.get(ledger.PIPELINE) == self.pipeline
            offsets = _offsets(found) if is_own else offsets
            try:
                files = ChangedFiles.of(state, snapshot)
                if files.is_empty and offsets == _offsets(last.entry):
                    continue
                rows = self._record(state, snapshot, files, offsets, last)
            except CannotFollow as why:
                raise self._mismatch(
                    f"the changes of the state's snapshot {found.snapshot_id} are unknown: {why}"
                ) from None
            newest = recorded(self.job.iceberg.load(self.history), self.pipeline) if rows is not None else None
            if newest is None or newest.snapshot_id != found.snapshot_id:
                return False
            last, done.commits, done.rows = newest, done.commits + 1, done.rows + (rows or 0)
        return True

    def _record(
        self, state: Java, snapshot: Java, files: ChangedFiles, offsets: Mapping[str, str], last: Recorded
    ) -> int | None:
        """Record one commit; return the number of changed keys, None if another driver committed first."""
        iceberg, sequence = self.job.iceberg, int(snapshot.sequenceNumber())
        assert last.entry.end is not None
        account = last.account.moved(last.entry.end, Offsets.parse(offsets[ledger.END]), sequence)
        staged = empty_commit(iceberg, self.history, at=self.job.clock())
        if not files.is_empty:
            key = identifier_fields(iceberg.schema_json(state))
            by = of(snapshot)
            is_own = by.keys is not None and by.summary.get(ledger.PIPELINE) == self.pipeline
            with changed_rows(iceberg, state, snapshot, files, key, self.job.new_id, is_own=is_own) as changed:
                staged, account = self._stage(changed, key, by, sequence, offsets, account)
        self.job.failpoint("history.staged")
        said = self._summary(offsets, account, state, _at(snapshot))
        is_done = commit(self.job, staged, said, pipeline=self.pipeline, on=last.entry.snapshot_id)
        return staged.rows if is_done else None

    def _stage(
        self,
        changed: DataFrame,
        key: Sequence[str],
        by: Entry,
        sequence: int,
        offsets: Mapping[str, str],
        account: HistoryAccount,
    ) -> tuple[Staged, HistoryAccount]:
        observed, iceberg = Observation(), self.job.iceberg
        columns = iceberg.spark.table(quoted(f"{iceberg.name}.{self.history}")).schema.fields
        is_after, is_before = is_there(AFTER), is_there(ROW_BEFORE)
        hashes = key_hash(changed, key).cast("decimal(38, 0)")
        counted = changed.observe(
            observed,
            F.count_if(is_after & ~is_before).alias("inserted"),
            F.count_if(is_after & is_before).alias("updated"),
            F.count_if(is_before & ~is_after).alias("deleted"),
            F.sum(F.col(WENT) - F.col(CAME)).alias("fewer"),
            F.sum(hashes * (F.col(CAME) - F.col(WENT))).alias("hash"),
        )
        rows = counted.select(*history_values(changed, columns, by, sequence, offsets))
        staged = stage(iceberg, self.history, rows, unique_id=self.job.new_id(), at=self.job.clock())
        counts = observed.get
        said = {name: int(counts[name] or 0) for name in ("inserted", "updated", "deleted")}
        if staged.rows != sum(said.values()):
            raise AssertionError(f"{staged.rows} rows of a history were staged, and {said} were counted")
        doubled = int(counts["fewer"] or 0) - said["deleted"] + said["inserted"]
        return staged, account.after(**said, doubled=doubled, hash_difference=int(counts["hash"] or 0))

    def _summary(
        self, offsets: Mapping[str, str], account: HistoryAccount, state: Java, at: tuple[int, int]
    ) -> dict[str, str]:
        job = self.job
        return summary(job.run, job.version, self.pipeline, offsets, account, state=state, at=at)

    def _mismatch(self, what: str) -> HistoryMismatch:
        return HistoryMismatch.of(self.pipeline, self.history, what)


def _at(snapshot: Java) -> tuple[int, int]:
    return int(snapshot.snapshotId()), int(snapshot.sequenceNumber())


def _offsets(entry: Entry) -> dict[str, str]:
    return {name: entry.summary[name] for name in (ledger.START, ledger.END) if name in entry.summary}
