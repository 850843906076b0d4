"""Compaction of deleted rows by the driver of a table of current state, between two of its batches.

A separate compaction of such a table starves: with random keys each batch deletes rows of every file, and a rewrite is refused if a
file got a delete since it was planned. Between two batches no commit of the driver's own can come in between.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from frazil.declaration import Pipeline
from frazil.job.context import JobContext
from frazil.lake.iceberg_java import error_text
from frazil.lake.java_classes import Java, entries
from frazil.lake.rewrite import DELETED_SHARE, MANY_DELETE_FILES
from frazil.maintain.compact import compact
from frazil.maintain.lease import PROPERTY, Lease
from frazil.maintain.result import Action, Outcome, Status
from frazil.maintain.selection import Why
from frazil.maintain.target import MaintenanceRun, Policy, Target

MIB = 1 << 20
BYTES_A_SECOND = 8.0 * MIB
"""How fast a group is expected to be rewritten, until one was."""
SHARE_OF_TIME = 0.2
"""Upkeep takes this share of a driver's time at most, on a long average."""

MANY_DELETED_ROWS = 10_000
"""A table with fewer deleted rows is not rewritten for their share: reading them takes no time."""
CANCEL_SECONDS = 0.2


@dataclass(slots=True)
class BetweenBatches:
    """The compaction of one pipeline's table by its driver.

    One call takes `budget_seconds` at most: a Spark job that is not done by then is cancelled, and a file that takes so long is
    left to the maintenance job. Groups are as large as half of the time is expected to allow.
    """

    job: JobContext
    pipeline: Pipeline
    budget_seconds: float
    rate: float = BYTES_A_SECOND
    most_bytes: float = inf
    not_before: float = 0.0

    def compact(self, *, at_end: bool = False) -> Outcome | None:
        """Rewrite files of which many rows are deleted; None if nothing is due. `at_end`: no batch of the run will wait for it.

        Another writer's commit ends the call (`Status.CONFLICT`), and so does the budget (`Status.STOPPED`). What fails
        otherwise (`Status.FAILED`) leaves the table as it was. Raises `RowsWouldChange`.
        """
        began, name = self.job.clock(), self.pipeline.table.identifier
        table = self.job.iceberg.load(name)
        if (began < self.not_before and not at_end) or not is_due(table) or not self._is_free(table):
            return None
        policy = Policy(group_bytes=max(MIB, round(self.rate * self.budget_seconds / 2)), groups_a_commit=1)
        run, target = MaintenanceRun(self.job, policy), Target(self.pipeline, is_dead_letter_table=False)
        budget = _Budget(self.job, self.budget_seconds)
        try:
            with budget:
                found = compact(
                    run,
                    target,
                    Lease(),
                    hold=lambda: not budget.is_over,
                    chosen=lambda group, verdict: verdict is Why.DELETED and group.bytes <= self.most_bytes,
                )
        except (Py4JJavaError, PySparkException) as error:
            ended = Status.STOPPED if budget.is_over or self.job.stopping() else Status.FAILED
            found = Outcome(action=Action.COMPACT, table=name, ended=ended, why=error_text(error).partition("\n")[0])
        seconds = self.job.clock() - began
        self.not_before = self.job.clock() + seconds * (1 / SHARE_OF_TIME - 1)
        if found.bytes_removed:
            self.rate = found.bytes_removed / max(seconds, 0.001)
        if found.ended is Status.STOPPED and budget.is_over:
            self.rate = min(self.rate, policy.group_bytes / self.budget_seconds)
            self.most_bytes = self.most_bytes if found.snapshots else min(self.most_bytes, policy.group_bytes)
            found = replace(found, why=f"{self.budget_seconds} s were over")
        return replace(found, seconds=round(seconds, 3))

    def _is_free(self, table: Java) -> bool:
        """Return whether no maintenance run is at the table."""
        lease = Lease.of({PROPERTY: str(table.properties().get(PROPERTY) or "{}")})
        return lease.is_free(self.job.run, self.job.now_ms())


def is_due(table: Java) -> bool:
    """Return whether the head's summary counts as many deletes as a file would be rewritten for."""
    head = table.currentSnapshot()
    summary = entries(head.summary()) if head is not None else {}
    deleted, rows, files = (
        int(summary.get(f"total-{what}", 0)) for what in ("position-deletes", "records", "delete-files")
    )
    return files >= MANY_DELETE_FILES or deleted >= max(rows * float(DELETED_SHARE), MANY_DELETED_ROWS)


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

    def __enter__(self) -> None:
        self._spark.addJobTag(self._tag)
        self._watch.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()
        self._spark.removeJobTag(self._tag)
