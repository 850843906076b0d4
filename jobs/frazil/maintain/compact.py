"""Compact small files, and merge delete files, with the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column

from frazil.errors import RowsWouldChange
from frazil.lake import rewrite
from frazil.lake.commit.delete_swap import swap
from frazil.lake.delete_files.java_manifests import DeleteFile, Partition
from frazil.lake.delete_files.live_rows import live_rows
from frazil.lake.delete_files.merged_deletes import Merged, merges, write
from frazil.lake.iceberg_java import message, thrown
from frazil.lake.java_classes import Java
from frazil.lake.layout import Layout
from frazil.lake.ledger import entry as ledger
from frazil.lake.rewrite import MANY_DELETE_FILES, Group, Rewritten
from frazil.lake.snapshot_retention import History
from frazil.lake.stage import order
from frazil.maintain.choose_upkeep import Why, marks_of, why
from frazil.maintain.lease import Lease
from frazil.maintain.target import Action, MaintenanceRun, Outcome, Status, Target

CONFLICTS = {"CommitFailedException", "ValidationException", "NotFoundException"}


def compact(
    run: MaintenanceRun,
    target: Target,
    lease: Lease,
    *,
    hold: Callable[[], bool] = lambda: True,
    chosen: Callable[[Group, Why], bool] = lambda _, verdict: verdict.is_compacted,
) -> Outcome:
    """Compact what is due in one table; `hold` says before each group whether this run still holds the lease.

    `chosen` says of a group that is due whether it is rewritten. Raises `RowsWouldChange`, with nothing of that group committed.
    """
    table = run.job.iceberg.load(target.identifier)
    history = History.of(run.job.iceberg.metadata(table))
    head = history.head
    if head is None:
        return target.outcome(Action.COMPACT)
    verdict_of = partial(
        why,
        marks=[*marks_of(history), *lease.marks],
        since_ms=run.job.ago_ms(run.policy.closed_seconds),
        target_bytes=target.pipeline.table.target_file_size_bytes,
        many_files=run.policy.many_files,
        is_state=target.has_own_deletes,
    )
    planned = rewrite.plan(
        run.job.iceberg,
        table,
        group_bytes=run.policy.group_bytes,
        target_bytes=target.pipeline.table.target_file_size_bytes,
        with_deletes=target.has_own_deletes,
        small_bytes=run.policy.small_bytes,
    )
    verdicts = [(group, verdict_of(group)) for group in planned]
    groups = [group for group, verdict in verdicts if verdict.is_compacted and chosen(group, verdict)]
    left = Counter(verdict.value for _, verdict in verdicts if not verdict.is_compacted)
    if run.policy.dry_run:
        done = [Rewritten(group, group.java.expectedOutputFiles(), group.rows, group.bytes) for group in groups]
        commits, ended, reason = 0, Status.DRY_RUN, ""
    else:
        done, commits, ended, reason = _swap(run, target, table, groups, head.id, hold)
    return target.outcome(
        Action.COMPACT,
        ended,
        reason,
        snapshots=commits,
        files_removed=sum(one.group.files for one in done),
        bytes_removed=sum(one.group.bytes for one in done),
        files_added=sum(one.files for one in done),
        bytes_added=sum(one.bytes for one in done),
        rows=sum(one.rows for one in done),
        left=dict(left),
    )


def _swap(
    run: MaintenanceRun, target: Target, table: Java, chosen: list[Group], planned_on: int, hold: Callable[[], bool]
) -> tuple[list[Rewritten], int, Status, str]:
    """Rewrite the chosen groups and commit them, some at a time; what was committed, and how it ended."""
    done: list[Rewritten] = []
    pending: list[Rewritten] = []
    commits, size = 0, run.policy.groups_a_commit
    declared = target.pipeline.table
    if declared.sort_by:
        declared = Layout.of(run.job.iceberg.metadata(table)).declared(declared)
    columns = order(() if target.is_dead_letter_table else declared.sort_fields)
    for number, group in enumerate(chosen, start=1):
        if run.job.stopping() or not hold():
            for one in pending:
                rewrite.drop(table, one)
            why_not = "the run was asked to end" if run.job.stopping() else "another maintainer took the lease"
            return done, commits, Status.STOPPED, why_not
        try:
            pending.append(_rewritten(run, target, table, group, columns))
            if len(pending) < size and number < len(chosen):
                continue
            run.job.failpoint("compact.rewritten")
            rewrite.commit(run.job.iceberg, table, pending, planned_on=planned_on, summary=run.summary(Action.COMPACT))
        except (Py4JJavaError, PySparkException) as error:
            if isinstance(error, Py4JJavaError) and thrown(error) in CONFLICTS:
                return done, commits, Status.CONFLICT, f"{thrown(error)}: {message(error)}"
            if not hold():
                return done, commits, Status.STOPPED, "the rewrite was ended"
            raise
        run.job.failpoint("compact.committed")
        done, commits, pending = [*done, *pending], commits + 1, []
    return done, commits, Status.DONE, ""


def _rewritten(run: MaintenanceRun, target: Target, table: Java, group: Group, columns: list[Column]) -> Rewritten:
    iceberg, new_id = run.job.iceberg, run.job.new_id
    live = group.rows - group.deleted
    if group.maybe_deleted:  # counted first: it may read the files, and if that fails, none is left that was written
        live = live_rows(iceberg, table, group.java.fileScanTasks(), new_id=new_id)
    written = rewrite.rewrite(run.job.spark, iceberg, table, group, unique_id=new_id(), order=columns)
    if written.rows != live:
        rewrite.drop(table, written)
        raise RowsWouldChange(
            f"{group.files} files of partition {group.partition or '(all)'} hold {live} rows "
            f"by their manifests and deletes, what was written for them holds {written.rows}; nothing of it was committed",
            where=f"table {target.identifier}",
            do=f"`frazil verify {target.pipeline.name} --deep` reports whether a file was altered",
        )
    return written


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
    iceberg = run.job.iceberg
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
    ended, reason, is_made = Status.STOPPED if stopped else Status.DONE, "", False
    if removed and run.policy.dry_run:
        ended = Status.DRY_RUN
    elif removed:
        run.job.failpoint("merge.written")
        merged = Merged(on, tuple(removed), tuple(added))
        is_made, reason = _committed(run, target, merged)
        ended = ended if is_made else Status.CONFLICT
    if not (is_made or run.policy.dry_run):
        removed, added = [], []
    return target.outcome(
        Action.MERGE,
        ended,
        reason,
        snapshots=int(is_made),
        files_removed=len(removed),
        bytes_removed=sum(file.bytes for file in removed),
        files_added=len(added),
        bytes_added=sum(int(file.fileSizeInBytes()) for file, _ in added),
    )


def _committed(run: MaintenanceRun, target: Target, merged: Merged) -> tuple[bool, str]:
    """Return whether it was committed, and why not."""
    tag, summary = ledger.tag(target.pipeline.name), run.summary(Action.MERGE)
    try:
        is_made = swap(run.job, target.identifier, merged, tag, summary)
    except Py4JJavaError as error:
        if thrown(error) not in CONFLICTS:
            raise
        return False, f"{thrown(error)}: {message(error)}"
    except PySparkException as error:  # Java's IllegalArgumentException: the format version was raised
        return False, str(error).splitlines()[0]
    return is_made, "" if is_made else "the table's head does not descend from the one before"
