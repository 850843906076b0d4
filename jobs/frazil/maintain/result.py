"""What one action of upkeep did to one table, as a value and as one JSON line of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from frazil.exit_codes import Exit

Sink = Callable[[Mapping[str, Any]], None]


class Action(StrEnum):
    """The actions, by the name in the log, in the order in which they are done.

    `COMPACT`: small files become few. `MERGE`: so do delete files, and those that name rows of no data file go. `CARRY`: the tag of
    an idle pipeline moves to a new, empty snapshot with the same offsets. `EXPIRE`: old snapshots go, and the data files that only
    they refer to. `ORPHANS`: files that nothing refers to go.
    """

    COMPACT = "compact"
    MERGE = "merge"
    CARRY = "carry"
    EXPIRE = "expire"
    ORPHANS = "orphans"


class Status(StrEnum):
    """How an action ended.

    `DONE`: everything due is done, or nothing was due. `DRY_RUN`: a dry run reported what it would do. `CONFLICT`:
    another writer's commit came first and it gave up; nothing changed, the next run tries again. `BUSY`: another
    maintainer holds the lease. `DECISION_REQUIRED`: the table was rolled back, and nothing was done until an operator decides.
    `STOPPED`: the run was asked to end, or lost its lease. `FAILED`: an error ended it.
    """

    DONE = "done"
    DRY_RUN = "dry_run"
    CONFLICT = "conflict"
    BUSY = "busy"
    DECISION_REQUIRED = "decision_required"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one action. In a dry run the numbers are of what it would do.

    `files_removed` and `bytes_removed` are of files that left the table (compact, merge) or were deleted (expire, orphans);
    `files_added` and `bytes_added` of those that replaced them. `rows` is the number of rows in the rewritten files, which does
    not change. `left` counts, by reason, what was examined and left alone.
    """

    action: Action
    table: str
    ended: Status = Status.DONE
    snapshots: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    files_added: int = 0
    bytes_added: int = 0
    rows: int = 0
    left: Mapping[str, int] = field(default_factory=dict)
    why: str = ""
    seconds: float = 0.0

    def document(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        return {**asdict(self), "action": self.action.value, "ended": self.ended.value, "left": dict(self.left)}


@dataclass(frozen=True, slots=True)
class Reporter:
    """Says what upkeep does for one pipeline: every line carries pipeline and run."""

    sink: Sink
    pipeline: str
    run: str
    clock: Callable[[], float]

    def __call__(self, outcome: Outcome) -> None:
        """Write one outcome."""
        self.sink(
            {
                "time": round(self.clock(), 3),
                "event": "maintained",
                "pipeline": self.pipeline,
                "run": self.run,
                **outcome.document(),
            }
        )


def exit_code(outcomes: Iterable[Outcome]) -> Exit:
    """Return the exit code of a maintenance run: a decision that an operator must make weighs more than a failure."""
    ended = {one.ended for one in outcomes}
    if Status.DECISION_REQUIRED in ended:
        return Exit.DECISION_REQUIRED
    return Exit.FAILED if Status.FAILED in ended else Exit.SUCCESS
