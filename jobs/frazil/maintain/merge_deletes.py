"""Merge delete files of a table of current state, and take away those that name rows of no data file."""

from __future__ import annotations

from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from frazil.lake.commit.delete_swap import swap
from frazil.lake.delete_files.java_manifests import DeleteFile, Partition
from frazil.lake.delete_files.merged_deletes import Merged, merges, write
from frazil.lake.iceberg_java import message, thrown
from frazil.lake.java_classes import Java
from frazil.lake.ledger import entry as ledger
from frazil.lake.rewrite import MANY_DELETE_FILES
from frazil.maintain.compact import CONFLICTS
from frazil.maintain.result import Action, Outcome, Status
from frazil.maintain.target import MaintenanceRun, Target


def has_deletes(target: Target) -> bool:
    """Return whether deletes of a table are Frazil's own."""
    return target.pipeline.write.replaces_rows and not target.is_dead_letter_table


def merge_deletes(
    run: MaintenanceRun,
    target: Target,
    *,
    hold: Callable[[], bool] = lambda: True,
    wanted: Callable[[Partition, int], bool] = lambda partition, named: True,
) -> Outcome:
    """Merge the delete files of one table, as far as they are due, in one commit. It changes no row.

    `hold` says before each part whether to go on; what was found before is committed. `wanted` is as in `merges`. Raises
    `RowsWouldChange`, with nothing committed.
    """
    began, iceberg = run.job.clock(), run.job.iceberg
    table = iceberg.load(target.identifier)
    head = table.currentSnapshot()
    removed, added, stopped = list[DeleteFile](), list[tuple[Java, int]](), False
    if head is not None and str(head.summary().get("total-delete-files")) != "0":
        on = int(head.snapshotId())
        for found in merges(iceberg, table, on, many=MANY_DELETE_FILES, wanted=wanted):
            if run.job.stopping() or not hold():
                stopped = True
                break
            removed += found.removed
            if not run.policy.dry_run:
                added += write(iceberg, table, on, found)
    ended, why = Status.STOPPED if stopped else Status.DONE, ""
    is_made = False
    if removed and run.policy.dry_run:
        ended = Status.DRY_RUN
    elif removed:
        run.job.failpoint("merge.written")
        merged = Merged(on, tuple(removed), tuple(added))
        is_made, why = _committed(run, target, merged)
        ended = ended if is_made else Status.CONFLICT
    counts = is_made or run.policy.dry_run
    return Outcome(
        action=Action.MERGE,
        table=target.identifier,
        ended=ended,
        snapshots=int(is_made),
        files_removed=len(removed) if counts else 0,
        bytes_removed=sum(file.bytes for file in removed) if counts else 0,
        files_added=len(added) if counts else 0,
        bytes_added=sum(int(file.fileSizeInBytes()) for file, _ in added) if counts else 0,
        why=why,
        seconds=round(run.job.clock() - began, 3),
    )


def _committed(run: MaintenanceRun, target: Target, merged: Merged) -> tuple[bool, str]:
    """Return whether it was committed, and why not."""
    summary = {ledger.UPKEEP: Action.MERGE.value, ledger.RUN: run.job.run, ledger.VERSION: run.job.version}
    try:
        is_made = swap(run.job, target.identifier, merged, ledger.tag(target.pipeline.name), summary)
    except Py4JJavaError as error:
        if thrown(error) not in CONFLICTS:
            raise
        return False, f"{thrown(error)}: {message(error)}"
    except (
        PySparkException
    ) as error:  # what PySpark makes of Java's IllegalArgumentException: the format version was raised
        return False, str(error).splitlines()[0]
    return is_made, "" if is_made else "the table's head does not descend from the one before"
