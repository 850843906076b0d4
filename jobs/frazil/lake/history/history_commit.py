"""Commit to a history, by compare-and-set: the rows of one commit of the state, or that those of undone commits go.

The summary says up to which commit of the state the history is. It is compared inside the transaction, and the move of the
pipeline's tag is the fence, as in `lake/commit/append.py`: of two drivers that record the same commit, one does.
"""

from __future__ import annotations

from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import functions as F

from frazil.errors import CatalogUnavailable
from frazil.lake import ledger
from frazil.lake.commit.append import FOREVER_MS
from frazil.lake.commit.committer import Committer
from frazil.lake.commit.entries import entry
from frazil.lake.commit.row_delta import row_delta
from frazil.lake.commit.row_search import REFUSALS
from frazil.lake.deletes import staged_deletes
from frazil.lake.deletes.positions import FILE, POSITION, Found
from frazil.lake.deletes.staged_deletes import StagedDeletes
from frazil.lake.history.history_columns import SEQUENCE
from frazil.lake.history.history_ledger import OF_SNAPSHOT
from frazil.lake.iceberg_java import Iceberg, message, thrown
from frazil.lake.java_classes import Java
from frazil.lake.row_offsets import quoted
from frazil.lake.stage import Staged

ATTEMPTS = 20


def commit(
    job: Committer,
    staged: Staged,
    summary: Mapping[str, str],
    *,
    pipeline: str,
    on: int | None,
    undone_behind: int | None = None,
) -> bool:
    """Append staged rows to a history whose newest entry is that of snapshot `on`; return whether the history has them.

    False: another driver committed first, or the table was replaced, and the caller looks again. With `undone_behind`, the rows of
    later commits of the state than that of this sequence number go.
    """
    failure = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            job.wait(min(5.0, 0.05 * 2**attempt))
        try:
            table = job.iceberg.load(staged.table)
            transaction = table.newTransaction()
            base = entry(transaction.table(), pipeline)
            if base is not None and base.run == job.run and base.summary.get(OF_SNAPSHOT) == summary[OF_SNAPSHOT]:
                return True  # an earlier try succeeded, and its answer was lost
            if (base.snapshot_id if base is not None else None) != on or str(table.uuid()) != staged.table_uuid:
                return False
            deletes = None if undone_behind is None else _undone(job.iceberg, table, staged.table, undone_behind)
            _fill(transaction, staged, summary, pipeline, deletes)
            job.failpoint("history.filled")
            transaction.commitTransaction()
            job.failpoint("history.committed")
            return True
        except (Py4JJavaError, IllegalArgumentException) as error:
            is_java = isinstance(error, Py4JJavaError)
            failure = f"{thrown(error)}: {message(error)}" if is_java else str(error).partition("\n")[0]
            if is_java and thrown(error) in (REFUSALS | {"NoSuchTableException"}) and undone_behind is None:
                break
    raise CatalogUnavailable(
        f"the commit did not succeed: {failure}",
        where=f"table {staged.table}",
        do="The state has the changes, and its history gets them at the next try. If it persists, look at the catalog",
    )


def _fill(
    transaction: Java, staged: Staged, summary: Mapping[str, str], pipeline: str, deletes: StagedDeletes | None
) -> None:
    tag = ledger.tag(pipeline)
    tagged = transaction.table().refs().containsKey(tag)
    if deletes is not None and deletes.added:
        change = row_delta(transaction, deletes)
        for file in staged.files:
            change.addRows(file)
    else:
        change = transaction.newAppend()
        for file in staged.files:
            change.appendFile(file)
    for key, value in ledger.stored(summary).items():
        change.set(key, value)
    change.commit()
    snapshot_id = int(transaction.table().currentSnapshot().snapshotId())
    refs = transaction.manageSnapshots()
    moved = refs.replaceTag(tag, snapshot_id) if tagged else refs.createTag(tag, snapshot_id)
    moved.setMaxRefAgeMs(tag, FOREVER_MS).commit()


def _undone(iceberg: Iceberg, table: Java, name: str, behind: int) -> StagedDeletes:
    """Return the deletes of the rows whose commits of the state were undone."""
    head = int(table.currentSnapshot().snapshotId())
    rows = iceberg.spark.read.option("versionAsOf", str(head)).table(quoted(f"{iceberg.name}.{name}"))
    found = rows.where(F.col(SEQUENCE.name) > behind).select(FILE, POSITION).toArrow()
    grouped = found.sort_by([(FILE, "ascending"), (POSITION, "ascending")])
    grouped = grouped.group_by(FILE, use_threads=False).aggregate([(POSITION, "list")])
    lists = zip(grouped[FILE].to_pylist(), grouped[f"{POSITION}_list"].combine_chunks(), strict=True)
    at = {path: positions.values.to_numpy() for path, positions in lists}
    return staged_deletes.write(iceberg, table, head, Found(at=at))
