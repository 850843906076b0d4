"""Commit staged files and their offsets as exactly one snapshot, or refuse by name.

Rows and offsets change here and nowhere else, in one transaction that adds the files, deletes the rows that they replace,
writes the summary and moves the pipeline's tag. The tag move is the fence: Iceberg does not apply it again on a changed base, so
any other commit in between makes the complete transaction fail, and a new one decides again on the new base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from frazil.errors import CatalogUnavailable
from frazil.lake.commit.carried_on import carried_on
from frazil.lake.commit.fence import StageAgain, Verdict, check, refusal
from frazil.lake.commit.other_commits import OtherCommit, OtherCommits
from frazil.lake.commit.replaced_rows import ReplacedRows, RowChanges, row_delta
from frazil.lake.commit.request import NOTHING, CommitRequest, Committed, Committer, Extra
from frazil.lake.commit.table_state import TableState, read
from frazil.lake.delete_files.staged_deletes import StagedDeletes
from frazil.lake.iceberg_java import Iceberg, thrown
from frazil.lake.java_classes import Java
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger import last_records, stop
from frazil.lake.stage import Staged

FOREVER_MS = 2**63 - 1  # an explicit maximum age of the tag: a table property may expire tags that have none
STAGED_AT_MOST_SECONDS = 6 * 3600.0  # orphan removal refuses ages under three days; this is far below
CHECK_FILES_AFTER_SECONDS = 60.0
ATTEMPTS = 20
_SIZES = {
    "table_rows": "total-records",
    "table_bytes": "total-files-size",
    "table_data_files": "total-data-files",
    "table_delete_files": "total-delete-files",
}
"""The members of a snapshot's summary, by the names of an event."""


def commit(
    job: Committer,
    staged: Staged,
    request: CommitRequest,
    extra: Extra = NOTHING,
    changes: RowChanges | None = None,
    met: Callable[[OtherCommit], None] = lambda commit: None,
) -> Committed:
    """Commit staged files and their offsets, exactly once.

    Raises `Fenced`, `TableReplaced`, `RolledBack`, `TopicRecreated`, `StageAgain`, `CommitRefused`, `SearchFailed` or
    `CatalogUnavailable`; in each case nothing of this batch is in the table. The rows that `changes` finds on the table's head are
    deleted; if another commit comes in between, they are searched again. `met` is called for each commit since the newest batch by
    which another engine wrote rows of a table with `changes`; at each call of `commit` again until a batch is committed.
    """
    iceberg, failure = job.iceberg, ""
    state: TableState | None = None
    replaced = ReplacedRows(changes, staged.table)
    others = OtherCommits(request.pipeline, met if changes is not None else None)
    for attempt in range(ATTEMPTS):
        if attempt and changes is not None and job.stopping():
            break  # a run that is to end has its Spark jobs cancelled, and so the search
        if attempt:
            job.wait(min(5.0, 0.05 * 2**attempt))
        try:
            table = iceberg.load(staged.table)
            transaction = table.newTransaction()
            state = read(iceberg, transaction.table(), staged, request)
            others.see(table, state.head)
            verdict = check(state, staged, request)
            if verdict is Verdict.DONE:
                return _found(state, staged, extra)
            if verdict is not Verdict.APPEND:
                raise refusal(verdict, state, staged, request)
            job.failpoint("publish.decided")
            deletes = replaced.on(table, state)
            if deletes is not None:
                job.failpoint("publish.searched")
            if not _check_files(table, staged, deletes, age=job.clock() - staged.at):
                deletes = replaced.again(table, state)
            summary = dict(extra.summary)
            if not extra.finishes:
                summary |= carried_on(state, request, extra, changes, deletes)
                _set_properties(transaction, state, request, ends_stop=_ends_stop(request, summary))
            if extra.restore and state.tagged is not None and not state.head_follows_tag:
                transaction.manageSnapshots().setCurrentSnapshot(state.tagged.snapshot_id).commit()
            if extra.clear:
                everything = iceberg.classes.static("expressions.Expressions", "alwaysTrue")
                cleared = transaction.newDelete().deleteFromRowFilter(everything)
                _set(cleared, {ledger.RUN: request.run, ledger.VERSION: request.version}).commit()
            rewritten = extra.rewritten(table)
            if rewritten is not None:
                gone = transaction.newDelete()
                for file in rewritten.gone:  # by its path, Java's method of that name would remove the file itself
                    gone.deleteFile(file)
                _set(gone, {ledger.RUN: request.run, ledger.VERSION: request.version}).commit()
            more = rewritten.files if rewritten is not None else ()
            snapshot_id = fill(iceberg, transaction, table, staged, request, summary, deletes, more)
            job.failpoint("publish.filled")
            transaction.commitTransaction()
            job.failpoint("publish.committed")
            number = summary.get(ledger.DECISION)
            sizes = {} if extra.finishes else _sizes(transaction, snapshot_id)
            return Committed(snapshot_id, found=False, number=None if number is None else int(number), sizes=sizes)
        except (Py4JJavaError, PySparkException) as error:
            # A failed commit, and one whose state is unknown, go through the same decision again: on a new state.
            failure = replaced.after(error, state)
            if isinstance(error, Py4JJavaError) and thrown(error) in ("NoSuchTableException", "ForbiddenException"):
                break
    raise CatalogUnavailable(
        f"the commit did not succeed: {failure}{others.text}",
        where=f"table {staged.table}",
        do="Nothing was added. Run again; if it persists, look at the catalog",
    )


def _sizes(transaction: Java, snapshot_id: int) -> dict[str, int]:
    """Return the sizes of the table that a committed snapshot's summary has."""
    summary = transaction.table().snapshot(snapshot_id).summary()
    found = {name: summary.get(key) for name, key in _SIZES.items()}
    return {name: int(value) for name, value in found.items() if value is not None}


def _found(state: TableState, staged: Staged, extra: Extra) -> Committed:
    """Return the commit of an earlier try. Raises `StageAgain` if it is of other files, with a decision of its own."""
    own = state.own_commit
    assert own is not None
    if own.side != extra.summary.get(ledger.SIDE):
        what = f"snapshot {own.snapshot_id} has these records from an earlier try"
        raise StageAgain(what, where=f"table {staged.table}")
    return Committed(own.snapshot_id, found=True, number=own.number)


def _ends_stop(request: CommitRequest, summary: Mapping[str, str]) -> bool:
    """Return whether a commit is progress of its pipeline: neither upkeep nor a replay of dead letters is."""
    return ledger.UPKEEP not in summary and request.replay is None


def _set_properties(transaction: Java, state: TableState, request: CommitRequest, *, ends_stop: bool) -> None:
    """Keep the last records as a property of the table, and remove the note of a stop that ends."""
    known = last_records.properties(request.pipeline, request.end.last, str(request.end))
    is_over = ends_stop and state.is_stopped
    if known or is_over:
        change = _set(transaction.updateProperties(), known)
        (change.remove(stop.property_name(request.pipeline)) if is_over else change).commit()


def fill(
    iceberg: Iceberg,
    transaction: Java,
    table: Java,
    staged: Staged,
    request: CommitRequest,
    summary: Mapping[str, str],
    deletes: StagedDeletes | None = None,
    more: Sequence[Java] = (),
) -> int:
    """Put a batch into an open transaction: files, and `more`, deletes, summary and tag move. Returns the snapshot it will be."""
    tag = ledger.tag(request.pipeline)
    tagged = transaction.table().refs().containsKey(tag)
    files = [*staged.files, *(iceberg.file(table, document) for document in staged.documents), *more]
    if deletes is not None and deletes.clears:
        change = transaction.newOverwrite()
        change.overwriteByRowFilter(iceberg.classes.static("expressions.Expressions", "alwaysTrue"))
        for file in files:
            change.addFile(file)
    elif deletes is None or not (files or deletes.added):  # a row delta without a file would be an overwrite of nothing
        change = transaction.newAppend()
        for file in files:
            change.appendFile(file)
    else:
        change = row_delta(transaction, deletes)
        for file in files:
            change.addRows(file)
    _set(change, ledger.stored({**request.summary(staged.table_uuid), **summary})).commit()
    snapshot_id = int(transaction.table().currentSnapshot().snapshotId())
    refs = transaction.manageSnapshots()
    moved = refs.replaceTag(tag, snapshot_id) if tagged else refs.createTag(tag, snapshot_id)
    moved.setMaxRefAgeMs(tag, FOREVER_MS).commit()
    return snapshot_id


def _set(change: Java, values: Mapping[str, str]) -> Java:
    for key, value in values.items():
        change.set(key, value)
    return change


def _check_files(table: Java, staged: Staged, deletes: StagedDeletes | None, *, age: float) -> bool:
    """Return whether the delete files exist, as far as another search makes them again. Raises `StageAgain` for all others."""
    if age > STAGED_AT_MOST_SECONDS:
        raise StageAgain(f"staged {age / 3600:.1f} hours ago", where=f"table {staged.table}")
    if age <= CHECK_FILES_AFTER_SECONDS:
        return True
    io = table.io()

    def missing(paths: Iterable[str]) -> list[str]:
        return [path for path in paths if not io.newInputFile(path).exists()]

    paths = [f.location() for f in staged.files] + [d["file-path"] for d in staged.documents]
    if lost := missing([*paths, *(deletes.beside if deletes is not None else ())]):
        raise StageAgain(f"{len(lost)} staged files are gone, {lost[0]} first", where=f"table {staged.table}")
    return deletes is None or not missing(deletes.made)
