"""What each commit of a history records: the commit of the state that it follows, and the account of the rows of both."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from frazil.lake import ledger
from frazil.lake.history.set_backs import SetBack, set_backs_after
from frazil.lake.ledger import Entry
from frazil.lake.offsets import Offsets, canonical
from frazil.lake.read.stored_tables import StoredTable

HISTORY = "history"
"""The value of `ledger.WRITE_MODE` in the table of a history."""
OF_SNAPSHOT = "frazil.of-snapshot"  # the state's snapshot up to which its changes are recorded
OF_SEQUENCE = "frazil.of-sequence"  # the sequence number of that snapshot
BEGUN = "frazil.history-of."
"""How a property of the state begins, with the pipeline's name behind it: uuid of the history that has its changes."""
ACCOUNT = "frazil.history"  # canonical JSON of `HistoryAccount`
_SELDOM = ("doubled", "set_backs")
"""What an account names only if there is some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryAccount:
    """The rows that the recorded changes make of the state with which the history began.

    `rows` and `hash` are as in `KeyAccount`, computed from the changes. The history begins behind the state's snapshot of the
    sequence number `since`, which had `began` rows; the history of a state that began empty is complete. `inserted`, `updated`
    and `deleted` count the changes since then: rows that came, that were replaced, and that went. `doubled` is how many rows went
    beside the one of each key, without those that came so. `set_backs` are the commits since then that set offsets back, as far as
    they matter, oldest first.
    """

    rows: int
    hash: int
    since: int
    began: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    doubled: int = 0
    set_backs: tuple[SetBack, ...] = ()

    def __str__(self) -> str:
        """Return canonical JSON; the hash is 16 hexadecimal digits."""
        document: dict[str, Any] = {**asdict(self), "hash": f"{self.hash:016x}"}
        document["set_backs"] = [[one.sequence, {str(p): o for p, o in one.at.items()}] for one in self.set_backs]
        return canonical({name: value for name, value in document.items() if value or name not in _SELDOM})

    @classmethod
    def parse(cls, text: str) -> HistoryAccount:
        """Return the account that `str()` wrote."""
        document = json.loads(text)
        known = document.pop("set_backs", ())
        set_backs = tuple(SetBack(sequence, {int(p): o for p, o in at.items()}) for sequence, at in known)
        return cls(**{**document, "hash": int(document["hash"], 16), "set_backs": set_backs})

    def after(
        self, *, inserted: int, updated: int, deleted: int, hash_difference: int, doubled: int = 0
    ) -> HistoryAccount:
        """Return the account after a commit with so many changes; the rows that came minus those that went have this hash."""
        return replace(
            self,
            rows=self.rows + inserted - deleted - doubled,
            hash=(self.hash + hash_difference) % 2**64,
            inserted=self.inserted + inserted,
            updated=self.updated + updated,
            deleted=self.deleted + deleted,
            doubled=self.doubled + doubled,
        )

    def moved(self, before: Offsets, now: Offsets, sequence: int) -> HistoryAccount:
        """Return the account after the state's commit of this sequence number moved its offsets, perhaps back."""
        return replace(self, set_backs=set_backs_after(self.set_backs, before, now, sequence))


@dataclass(frozen=True, slots=True)
class Recorded:
    """The newest commit of a history: its ledger entry, and what it says of the state."""

    entry: Entry
    table_uuid: str
    snapshot_id: int
    sequence: int
    account: HistoryAccount

    @classmethod
    def of(cls, entry: Entry) -> Recorded:
        """Read a ledger entry of a history."""
        said = entry.summary
        account = HistoryAccount.parse(said[ACCOUNT])
        return cls(entry, said[ledger.TABLE], int(said[OF_SNAPSHOT]), int(said[OF_SEQUENCE]), account)


def is_undone(state: StoredTable, last: Recorded) -> bool:
    """Return whether the ancestors of the state's head, as far as they are there, lack the commit that was recorded last."""
    found = next((s for s in state.ancestors(state.head) if s.sequence_number <= last.sequence), None)
    return found is not None and found.id != last.snapshot_id


def commits_behind(state: StoredTable, newest: Entry, pipeline: str) -> int:
    """Return how many commits of the state a history lacks, whose newest entry is `newest`. Upkeep is none of them."""
    last = Recorded.of(newest)
    commits = state.commits(pipeline)
    return sum(one.sequence_number > last.sequence and ledger.UPKEEP not in one.summary for one in commits)
