"""Verify: the proof that each record that was read is in its table, in its dead letters, or accounted for, exactly
once.

It needs no JVM and no Kafka: the ledger in the table's snapshots says what was read, the data files say what is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from frazil.audit import chain, history
from frazil.audit.account import PartitionAccount, account
from frazil.audit.count import Counted, Read, count, tally
from frazil.audit.decision import as_of, decided_files, open_decision
from frazil.audit.dense import Columns
from frazil.audit.finding import Finding, Flaw, Outcome, worst
from frazil.declaration import Pipeline
from frazil.declaration.formats import MetadataColumns
from frazil.lake.data_files import missing
from frazil.lake.ledger import Entry
from frazil.lake.reader import Lake, Snapshot, StoredTable

FLAT = Columns("_kafka_topic", "_kafka_partition", "_kafka_offset")
STRUCT = Columns("_kafka.topic", "_kafka.partition", "_kafka.offset")
DEAD_LETTERS = Columns("topic", "partition", "offset")

LOOKS = 5  # how often an open decision is looked at again: a driver at work finishes it within a second or so
BETWEEN_LOOKS_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was compared, and what came of it.

    `reads` tell for each table how its files were counted; `notes` is what a reader of the proof should know. `is_deep`
    says that every file was read, dense or not.
    """

    pipeline: str
    table: str
    dead_letters: str
    topic: str
    outcome: Outcome
    is_deep: bool
    partitions: tuple[PartitionAccount, ...] = ()
    reads: tuple[Read, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    commits: int = 0
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0 proven, 1 not proven, 2 could not be checked."""
        return self.outcome.exit_code

    def sum_of(self, name: str) -> int:
        """One column of the accounts, over all partitions: `read`, `landed`, `dead_lettered`, …"""
        return sum(getattr(one, name) for one in self.partitions)

    def document(self) -> dict[str, Any]:
        """The verification as JSON."""
        return {**asdict(self), "exit_code": self.exit_code}


def verify(
    pipeline: Pipeline,
    lake: Lake,
    *,
    deep: bool = False,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Verification:
    """Verify one pipeline as its tables stand now; a driver may be at work meanwhile.

    Raises `CatalogUnavailable`: nothing could be checked then, as with `Outcome.UNCHECKED`.
    """
    began, identifier = clock(), pipeline.table.identifier

    def verification(findings: Sequence[Finding], **known: Any) -> Verification:
        return Verification(
            pipeline=pipeline.name,
            table=identifier,
            dead_letters=pipeline.table.dead_letters,
            topic=pipeline.topic.name,
            outcome=worst(tuple(findings)),
            is_deep=deep,
            findings=tuple(findings),
            seconds=round(clock() - began, 3),
            **known,
        )

    table = lake.table(identifier)
    if table is None:
        what = "the table does not exist: nothing was read yet, or it was dropped"
        return verification([Finding(flaw=Flaw.NO_TABLE, where=f"table {identifier}", what=what)])
    commits = table.commits(pipeline.name)
    findings = chain.check(table, pipeline.name, commits)
    notes = history.notes(table, pipeline.name, commits)
    totals = chain.totals(table, commits)
    end = commits[0].entry.end if commits else None
    if totals is None or end is None:
        flaw = Flaw.NO_TOTALS if commits else Flaw.NO_LEDGER
        what = (
            "its commits carry no totals, and the first of them have expired"
            if commits
            else "no snapshot says which offsets the table holds"
        )
        return verification([*findings, Finding(flaw=flaw, where=f"table {identifier}", what=what)], notes=tuple(notes))

    side, decision = _side(pipeline, lake, commits, wait)
    topic = pipeline.topic.name
    landed = count(table, table.head, _columns(pipeline), topic=topic, deep=deep)
    dead = _dead(side, commits, pipeline, deep=deep)
    pending, open_findings = _pending(table, side, decision, pipeline)
    for each_table in (table, side) if side is not None else (table,):
        findings += history.lost_manifests(each_table)
    accounts, wrong = account(totals, end, landed, dead, pending)
    findings += [*landed.findings, *dead.findings, *open_findings, *wrong]
    return verification(
        findings, partitions=accounts, reads=(landed.read, dead.read), notes=tuple(notes), commits=len(commits)
    )


def _columns(pipeline: Pipeline) -> Columns:
    return STRUCT if pipeline.table.metadata_columns is MetadataColumns.STRUCT else FLAT


def _side(
    pipeline: Pipeline, lake: Lake, commits: Sequence[Snapshot], wait: Callable[[float], None]
) -> tuple[StoredTable | None, Entry | None]:
    """The dead-letter table, and the decision that it has not finished. It is loaded after the table that decides."""
    side = lake.table(pipeline.table.dead_letters)
    for _ in range(LOOKS):
        decision = open_decision(commits, side, pipeline.name)
        if decision is None:
            return side, None
        wait(BETWEEN_LOOKS_SECONDS)
        side = lake.table(pipeline.table.dead_letters)
    return side, open_decision(commits, side, pipeline.name)


def _dead(side: StoredTable | None, commits: Sequence[Snapshot], pipeline: Pipeline, *, deep: bool) -> Counted:
    if side is None:
        return Counted(Read(pipeline.table.dead_letters, None), {}, ())
    snapshot = as_of(side, commits, pipeline.name)
    return count(side, snapshot, DEAD_LETTERS, topic=pipeline.topic.name, deep=deep)


def _pending(
    table: StoredTable, side: StoredTable | None, decision: Entry | None, pipeline: Pipeline
) -> tuple[Counted, list[Finding]]:
    """The dead letters that are decided and not appended yet, counted in the files that the decision names."""
    name = pipeline.table.dead_letters
    nothing = Counted(Read(name, None), {}, ())
    if decision is None or decision.side is None:
        return nothing, []
    where = f"table {name}"
    files = decided_files(table, decision.side, name)
    if files is None or side is None:
        lost = f"its file {decision.side}" if files is None else "the table"
        what = f"commit {decision.commit_id} decided dead letters that were never appended, and {lost} is gone"
        return nothing, [Finding(flaw=Flaw.DECISION_LOST, where=where, what=what)]
    gone = set(missing(side, [file.path for file in files]))
    pending = tally(side, [file for file in files if file.path not in gone], DEAD_LETTERS, topic=pipeline.topic.name)
    rows = sum(one.rows for one in pending.tallies.values())
    what = (
        f"{rows} dead letters of commit {decision.commit_id} are decided and not appended yet: no loss; "
        f"`frazil run {pipeline.name} --once` appends them"
    )
    findings = [Finding(flaw=Flaw.UNFINISHED, where=where, what=what, count=rows), *pending.findings]
    if gone:
        what = f"{len(gone)} files that the decision names do not exist: {', '.join(sorted(gone))}"
        findings.append(Finding(flaw=Flaw.FILE_LOST, where=where, what=what, count=len(gone)))
    return pending, findings
