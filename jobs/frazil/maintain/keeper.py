"""Keeper: what all actions of one maintenance run share, and the tables they work at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from frazil.declaration import Pipeline
from frazil.declaration.partitioning import SortField
from frazil.lake.iceberg_java import Iceberg

GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How upkeep is done. All ages are in seconds.

    `closed_seconds`: a partition to which nothing was added for so long is closed. `grace_seconds`: no snapshot younger
    than that expires, whatever is declared, since a query may still read it. `orphan_seconds`: no file younger than that
    is an orphan; less than three days is refused. `lease_seconds`: how long a maintainer that died keeps others away.
    `group_bytes`: the most that is rewritten by one Spark job; `groups_a_commit`: how many groups one commit swaps.
    """

    closed_seconds: float = 3600.0
    grace_seconds: float = 3600.0
    orphan_seconds: float = 3 * 86_400.0
    lease_seconds: float = 1800.0
    group_bytes: int = 10 * GIB
    groups_a_commit: int = 10
    many_files: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """What all pipelines of one maintenance run share. `reach` marks steps for tests; `stopping` says that it is to end."""

    spark: SparkSession
    iceberg: Iceberg
    run: str
    version: str
    clock: Callable[[], float]
    wait: Callable[[float], None]
    ticket: Callable[[], str]
    policy: Policy = Policy()
    dry_run: bool = False
    reach: Callable[[str], None] = lambda step: None
    stopping: Callable[[], bool] = lambda: False

    def now_ms(self) -> int:
        """Now, in milliseconds since 1970."""
        return round(self.clock() * 1000)

    def ago_ms(self, seconds: float) -> int:
        """So many seconds ago, in milliseconds since 1970."""
        return round((self.clock() - seconds) * 1000)


@dataclass(frozen=True, slots=True)
class Kept:
    """One of a pipeline's tables. `is_side`: the dead-letter table, whose rows are decided with the other's commits."""

    pipeline: Pipeline
    is_side: bool

    @property
    def identifier(self) -> str:
        """The table's name in the catalog."""
        return self.pipeline.table.dead_letters if self.is_side else self.pipeline.table.identifier

    @property
    def sort_fields(self) -> tuple[SortField, ...]:
        """The order of rows within files that is declared for it."""
        return () if self.is_side else self.pipeline.table.sort_fields
