"""Verify: the proof that each record that was read is in its table, in its dead letters, or accounted for, exactly
once.

It needs no JVM and no Kafka: the ledger in the table's snapshots says what was read, the data files say what is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from frazil.audit import chain, history
from frazil.audit.account import PartitionAccount, account
from frazil.audit.count import Counted, Read, count, nothing, tally
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
TRIES = 3  # when something is gone and the tables have moved on meanwhile: expiry may have taken it rightly
VANISHED = {Flaw.FILE_LOST, Flaw.MANIFEST_LOST}


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
    """Verify one pipeline as its tables stand now; a driver and maintenance may be at work meanwhile.

    Raises `CatalogUnavailable`: nothing could be checked then, as with `Outcome.UNCHECKED`.
    """
    began = clock()
    for _ in range(TRIES):
        tables = _load(pipeline, lake, wait)
        found = _verified(pipeline, tables, deep=deep)
        if not VANISHED & {finding.flaw for finding in found.findings} or tables.are_current(lake):
            break  # else what is gone may only have expired since the tables were loaded
    return replace(found, seconds=round(clock() - began, 3))


@dataclass(frozen=True, slots=True)
class _Tables:
    """A pipeline's tables, the dead letters' loaded after the one that decides; and a decision that is still open."""

    table: StoredTable | None
    side: StoredTable | None = None
    commits: tuple[Snapshot, ...] = ()
    decision: Entry | None = None

    def are_current(self, lake: Lake) -> bool:
        """Whether nobody has committed to them since."""
        known = [table for table in (self.table, self.side) if table is not None]
        now = [lake.table(table.identifier) for table in known]
        return [table.version for table in known] == [table.version for table in now if table is not None]


def _load(pipeline: Pipeline, lake: Lake, wait: Callable[[float], None]) -> _Tables:
    table = lake.table(pipeline.table.identifier)
    if table is None:
        return _Tables(None)
    commits = table.commits(pipeline.name)
    for look in range(LOOKS):
        if look:
            wait(BETWEEN_LOOKS_SECONDS)
        side = lake.table(pipeline.table.dead_letters)
        decision = open_decision(commits, side, pipeline.name)
        if decision is None:
            break
    return _Tables(table, side, commits, decision)


def _verified(pipeline: Pipeline, tables: _Tables, *, deep: bool) -> Verification:
    table, side, commits = tables.table, tables.side, tables.commits
    identifier, topic = pipeline.table.identifier, pipeline.topic.name

    def verification(findings: Sequence[Finding], **known: Any) -> Verification:
        return Verification(
            pipeline=pipeline.name,
            table=identifier,
            dead_letters=pipeline.table.dead_letters,
            topic=topic,
            outcome=worst(tuple(findings)),
            is_deep=deep,
            findings=tuple(findings),
            **known,
        )

    def unchecked(flaw: Flaw, what: str) -> Finding:
        return Finding(flaw=flaw, where=f"table {identifier}", what=what)

    if table is None:
        what = "the table does not exist: nothing was read yet, or it was dropped"
        return verification([unchecked(Flaw.NO_TABLE, what)])
    notes = tuple(history.notes(table, pipeline.name, commits))
    findings = chain.check(table, pipeline.name, commits)
    end, totals = commits[0].entry.end if commits else None, chain.totals(table, commits)
    if end is None:
        what = "no snapshot says which offsets the table holds"
        return verification([*findings, unchecked(Flaw.NO_LEDGER, what)], notes=notes)
    if totals is None:
        what = "its commits carry no totals, and the first of them have expired"
        return verification([*findings, unchecked(Flaw.NO_TOTALS, what)], notes=notes)

    for one in (table, side):
        findings += history.lost_manifests(one) if one is not None else []
    columns = STRUCT if pipeline.table.metadata_columns is MetadataColumns.STRUCT else FLAT
    landed = count(table, table.head, columns, topic=topic, deep=deep)
    dead = nothing(pipeline.table.dead_letters)
    if side is not None:
        dead = count(side, as_of(side, commits, pipeline.name), DEAD_LETTERS, topic=topic, deep=deep)
    pending, undone = _pending(table, side, tables.decision, pipeline)
    findings += [*landed.findings, *dead.findings, *undone]
    accounts: tuple[PartitionAccount, ...] = ()
    if not any(finding.flaw is Flaw.EQUALITY_DELETES for finding in findings):
        accounts, wrong = account(totals, end, landed, dead, pending)
        findings += wrong
    return verification(
        findings, partitions=accounts, reads=(landed.read, dead.read), notes=notes, commits=len(commits)
    )


def _pending(
    table: StoredTable, side: StoredTable | None, decision: Entry | None, pipeline: Pipeline
) -> tuple[Counted, list[Finding]]:
    """The dead letters that are decided and not appended yet, counted in the files that the decision names."""
    name = pipeline.table.dead_letters
    if decision is None or decision.side is None:
        return nothing(name), []
    where = f"table {name}"
    files = decided_files(table, decision.side, name)
    if files is None or side is None:
        lost = f"its file {decision.side}" if files is None else "the table"
        what = f"commit {decision.commit_id} decided dead letters that were never appended, and {lost} is gone"
        return nothing(name), [Finding(flaw=Flaw.DECISION_LOST, where=where, what=what)]
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
