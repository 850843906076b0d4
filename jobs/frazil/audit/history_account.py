"""The proof of a history: the account that its changes make, compared with that of the state's commits at the same offsets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from frazil.audit.finding import Finding, Flaw, worst
from frazil.audit.history_changes import of_rows
from frazil.audit.verification import Verification
from frazil.declaration import Pipeline
from frazil.declaration.write_modes import history
from frazil.lake import ledger
from frazil.lake.history.history_ledger import BEGUN, HISTORY, OF_SNAPSHOT, Recorded, commits_behind, is_undone
from frazil.lake.read.stored_tables import Lake, Snapshot, StoredTable

_CHANGED = ("added-records", "deleted-records", "added-position-deletes", "added-equality-deletes", "added-dvs")


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """The history of a pipeline that declares one, loaded before the state: it can only be behind that, never ahead."""

    pipeline: Pipeline
    stored: StoredTable | None

    @classmethod
    def of(cls, pipeline: Pipeline, lake: Lake) -> LoadedHistory | None:
        """Load it; None for a pipeline without a history."""
        if history(pipeline.write) is None:
            return None
        return cls(pipeline, lake.table(pipeline.table.history))

    def added_to(self, result: Verification, state: StoredTable | None) -> Verification:
        """Return the verification with what is found in the history; a deep one reads its rows, if its commits are in order."""
        findings, notes = self._compared(state) if state is not None else ([], ())
        if result.is_deep and state is not None and self.stored is not None and not findings:
            findings = self._of_rows(self.stored, state)
        found = (*result.findings, *findings)
        return replace(result, findings=found, notes=(*result.notes, *notes), outcome=worst(found))

    def _of_rows(self, history: StoredTable, state: StoredTable) -> list[Finding]:
        commits = [Recorded.of(one.entry) for one in history.commits(self.pipeline.name)]
        is_shortened = any(
            ledger.UPKEEP in one.summary and one.operation == "delete" for one in history.ancestors(history.head)
        )
        return of_rows(history, state, commits[::-1], is_shortened=is_shortened)

    def _compared(self, state: StoredTable) -> tuple[list[Finding], tuple[str, ...]]:
        name, held = self.pipeline.name, state.newest(self.pipeline.name)
        if held is None:
            return [], ()
        newest = self.stored.newest(name) if self.stored is not None else None
        if self.stored is None and f"{BEGUN}{name}" in state.properties:
            what = (
                "the table does not exist, and had changes of the state: it was dropped. Restore it; else the next run of the "
                "pipeline begins another one, without the changes up to then"
            )
            return [self._wrong(what)], ()
        if self.stored is None or newest is None:
            return [], (f"table {self.pipeline.table.history} has not begun: the next run of the pipeline begins it",)
        if self.stored.properties.get(ledger.WRITE_MODE) != HISTORY:
            return [self._wrong("the table was not made as a history")], ()
        if not self.stored.follows_tag(name):
            return [self._wrong("its head is not its last commit, nor comes after it: it was rolled back by hand")], ()
        last = Recorded.of(newest.entry)
        if last.table_uuid != state.uuid:
            return [self._wrong("it is the history of a table that was dropped and created again")], ()
        if state.head is not None and last.sequence > state.head.sequence_number:
            return [
                self._wrong(f"it has changes up to the state's snapshot {last.snapshot_id}, which the state lacks")
            ], ()
        if is_undone(state, last):
            return [], (f"the history has changes of commits that were undone; the next run of {name} takes them back",)
        since = (f"the history begins with {last.account.began:,} rows",) if last.account.began else ()
        commits = state.commits(name)
        behind = commits_behind(state, newest.entry, name)
        notes = (
            *since,
            *([f"the history is {behind} commits behind the table; the next run appends them"] if behind else []),
        )
        keys = next((c.entry.keys for c in commits if c.sequence_number <= last.sequence), None)
        foreign = [
            self._wrong(f"snapshot {snapshot.id} is another writer's, and changed rows of the history")
            for snapshot in self.stored.ancestors(self.stored.head)
            if _is_foreign(snapshot)
        ]
        if keys is None or (keys.rows, keys.hash) == (last.account.rows, last.account.hash):
            return foreign, notes
        what = (
            f"its changes make {last.account.rows} rows, and the table had {keys.rows} at the same offsets"
            if keys.rows != last.account.rows
            else f"its changes make {last.account.rows} rows, which are of other keys than those of the table at the same offsets"
        )
        return [self._wrong(what), *foreign], notes

    def _wrong(self, what: str) -> Finding:
        return Finding(flaw=Flaw.HISTORY_DIFFERS, where=f"table {self.pipeline.table.history}", what=what)


def _is_foreign(snapshot: Snapshot) -> bool:
    """Return whether a snapshot of a history changed rows and is neither a commit that follows the state nor upkeep."""
    summary = snapshot.summary
    if OF_SNAPSHOT in summary or ledger.UPKEEP in summary or snapshot.operation == "replace":
        return False
    return any(int(summary.get(name, 0)) for name in _CHANGED)
