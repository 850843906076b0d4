"""What all actions of one maintenance run share, and the tables that they maintain."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.declaration import Pipeline
from frazil.declaration.partitioning import SortField
from frazil.job.context import JobContext

GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How upkeep is done. All ages are in seconds.

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
    def sort_fields(self) -> tuple[SortField, ...]:
        """The order of rows within files that is declared for it."""
        return () if self.is_dead_letter_table else self.pipeline.table.sort_fields
