"""Commit staged files and their offsets as exactly one snapshot, or refuse by name.

Rows and offsets change here and nowhere else, in one transaction that adds the files, deletes the rows that they replace,
writes the summary and moves the pipeline's tag. The tag move is the fence: Iceberg does not apply it again on a changed base, so
any other commit in between makes the complete transaction fail, and a new one decides again on the new base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from frazil.errors import CatalogUnavailable
from frazil.lake.commit.carried_on import carried_on
from frazil.lake.commit.check import Base, CommitRequest, StageAgain, Verdict, check, refusal
from frazil.lake.commit.committer import Committer
from frazil.lake.commit.other_commits import OtherCommit, OtherCommits
from frazil.lake.commit.row_delta import RowChanges, row_delta
from frazil.lake.commit.row_search import RowSearch
from frazil.lake.delete_files.staged_deletes import StagedDeletes
from frazil.lake.iceberg_java import Iceberg, thrown
from frazil.lake.java_classes import Java
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger import last_records, stop
from frazil.lake.ledger.entries import entry, entry_of_head, of
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.lineage import ancestors, head_follows
from frazil.lake.stage import Staged
from frazil.schemas.iceberg import column_names, field_ids, identifier_fields

FOREVER_MS = 2**63 - 1  # an explicit maximum age of the tag: a table property may expire tags that have none
STAGED_AT_MOST_SECONDS = 6 * 3600.0  # orphan removal refuses ages under three days; this is far below
CHECK_FILES_AFTER_SECONDS = 60.0
ATTEMPTS = 20
ANCESTORS = 1000  # how far back a lost answer is looked for


@dataclass(frozen=True, slots=True)
class Published:
    """A commit that exists: its snapshot, and whether it was found rather than made.

    `number` is that of the table's newest decision on its dead-letter table, as the commit has it.
    """

    snapshot_id: int
    found: bool
    number: int | None = None


def publish(
    job: Committer,
    staged: Staged,
    batch: CommitRequest,
    *,
    extra: Mapping[str, str] | None = None,
    is_dead_letter_table: bool = False,
    numbered_from: int = 0,
    restore: bool = False,
    clear: bool = False,
    changes: RowChanges | None = None,
    met: Callable[[OtherCommit], None] = lambda commit: None,
) -> Published:
    """Commit a staged batch, exactly once.

    Raises `Fenced`, `TableReplaced`, `RolledBack`, `TopicRecreated`, `StageAgain`, `CommitRefused`, `SearchFailed` or
    `CatalogUnavailable`; in each case nothing of this batch is in the table. `extra` are further summary entries; a dead-letter
    table finishes a decision and keeps no totals of its own. A commit that names a side decision gets the next number, which is
    above `numbered_from` too. With `restore` the head is first set back to the newest entry, over a rollback that only moved it;
    with `clear` all rows go first. The rows that `changes` finds on the table's head are deleted; if another commit comes in
    between, they are searched again. `met` is called for each commit since the newest batch by which another engine wrote rows
    of a table with `changes`; at each call of `publish` again until a batch is committed.
    """
    iceberg, failure = job.iceberg, ""
    base: Base | None = None
    search, others = (
        RowSearch(changes, staged.table),
        OtherCommits(batch.pipeline, met if changes is not None else None),
    )
    for attempt in range(ATTEMPTS):
        if attempt and changes is not None and job.stopping():
            break  # a run that is to end has its Spark jobs cancelled, and so the search
        if attempt:
            job.wait(min(5.0, 0.05 * 2**attempt))
        try:
            table = iceberg.load(staged.table)
            transaction = table.newTransaction()
            base = _read(iceberg, transaction.table(), staged, batch)
            others.see(table, base)
            verdict = check(base, staged, batch)
            if verdict is Verdict.DONE:
                assert base.own_commit is not None
                return _found(of(table.snapshot(base.own_commit)), staged, extra or {})
            if verdict is not Verdict.APPEND:
                raise refusal(verdict, base, staged, batch)
            job.failpoint("publish.decided")
            deletes = search.on(table, base)
            if deletes is not None:
                job.failpoint("publish.searched")
            if not _check_files(table, staged, deletes, age=job.clock() - staged.at):
                deletes = search.again(table, base)
            summary = dict(extra or {})
            if not is_dead_letter_table:
                summary |= carried_on(base, batch, summary, numbered_from, changes, deletes)
                known = last_records.properties(batch.pipeline, batch.end.last, str(batch.end))
                stopped = stop.property_name(batch.pipeline)
                is_over = ledger.UPKEEP not in summary and table.properties().get(stopped) is not None
                if known or is_over:
                    change = _set(transaction.updateProperties(), known)
                    (change.remove(stopped) if is_over else change).commit()
            if restore and base.tagged is not None and not base.head_follows_tag:
                transaction.manageSnapshots().setCurrentSnapshot(base.tagged.snapshot_id).commit()
            if clear:
                everything = iceberg.classes.static("expressions.Expressions", "alwaysTrue")
                cleared = transaction.newDelete().deleteFromRowFilter(everything)
                _set(cleared, {ledger.RUN: batch.run, ledger.VERSION: batch.version}).commit()
            snapshot_id = fill(iceberg, transaction, table, staged, batch, summary, deletes)
            job.failpoint("publish.filled")
            transaction.commitTransaction()
            job.failpoint("publish.committed")
            number = summary.get(ledger.DECISION)
            return Published(snapshot_id, found=False, number=None if number is None else int(number))
        except (Py4JJavaError, PySparkException) as error:
            # A failed commit, and one whose state is unknown, go through the same decision again: on a new base.
            failure = search.after(error, base)
            if isinstance(error, Py4JJavaError) and thrown(error) in ("NoSuchTableException", "ForbiddenException"):
                break
    raise CatalogUnavailable(
        f"the commit did not succeed: {failure}{others.text}",
        where=f"table {staged.table}",
        do="Nothing was added. Run again; if it persists, look at the catalog",
    )


def _found(own_commit: Entry, staged: Staged, extra: Mapping[str, str]) -> Published:
    """Return the commit of an earlier try. Raises `StageAgain` if it is of other files, with a decision of its own."""
    if own_commit.side != extra.get(ledger.SIDE):
        raise StageAgain(
            f"snapshot {own_commit.snapshot_id} has these records from an earlier try", where=f"table {staged.table}"
        )
    return Published(own_commit.snapshot_id, found=True, number=own_commit.number)


def fill(
    iceberg: Iceberg,
    transaction: Java,
    table: Java,
    staged: Staged,
    batch: CommitRequest,
    extra: Mapping[str, str],
    deletes: StagedDeletes | None = None,
) -> int:
    """Put a batch into an open transaction: files, deletes, summary and tag move. Returns the snapshot it will be."""
    tag = ledger.tag(batch.pipeline)
    tagged = transaction.table().refs().containsKey(tag)
    files = [*staged.files, *(iceberg.file(table, document) for document in staged.documents)]
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
    _set(change, ledger.stored({**batch.summary(staged.table_uuid), **extra})).commit()
    snapshot_id = int(transaction.table().currentSnapshot().snapshotId())
    refs = transaction.manageSnapshots()
    moved = refs.replaceTag(tag, snapshot_id) if tagged else refs.createTag(tag, snapshot_id)
    moved.setMaxRefAgeMs(tag, FOREVER_MS).commit()
    return snapshot_id


def _set(change: Java, values: Mapping[str, str]) -> Java:
    for key, value in values.items():
        change.set(key, value)
    return change


def _read(iceberg: Iceberg, table: Java, staged: Staged, batch: CommitRequest) -> Base:
    tagged = entry(table, batch.pipeline)
    own_commit, commit = None, batch.commit_id(str(table.uuid()))
    if tagged is not None:
        for snapshot in islice(ancestors(table, tagged.snapshot_id), ANCESTORS):
            found = of(snapshot)
            if found.commit_id == commit and found.run == batch.run:
                own_commit = found.snapshot_id
            if own_commit is not None or (found.end is not None and found.end.same_as(batch.committed)):
                break
    follows = head_follows(iceberg, table, tagged)
    schema = iceberg.schema_json(table)
    # A batch names its key's columns as they were when it was staged: a rename since then changes no field.
    names = {**column_names(schema), **{number: name for name, number in staged.field_ids.items()}}
    return Base(
        table_uuid=str(table.uuid()),
        field_ids=field_ids(schema),
        tagged=tagged,
        head_follows_tag=follows,
        own_commit=own_commit,
        last=tagged if follows else entry_of_head(iceberg, table, batch.pipeline) or tagged,
        mode=ledger.made_for(table.properties(), names, identifier_fields(schema, names)),
        head=head.snapshotId() if (head := table.currentSnapshot()) is not None else None,
    )


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
