"""Publish: staged files and their offsets -> exactly one snapshot, or a named refusal.

Rows and offsets change here and nowhere else, in one transaction that appends the files, writes the summary and moves the
pipeline's tag. The tag move is the fence: Iceberg does not apply it again on a changed base, so whatever else commits in
between makes the whole transaction fail, and a new one decides again on what it finds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from py4j.protocol import Py4JJavaError

from frazil.errors import CatalogUnavailable, Fenced, FrazilError, RolledBack, TableReplaced, TopicRecreated
from frazil.lake import ledger
from frazil.lake.jvm import Iceberg, Java, ancestors, entries, message, thrown
from frazil.lake.ledger import Counts, Entry, Offsets
from frazil.lake.stage import Staged
from frazil.schemas.iceberg import field_ids

FOREVER_MS = 2**63 - 1  # an explicit maximum age of the tag: a table property may expire tags that have none
STAGED_AT_MOST_SECONDS = 6 * 3600.0  # orphan removal refuses ages under three days; this is far below
CHECK_FILES_AFTER_SECONDS = 60.0
ATTEMPTS = 20
ANCESTORS = 1000  # how far back a lost answer is looked for


class StageAgain(FrazilError):
    """The staged files may be gone, or no longer fit the table: the batch is to be staged again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The offsets and the account of what was staged: all that a commit says beside its files.

    `held` is what the table held when the batch was planned (`None`: no ledger yet); `topic_id` is the topic's id as asked
    again after staging. `over_rollback` is an operator's word that a head behind the tag is meant.
    """

    pipeline: str
    run: str
    version: str
    start: Offsets
    end: Offsets
    held: Offsets | None
    topic_id: str
    counts: Counts = field(default_factory=Counts)
    schema_ids: tuple[int, ...] = ()
    valid_through: int | None = None
    accepted: str | None = None
    over_rollback: bool = False

    def summary(self, table_uuid: str) -> dict[str, str]:
        """The snapshot's summary entries."""
        entries = {
            ledger.FORMAT: ledger.FORMAT_VERSION,
            ledger.PIPELINE: self.pipeline,
            ledger.COMMIT_ID: self.commit_id(table_uuid),
            ledger.START: str(self.start),
            ledger.END: str(self.end),
            ledger.COUNTS: str(self.counts),
            ledger.SCHEMA_IDS: ledger.canonical(list(self.schema_ids)),
            ledger.RUN: self.run,
            ledger.VERSION: self.version,
        }
        if self.valid_through is not None:
            entries[ledger.VALID_THROUGH] = str(self.valid_through)
        if self.accepted is not None:
            entries[ledger.EVENTS] = self.accepted
        return entries

    def commit_id(self, table_uuid: str) -> str:
        """See `ledger.commit_id`."""
        return ledger.commit_id(self.pipeline, table_uuid, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Base:
    """What the transaction's own table says. Nothing that was read before the transaction counts."""

    table_uuid: str
    field_ids: Mapping[str, int]
    tagged: Entry | None
    head_follows_tag: bool
    ours: int | None  # the snapshot that carries our commit id and run
    last: Entry | None = (
        None  # the newest entry that the head has: the tagged one, unless main was rolled back behind it
    )


class Verdict(StrEnum):
    """What to do with a staged batch on this base.

    `APPEND`: ours to write. `DONE`: an earlier try had succeeded and its answer was lost. The others refuse: `FENCED` by
    another driver's commit, `REPLACED` table, columns that are `GONE`, `ROLLED_BACK` by hand, `RECREATED` topic.
    """

    APPEND = "append"
    DONE = "done"
    FENCED = "fenced"
    REPLACED = "replaced"
    GONE = "gone"
    ROLLED_BACK = "rolled_back"
    RECREATED = "recreated"


def decide(base: Base, staged: Staged, batch: Batch) -> Verdict:
    """The whole decision, on values only; the table is docs/exactly-once.md."""
    if base.table_uuid != staged.table_uuid:
        return Verdict.REPLACED
    if base.ours is not None:
        return Verdict.DONE
    if any(base.field_ids.get(name) != number for name, number in staged.field_ids.items()):
        return Verdict.GONE
    if not base.head_follows_tag and not batch.over_rollback:
        return Verdict.ROLLED_BACK
    held = base.tagged.end if base.tagged else None
    if not (held.same_as(batch.held) if held else batch.held is None):
        return Verdict.FENCED
    if batch.topic_id != batch.end.topic_id:
        return Verdict.RECREATED
    return Verdict.APPEND


@dataclass(frozen=True, slots=True)
class Published:
    """A commit that stands: its snapshot, and whether it was found rather than made."""

    snapshot_id: int
    found: bool


def publish(
    iceberg: Iceberg,
    staged: Staged,
    batch: Batch,
    *,
    extra: Mapping[str, str] | None = None,
    is_side: bool = False,
    clock: Callable[[], float] = time.time,
    wait: Callable[[float], None] = time.sleep,
    reach: Callable[[str], None] = lambda step: None,
) -> Published:
    """Commit a staged batch, exactly once.

    Raises `Fenced`, `TableReplaced`, `RolledBack`, `TopicRecreated`, `StageAgain` or `CatalogUnavailable`; in each case
    nothing of this batch is in the table. `extra` are further summary entries; a table that `is_side` finishes
    a decision and keeps no totals of its own; `reach` marks steps for tests.
    """
    failure = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            wait(min(5.0, 0.05 * 2**attempt))
        try:
            table = iceberg.load(staged.table)
            transaction = table.newTransaction()
            base = _read(iceberg, transaction.table(), staged, batch)
            verdict = decide(base, staged, batch)
            if verdict is Verdict.DONE:
                assert base.ours is not None
                return Published(base.ours, found=True)
            if verdict is not Verdict.APPEND:
                raise _refusal(verdict, base, staged, batch)
            _check_files(iceberg, table, staged, age=clock() - staged.at)
            reach("publish.decided")
            totals = {} if is_side else _totals(base, batch)
            snapshot_id = fill(iceberg, transaction, table, staged, batch, {**totals, **(extra or {})})
            reach("publish.filled")
            transaction.commitTransaction()
            reach("publish.committed")
            return Published(snapshot_id, found=False)
        except Py4JJavaError as error:
            # A failed commit, and one whose state is unknown, go through the same decision again: on a new base.
            failure = f"{thrown(error)}: {message(error)}"
            if thrown(error) in ("NoSuchTableException", "ValidationException", "ForbiddenException"):
                break
    raise CatalogUnavailable(
        f"the commit did not succeed: {failure}",
        where=f"table {staged.table}",
        do="Nothing was added. Run again; if it persists, look at the catalog",
    )


def fill(
    iceberg: Iceberg, transaction: Java, table: Java, staged: Staged, batch: Batch, extra: Mapping[str, str]
) -> int:
    """Put a batch into an open transaction: files, summary and tag move. Returns the snapshot it will be."""
    tag = ledger.tag(batch.pipeline)
    tagged = transaction.table().refs().containsKey(tag)
    append = transaction.newAppend()
    for file in staged.files:
        append.appendFile(file)
    for document in staged.documents:
        append.appendFile(iceberg.file(table, document))
    for key, value in {**batch.summary(staged.table_uuid), **extra}.items():
        append.set(key, value)
    append.commit()
    snapshot_id = int(transaction.table().currentSnapshot().snapshotId())
    refs = transaction.manageSnapshots()
    moved = refs.replaceTag(tag, snapshot_id) if tagged else refs.createTag(tag, snapshot_id)
    moved.setMaxRefAgeMs(tag, FOREVER_MS).commit()
    return snapshot_id


def _totals(base: Base, batch: Batch) -> dict[str, str]:
    """The account since the pipeline began, of the transaction's own base and this batch; none for a ledger without one."""
    before = ledger.Totals() if base.last is None else base.last.totals
    return {} if before is None else {ledger.TOTALS: str(before.after(batch.start, batch.end, batch.counts))}


def _read(iceberg: Iceberg, table: Java, staged: Staged, batch: Batch) -> Base:
    tagged = entry(table, batch.pipeline)
    ours, commit = None, batch.commit_id(str(table.uuid()))
    if tagged is not None:
        for snapshot in islice(ancestors(table, tagged.snapshot_id), ANCESTORS):
            found = Entry.of(int(snapshot.snapshotId()), entries(snapshot.summary()))
            if found.commit_id == commit and found.run == batch.run:
                ours = found.snapshot_id
            if ours is not None or (found.end is not None and found.end.same_as(batch.held)):
                break
    follows = head_follows(table, tagged)
    return Base(
        table_uuid=str(table.uuid()),
        field_ids=field_ids(iceberg.schema_json(table)),
        tagged=tagged,
        head_follows_tag=follows,
        ours=ours,
        last=tagged if follows else _newest(table, batch.pipeline),
    )


def _newest(table: Java, pipeline: str) -> Entry | None:
    head = table.currentSnapshot()
    for snapshot in ancestors(table, head.snapshotId()) if head is not None else ():
        found = Entry.of(int(snapshot.snapshotId()), entries(snapshot.summary()))
        if found.end is not None and found.summary.get(ledger.PIPELINE) == pipeline:
            return found
    return None


def entry(table: Java, pipeline: str) -> Entry | None:
    """The ledger entry that a pipeline's tag marks, or None when the table has no such tag."""
    ref = table.refs().get(ledger.tag(pipeline))
    if ref is None:
        return None
    snapshot = table.snapshot(ref.snapshotId())
    return Entry.of(int(ref.snapshotId()), entries(snapshot.summary()))


def head_follows(table: Java, tagged: Entry | None) -> bool:
    """Whether main's head is the tagged snapshot or comes after it.

    Expiry may have taken snapshots in between; then the head counts as a descendant unless the walk back meets a snapshot
    that is older than the tagged one, which only a rollback makes.
    """
    if tagged is None:
        return True
    head = table.currentSnapshot()
    if head is None:
        return False
    sequence = table.snapshot(tagged.snapshot_id).sequenceNumber()
    for snapshot in ancestors(table, head.snapshotId()):
        if snapshot.snapshotId() == tagged.snapshot_id:
            return True
        if snapshot.sequenceNumber() <= sequence:
            return False
    return True


def _check_files(iceberg: Iceberg, table: Java, staged: Staged, *, age: float) -> None:
    if age > STAGED_AT_MOST_SECONDS:
        raise StageAgain(f"staged {age / 3600:.1f} hours ago", where=f"table {staged.table}")
    if age > CHECK_FILES_AFTER_SECONDS:
        io = table.io()
        paths = [f.location() for f in staged.files] + [d["file-path"] for d in staged.documents]
        missing = [path for path in paths if not io.newInputFile(path).exists()]
        if missing:
            raise StageAgain(f"{len(missing)} staged files are gone, {missing[0]} first", where=f"table {staged.table}")


def _refusal(verdict: Verdict, base: Base, staged: Staged, batch: Batch) -> FrazilError:
    where = f"pipeline {batch.pipeline}, table {staged.table}"
    winner = base.tagged.run if base.tagged else "nobody"
    match verdict:
        case Verdict.FENCED:
            holds = base.tagged.end if base.tagged else None
            return Fenced(
                f"run {winner} committed first; the table holds {holds}, this run expected {batch.held}",
                where=where,
                do="Nothing of this run's batch was added; the other driver goes on",
            )
        case Verdict.REPLACED:
            return TableReplaced(
                f"the table was dropped and created again (uuid {base.table_uuid}, staged for {staged.table_uuid})",
                where=where,
                do="Run again to land into the new table",
            )
        case Verdict.GONE:
            return StageAgain("a column that was written is no longer the same field", where=where)
        case Verdict.ROLLED_BACK:
            return RolledBack(
                "the table's head is not the snapshot of the last commit, nor a descendant: it was rolled back by hand",
                where=where,
                do=f"`frazil accept {batch.pipeline} rolled-back-replay --reason …` lands the records again, "
                f"`frazil accept {batch.pipeline} rolled-back-hold --reason …` keeps the table as it is and goes on",
            )
        case _:
            return TopicRecreated(
                f"the topic's id is {batch.topic_id} now, the records were read from {batch.end.topic_id}",
                where=f"pipeline {batch.pipeline}, topic {batch.end.topic}",
                do=f"`frazil accept {batch.pipeline} topic-recreated --reason …` goes on from the new topic's beginning",
            )
