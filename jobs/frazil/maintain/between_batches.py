"""Compaction of files and deletes by the driver of an upsert table, between two of its batches.

A separate compaction of such a table starves: with random keys each batch deletes rows of every file, and a rewrite is refused if a
file got a delete since it was planned. Between two batches no commit of the driver's own can come in between.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from frazil.declaration import Pipeline
from frazil.errors import RowsWouldChange
from frazil.job.context import JobContext
from frazil.lake.iceberg_java import said
from frazil.lake.java_classes import Java, entries
from frazil.lake.rewrite import DELETED_SHARE, MANY_DELETE_FILES, Group
from frazil.maintain.choose_upkeep import Why
from frazil.maintain.compact import compact, merge_deletes
from frazil.maintain.lease import PROPERTY, Lease
from frazil.maintain.target import Action, MaintenanceRun, Outcome, Policy, Status, Target

MIB = 1 << 20
FIRST_BYTES_A_SECOND, LEAST_BYTES, MOST_BYTES = 8 * MIB, 16 * MIB, 512 * MIB
"""The size of a group: half of what the time is expected to allow at first, then half or double, within bounds."""
GROUPS = 4
"""So many groups are rewritten in one call at most: each is a commit, which stays until the maintenance job expires it."""
RETRY_SECONDS = 3600.0
"""After so long, files that once took longer than the time are tried again."""
SHARE_OF_TIME = 0.2
"""Upkeep takes this share of a driver's time at most, on a long average."""

MANY_DELETED_ROWS = 10_000
"""A table with fewer deleted rows is not rewritten for their share: reading them takes no time."""
MANY_SMALL, SMALL_BYTES = 20, 16 * MIB
"""So many files below this size are rewritten, though no row of them is deleted. Larger ones are left to the maintenance job: each
rewrite keeps the replaced files until that job expires them."""
MANY_SMALL_AT_END = 5
"""So many are enough at the end of a run: no batch waits for it, and readers find the table as it is left until the next run."""
CANCEL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of the head's summary; `deleted` are deletes of rows, `rows` those of the data files, deleted ones included."""

    data_files: int = 0
    delete_files: int = 0
    deleted: int = 0
    rows: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, table: Java) -> Counted:
        """Read it from a loaded table."""
        head = table.currentSnapshot()
        summary = entries(head.summary()) if head is not None else {}
        names = ("data-files", "delete-files", "position-deletes", "records", "files-size")
        return cls(*(int(summary.get(f"total-{name}", 0)) for name in names))


@dataclass(slots=True)
class BetweenBatches:
    """The compaction of one pipeline's table by its driver.

    One call takes `budget_seconds` at most: a Spark job that is not done by then is cancelled, and a file that takes so long is
    left to the maintenance job. What was committed before stays.
    """

    job: JobContext
    pipeline: Pipeline
    budget_seconds: float
    group_bytes: int = 0
    too_large: float = inf
    retry_at: float = inf
    not_before: float = 0.0
    seen: Counted = Counted()

    def __post_init__(self) -> None:
        self.group_bytes = max(LEAST_BYTES, round(FIRST_BYTES_A_SECOND * self.budget_seconds / 2))

    def compact(self, *, at_end: bool = False) -> Outcome | None:
        """Merge delete files, then rewrite files of which many rows are deleted, and many small ones; None if nothing is due.

        `at_end`: no batch of the run will wait for it.

        Another writer's commit ends the call (`Status.CONFLICT`), and so does the budget (`Status.STOPPED`). What fails otherwise
        (`Status.FAILED`) leaves the table as it was. Rows that would change by a rewrite are such a failure; nothing is rewritten
        from then on.
        """
        began, name = self.job.clock(), self.pipeline.table.identifier
        if began < self.not_before and (not at_end or self.not_before == inf):
            return None
        if began >= self.retry_at:
            self.too_large = self.retry_at = inf
        budget = _Budget(self.job, self.budget_seconds)
        many_small = MANY_SMALL_AT_END if at_end else MANY_SMALL
        sizes, started, merged = list[int](), 0, list[Outcome]()
        rewritten = set[str]()

        def chosen(group: Group, verdict: Why) -> bool:
            is_chosen = verdict in (Why.DELETED, Why.MANY) and group.bytes < self.too_large and len(sizes) < GROUPS
            if is_chosen:
                sizes.append(group.bytes)
                rewritten.add(group.partition)
            return is_chosen

        def hold() -> bool:
            nonlocal started
            started += not budget.is_over
            return not budget.is_over

        try:
            table = self.job.iceberg.load(name)
            if not is_due(Counted.of(table), self.seen, many_small) or not self._is_free(table):
                return None
            policy = Policy(
                group_bytes=self.group_bytes, groups_a_commit=1, many_files=many_small, small_bytes=SMALL_BYTES
            )
            run, target = MaintenanceRun(self.job, policy), Target(self.pipeline, is_dead_letter_table=False)
            with budget:
                merged.append(
                    merge_deletes(run, target, hold=budget.holds, wanted=lambda _, named: named >= MANY_DELETE_FILES)
                )
                found = compact(run, target, Lease(), hold=hold, chosen=chosen)
                if found.snapshots:  # deletes may name files that have gone now
                    merged.append(
                        merge_deletes(run, target, hold=budget.holds, wanted=lambda one, _: one[1] in rewritten)
                    )
            is_all = found.ended is Status.DONE and len(sizes) < GROUPS
            self.seen = Counted.of(self.job.iceberg.load(name)) if is_all else Counted()
        except (Py4JJavaError, PySparkException, RowsWouldChange) as error:
            why = str(error) if isinstance(error, RowsWouldChange) else said(error)
            ended = Status.STOPPED if self.job.stopping() or budget.is_over else Status.FAILED
            found = Outcome(action=Action.COMPACT, table=name, ended=ended, why=why)
            if isinstance(error, RowsWouldChange):
                found, self.not_before = replace(found, ended=Status.FAILED), inf
        seconds = self.job.clock() - began
        self.not_before = max(self.not_before, self.job.clock() + seconds * (1 / SHARE_OF_TIME - 1))
        self._learn(found, sizes[found.snapshots] if budget.is_over and started > found.snapshots else None)
        if found.ended is Status.STOPPED and budget.is_over:
            found = replace(found, why=f"{self.budget_seconds} s were over")
        return _with(found, merged, seconds)

    def _learn(self, found: Outcome, cancelled: int | None) -> None:
        """Choose the size of groups; `cancelled` is that of the group that was begun and not done in time."""
        if found.ended is Status.DONE:
            self.group_bytes = min(self.group_bytes * 2, MOST_BYTES)
        elif cancelled is not None and not found.snapshots:
            self.group_bytes = max(self.group_bytes // 2, LEAST_BYTES)
            if cancelled > self.group_bytes:
                self.too_large, self.retry_at = min(self.too_large, cancelled), self.job.clock() + RETRY_SECONDS

    def _is_free(self, table: Java) -> bool:
        """Return whether no maintenance run is at the table."""
        lease = Lease.of({PROPERTY: str(table.properties().get(PROPERTY) or "{}")})
        return lease.is_free(self.job.run, self.job.now_ms())


def _with(found: Outcome, merged: Sequence[Outcome], seconds: float) -> Outcome:
    """Return the result of a compaction together with those of merging deletes."""
    numbers = ("snapshots", "files_removed", "bytes_removed", "files_added", "bytes_added")
    sums = {name: sum(getattr(one, name) for one in (found, *merged)) for name in numbers}
    why = next((one.why for one in (found, *merged) if one.why), "")
    return replace(found, **sums, why=why, seconds=round(seconds, 3))


def is_due(now: Counted, seen: Counted, many_small: int) -> bool:
    """Return whether there are many deletes or small files, or many more than a look has `seen` and left."""
    small = now.data_files - now.bytes // SMALL_BYTES
    return (
        now.delete_files - seen.delete_files >= MANY_DELETE_FILES
        or now.deleted >= max(now.rows * float(DELETED_SHARE), MANY_DELETED_ROWS)
        or min(small, now.data_files - seen.data_files) >= many_small
    )


class _Budget:
    """A time after which the Spark jobs that this thread starts in the block are cancelled."""

    def __init__(self, job: JobContext, seconds: float) -> None:
        self._spark, self._tag, self._seconds = job.spark.sparkContext, f"frazil-upkeep-{job.new_id()}", seconds
        self._done, self.is_over = threading.Event(), False
        self._watch = threading.Thread(target=self._cancel, name="upkeep-budget", daemon=True)

    def _cancel(self) -> None:
        wait = self._seconds
        while not self._done.wait(wait):
            self.is_over, wait = True, CANCEL_SECONDS
            with suppress(Py4JError, OSError):  # the JVM ended, and its jobs with it
                self._spark.cancelJobsWithTag(self._tag)

    def holds(self) -> bool:
        """Return whether there is time left."""
        return not self.is_over

    def __enter__(self) -> None:
        self._spark.addJobTag(self._tag)
        self._watch.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()
        self._spark.removeJobTag(self._tag)
