"""One maintenance run: its job and policy, the tables that it maintains, and the outcome of an action."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from frazil.declaration import Pipeline
from frazil.exit_codes import Exit
from frazil.job.context import JobContext
from frazil.lake.ledger import entry as ledger

GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings of upkeep. All ages are in seconds.

    `closed_seconds`: a partition to which nothing was added for so long is closed. `grace_seconds`: no snapshot younger
    than that expires, whatever is declared, since a query may still read it. `orphan_seconds`: no file younger than that
    is an orphan; less than three days is refused. `lease_seconds`: how long a maintainer that died keeps others away.
    `group_bytes`: the most that is rewritten by one Spark job; `groups_a_commit`: how many groups one commit swaps. `many_files`:
    so many small files are rewritten though their partition grows; `small_bytes`: larger files are not small, by default those of
    three quarters of the target size. `dry_run`: only report what would be done.
    """

    closed_seconds: float = 3600.0
    grace_seconds: float = 3600.0
    orphan_seconds: float = 3 * 86_400.0
    lease_seconds: float = 1800.0
    group_bytes: int = 10 * GIB
    groups_a_commit: int = 10
    many_files: int = 100
    small_bytes: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class MaintenanceRun:
    """One run of maintenance: its job, and how it is done."""

    job: JobContext
    policy: Policy = Policy()

    def summary(self, action: Action) -> dict[str, str]:
        """Return what a snapshot that an action makes says of itself."""
        return {ledger.UPKEEP: action.value, ledger.RUN: self.job.run, ledger.VERSION: self.job.version}


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
    """The end of an action.

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
class Target:
    """One of a pipeline's tables. The rows of a dead-letter table are decided with the other's commits."""

    pipeline: Pipeline
    is_dead_letter_table: bool

    @classmethod
    def of(cls, pipeline: Pipeline) -> tuple[Target, ...]:
        """Return all tables of a pipeline, its own table first."""
        return (cls(pipeline, is_dead_letter_table=False), cls(pipeline, is_dead_letter_table=True))

    @property
    def identifier(self) -> str:
        """The table's name in the catalog."""
        table = self.pipeline.table
        return table.dead_letters if self.is_dead_letter_table else table.identifier

    @property
    def has_own_deletes(self) -> bool:
        """Return whether deletes of the table are Frazil's own."""
        return self.pipeline.write.replaces_rows and not self.is_dead_letter_table

    def outcome(self, action: Action, ended: Status = Status.DONE, why: str = "", **numbers: Any) -> Outcome:
        """Return the outcome of an action at this table; `numbers` are its further members."""
        return Outcome(action=action, table=self.identifier, ended=ended, why=why, **numbers)


def exit_code(outcomes: Iterable[Outcome]) -> Exit:
    """Return the exit code of a maintenance run: a decision that an operator must make weighs more than a failure."""
    ended = {one.ended for one in outcomes}
    if Status.DECISION_REQUIRED in ended:
        return Exit.DECISION_REQUIRED
    return Exit.FAILED if Status.FAILED in ended else Exit.SUCCESS
