"""The commits between two batches of a pipeline: which of them are of other engines, and who made them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from frazil.lake.java_classes import Java, entries
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.lineage import ancestors

MOST = 1000
"""So many snapshots are looked back at."""
NAMED = 3
"""So many commits are named in an error."""
_FRAZILS, _REPLACE = "frazil.", "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCommit:
    """A snapshot that is no batch of the pipeline.

    `is_frazils` says whether Frazil made it: maintenance, an operator's decision, or another pipeline. `run` is that run.
    `engine` and `application` (Spark's id) are what the snapshot says of who made it; each is empty if it says nothing.
    """

    snapshot_id: int
    operation: str
    is_frazils: bool
    run: str = ""
    engine: str = ""
    application: str = ""

    @classmethod
    def of(cls, snapshot_id: int, operation: str, summary: Mapping[str, str]) -> OtherCommit:
        """Read it from a snapshot's summary."""
        engine = " ".join(filter(None, (summary.get("engine-name"), summary.get("engine-version"))))
        return cls(
            snapshot_id=snapshot_id,
            operation=operation,
            is_frazils=any(key.startswith(_FRAZILS) for key in summary),
            run=summary.get(ledger.RUN, ""),
            engine=engine,
            application=summary.get("spark.app.id", ""),
        )

    @property
    def is_foreign(self) -> bool:
        """Return whether another engine wrote or deleted rows; Iceberg's `replace` changes none."""
        return not self.is_frazils and self.operation != _REPLACE

    @property
    def who(self) -> str:
        """The maker of the commit, in words."""
        if self.is_frazils:
            return f"Frazil's run {self.run}" if self.run else "Frazil"
        return (self.engine or "an unknown engine") + (f", application {self.application}" if self.application else "")

    def __str__(self) -> str:
        """Return what it did, and who made it."""
        return f"{self.operation} by {self.who} (snapshot {self.snapshot_id})"


class OtherCommits:
    """The other commits that one call of `commit` meets, by the heads of its tries.

    `met` is called for each one of another engine that wrote rows since the newest batch of the `pipeline`. It is None for a table
    that may have other writers: then only commits between two tries are looked at.
    """

    def __init__(self, pipeline: str, met: Callable[[OtherCommit], None] | None) -> None:
        self._pipeline, self._met = pipeline, met
        self._between: list[OtherCommit] = []
        self._heads: list[int] = []
        self._tries = 0

    def see(self, table: Java, head: int | None) -> None:
        """Look at the commits behind the head of the loaded `table` that are new since the last try."""
        self._tries += 1
        if head is None or head in self._heads:
            return
        found: list[OtherCommit] = []
        if self._heads or self._met is not None:
            for snapshot in islice(ancestors(table, head), MOST):
                snapshot_id, summary = int(snapshot.snapshotId()), entries(snapshot.summary())
                if snapshot_id in self._heads or _ends_the_look(summary, self._pipeline):
                    break
                found.append(OtherCommit.of(snapshot_id, str(snapshot.operation()), summary))
        found.reverse()
        if self._heads:
            self._between += found
        self._heads.append(head)
        for commit in found:
            if self._met is not None and commit.is_foreign:
                self._met(commit)

    @property
    def text(self) -> str:
        """The commits between the tries, as a clause of an error that begins with a semicolon; empty after a single try."""
        if self._tries < 2:
            return ""
        if not self._between:
            return f"; in {self._tries} tries no other commit changed the table's head"
        last = ", then ".join(map(str, self._between[-NAMED:]))
        return f"; in {self._tries} tries {len(self._between)} other commits came first, at last {last}"


def _ends_the_look(summary: Mapping[str, str], pipeline: str) -> bool:
    """Return whether a snapshot is a batch of the pipeline, or a ledger that was rebuilt from the rows: they are as they are then.

    Upkeep and other decisions of an operator carry offsets, too; a foreign commit before them was not met yet.
    """
    if summary.get(ledger.PIPELINE) != pipeline or ledger.UPKEEP in summary:
        return False
    return ledger.EVENTS not in summary or json.loads(summary[ledger.EVENTS]).get("event") == "ledger-lost"
