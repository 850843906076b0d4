"""Prove that each record that was read is in its table, in its dead letters, or accounted for, exactly once.

The proof needs no JVM and no Kafka: the ledger in the table's snapshots says what was read, the data files say what
exists.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from frazil.audit.accounts import commit_chain
from frazil.audit.accounts.balance import PartitionAccount, account, by_topic, ranges_read
from frazil.audit.accounts.pending_dead_letters import (
    Tables,
    as_of,
    decided_outcomes,
    load_tables,
    pending_files,
    wrong_state,
)
from frazil.audit.accounts.state_rows import State, StateRows, check_key, of_remembered_deletes
from frazil.audit.files import manifests
from frazil.audit.files.count import Counted, Counting, Estimate, Read, files_of
from frazil.audit.files.file_scan import Columns, Source
from frazil.audit.files.page_checksums import read_pages
from frazil.audit.files.proofs import RULE, ProofFolder, Remembered, Result
from frazil.audit.files.window import Role
from frazil.audit.finding import Depth, Finding, Flaw, Outcome, worst
from frazil.audit.verification import Verification
from frazil.declaration import Pipeline
from frazil.declaration.write_modes import gaps_of_state
from frazil.errors import ColumnsMissing, OtherPipeline
from frazil.lake.commit.dead_letters.side_state import SideState
from frazil.lake.layout import Layout, check_metadata_columns, prefix_of
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Totals
from frazil.lake.read.data_files import field_ids
from frazil.lake.read.stored_tables import Lake, StoredTable

TRIES = 3  # when something is gone and the tables have moved on meanwhile: expiry may have taken it rightly
SHOWN_FILES = 3
FOOTERS = (
    "pages are compared with their checksums; footers and manifests have no checksum, so a changed footer may be unseen"
)
VANISHED = {Flaw.FILE_LOST, Flaw.MANIFEST_LOST}


def verify(
    pipeline: Pipeline,
    lake: Lake,
    *,
    deep: bool = False,
    keys: bool = False,
    fresh: bool = False,
    proofs: ProofFolder | None = None,
    announce: Callable[[Estimate], None] = lambda estimate: None,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> Verification:
    """Verify one pipeline's tables as they are now; a driver and maintenance may be running meanwhile.

    With `keys`, keys and coordinates of all rows are read, with `deep` all values. Keys are also read if another engine changed
    rows since they were read last. What was counted before and has not changed since is taken from `proofs`, unless `fresh`,
    `keys` or `deep`. `announce` is called with what has to be read before it is read. Raises `CatalogUnavailable`: nothing could be
    checked then, as with `Outcome.UNCHECKED`.
    """
    began = clock()
    for _ in range(TRIES):
        tables = load_tables(pipeline, lake, wait)
        audit = prepared(pipeline, tables, deep=deep, keys=keys, proofs=None if fresh else proofs)
        if isinstance(audit, Audit):
            announce(audit.estimate)
        found = audit.run(proofs) if isinstance(audit, Audit) else audit
        if not VANISHED & {finding.flaw for finding in found.findings} or tables.are_current(lake):
            break  # else what is gone may only have expired since the tables were loaded
    return replace(found, seconds=round(clock() - began, 3))


def plan(
    pipeline: Pipeline, lake: Lake, *, deep: bool = False, fresh: bool = False, proofs: ProofFolder | None = None
) -> Estimate | Verification:
    """Return what `verify` would read, without opening a data file; or its result, if there is nothing to compare."""
    tables = load_tables(pipeline, lake, lambda seconds: None)
    audit = prepared(pipeline, tables, deep=deep, keys=False, proofs=None if fresh else proofs)
    return audit.estimate if isinstance(audit, Audit) else audit


@dataclass(frozen=True, slots=True)
class Audit:
    """A verification whose files are known and not read yet; `parts` are of one topic each, the ledger's own first."""

    result: Verification
    parts: tuple[tuple[Totals, Offsets, Counting], ...]
    decision: Entry | None
    snapshots: Mapping[Role, int | None]
    key: Mapping[str, Any]
    before: Remembered
    reads_keys: bool
    is_changed: bool
    sources: tuple[Source, ...]
    remembered_deletes: tuple[str, ...]
    state: State | None

    @property
    def estimate(self) -> Estimate:
        """The rows to read: all keys of an upsert table, and all bytes for a deep verification."""
        found = self.parts[0][2].estimate
        if self.state is not None and self.reads_keys:
            files = self.state.source.files
            found = replace(found, files=found.files + len(files), rows=found.rows + sum(file.rows for file in files))
        if self.result.is_deep:
            found = replace(found, bytes=sum(file.bytes for source in self.sources for file in source.files))
        return found

    def run(self, proofs: ProofFolder | None) -> Verification:
        """Read the files and compare."""
        found = [(totals, end, counting.run()) for totals, end, counting in self.parts]
        counted = found[0][2]
        findings = [*self.result.findings, *counted.findings, *self._unfinished(counted)]
        is_countable = not any(one.flaw in (Flaw.EQUALITY_DELETES, Flaw.FORMAT_NOT_READ) for one in findings)
        accounts: tuple[PartitionAccount, ...] = ()
        names = dict.fromkeys(Role, self.result.dead_letters) | {Role.TABLE: self.result.table}
        for totals, end, part in found if is_countable else ():
            more, wrong = account(totals, end, part, names)
            accounts = (*accounts, *more)
            findings += [one for one in (*part.findings, *wrong) if one not in findings]
        reads, live = dict(counted.reads), None
        if self.state is not None:
            accounts, findings = self.state.accounts(accounts, findings)
            reads[Role.TABLE], live, wrong = self.state.rows()
            findings += wrong
        lacking = self._pages(findings) if self.result.is_deep else ()
        if self.is_changed and findings and {finding.flaw for finding in findings} == {Flaw.MISSING}:
            lacking = (*lacking, self._advice(findings, live))
        all_reads = [read for _, _, part in found for read in part.reads.values()]
        outcome, depth = worst(tuple(findings)), self._depth([*all_reads, *reads.values()])
        if proofs is not None and is_countable:
            at = {role.value: number for role, number in self.snapshots.items() if number is not None}
            is_read = outcome is Outcome.PROVEN and (self.reads_keys or depth is not Depth.COUNTED)
            read_at = at if is_read else self.before.read_at
            result = Result(round(proofs.now(), 3), outcome, depth, self.snapshots[Role.TABLE])
            proofs.store(self.key, replace(counted.remembered, read_at=read_at, result=result))
        return replace(
            self.result,
            outcome=outcome,
            depth=depth,
            live=live,
            notes=(*self.result.notes, *lacking, *((FOOTERS,) if self.result.is_deep else ())),
            cautions=(*self.result.cautions, *lacking),
            findings=tuple(findings),
            partitions=accounts,
            reads=tuple(
                replace(reads[role], snapshot_id=self.snapshots[role])
                if role in reads
                else Read(self.result.dead_letters, None)
                for role in (Role.TABLE, Role.DEAD_LETTERS)
            ),
            estimate=self.estimate,
        )

    def _advice(self, findings: Sequence[Finding], live: StateRows | None) -> str:
        """Return what an operator may do about missing rows or dead letters, after other engines' commits."""
        if self.state is not None and (len(findings) > 1 or live is None or live.rows >= self.state.account.rows):
            return (
                f"dead letters are missing in table {self.result.dead_letters}: no decision counts deleted dead letters of an "
                "upsert table, so verify finds them missing from now on"
            )
        if len(self.parts) > 1:
            return "the table has rows of several topics: no decision counts deleted ones"
        command = f"`frazil accept {self.result.pipeline} {ledger.ROWS_DELETED} --reason …`"
        return f"if other engines only deleted rows, and did so on purpose, {command} counts them as deleted"

    def _pages(self, findings: list[Finding]) -> tuple[str, ...]:
        """Read all pages, and add what is wrong with them to `findings`; return what is to be said of files without checksums."""
        lacking = []
        for number, source in enumerate(self.sources):
            pages, known = read_pages(source, self.remembered_deletes if number == 0 else ()), tuple(findings)
            findings += [one for one in pages.findings if not any(one.what.split(" ", 1)[0] in f.what for f in known)]
            if pages.unchecked:
                more = ", …" if len(pages.unchecked) > SHOWN_FILES else ""
                lacking.append(
                    f"table {source.table.identifier}: {len(pages.unchecked)} files have no checksums, so a changed byte in them "
                    f"may be unseen: {', '.join(pages.unchecked[:SHOWN_FILES])}{more}"
                )
        return tuple(lacking)

    def _depth(self, reads: Sequence[Read]) -> Depth:
        if self.result.is_deep:
            return Depth.VALUES_READ
        is_read = any(read.rows_by_scan for read in reads)
        is_counted = any(read.rows_by_manifest or read.rows_remembered for read in reads)
        return Depth.KEYS_READ if is_read and not is_counted else Depth.COUNTED

    def _unfinished(self, counted: Counted) -> list[Finding]:
        if self.decision is None or Role.PENDING not in counted.reads:
            return []
        rows = sum(tally.pending for _, tally in counted.tallies)
        rows += sum(found.number for (role, _), found in counted.outside.items() if role is Role.PENDING)
        what = (
            f"{rows} dead letters of commit {self.decision.commit_id} are decided and not appended yet: no loss; "
            f"`frazil run {self.result.pipeline} --once` appends them"
        )
        if self.decision.is_replay:
            what = (
                f"a replay of dead letters (commit {self.decision.commit_id}) is not finished at the dead-letter table: "
                f"`frazil run {self.result.pipeline} --once` finishes it"
            )
        if ledger.EVENTS in self.decision.summary:
            what = (
                f"an operator's decision (commit {self.decision.commit_id}) is not finished at the dead-letter table: "
                f"`frazil run {self.result.pipeline} --once` finishes it"
            )
        return [Finding(flaw=Flaw.UNFINISHED, where=f"table {self.result.dead_letters}", what=what, count=rows)]


def prepared(
    pipeline: Pipeline, tables: Tables, *, deep: bool, keys: bool, proofs: ProofFolder | None
) -> Audit | Verification:
    """Return what is to be counted; or the verification, if there is nothing to compare with."""
    table, side, commits = tables.table, tables.side, tables.commits
    known: dict[str, Any] = {}

    def verification(findings: Sequence[Finding], flaw: Flaw | None = None, what: str = "") -> Verification:
        where = f"table {pipeline.table.identifier}"
        found = (*findings, *([] if flaw is None else [Finding(flaw=flaw, where=where, what=what)]))
        return Verification(
            pipeline=pipeline.name,
            table=pipeline.table.identifier,
            dead_letters=pipeline.table.dead_letters,
            topic=pipeline.topic.name,
            outcome=worst(found),
            is_deep=deep,
            findings=found,
            **known,
        )

    if table is None:
        return verification([], Flaw.NO_TABLE, "the table does not exist: nothing was read yet, or it was dropped")
    newest = commits[0].entry if commits else None
    stale = newest.stale_keys if newest is not None else None
    foreign = [note for one in (table, side) if one is not None for note in manifests.of_others(one)]
    cautions = (*gaps_of_state(pipeline), *(stale.notes if stale is not None else ()), *foreign)
    known |= {"notes": (*manifests.notes(table, pipeline.name, commits), *cautions), "cautions": cautions}
    findings, totals = commit_chain.check(table, pipeline.name, commits), commit_chain.totals(table, commits)
    if newest is None or newest.end is None:
        is_ours = table.layout.is_ours
        what = "no snapshot says which offsets the table holds" if is_ours else "Frazil did not make this table"
        if others := table.layout.writers - {pipeline.name}:
            what = OtherPipeline.said(others)[0]
        return verification(findings, Flaw.NO_LEDGER, what)
    if totals is None:
        what = "its commits carry no totals, and the first of them have expired"
        return verification(findings, Flaw.NO_TOTALS, what)

    if tables.ahead is not None:
        what = f"snapshot {tables.ahead.id} has dead letters of offsets that table {table.identifier} has not come to"
        findings.append(Finding(flaw=Flaw.SIDE_AHEAD, where=f"table {pipeline.table.dead_letters}", what=what))
    if tables.ahead is None or tables.state is not SideState.AHEAD:
        findings += wrong_state(tables.state, pipeline.table.dead_letters)
    check_metadata_columns(pipeline, table.layout)
    if newest.keys is not None:
        check_key(pipeline, table.layout)
    loaded = {Role.TABLE: (table, table.head, place_columns(pipeline))}
    if side is not None:
        loaded[Role.DEAD_LETTERS] = (side, as_of(side, commits, pipeline.name), _dead_letter_columns(side))
    sources: dict[Role, Source] = {}
    for role, (stored, snapshot, columns) in loaded.items():
        _check_columns(pipeline, stored.identifier, stored.layout, columns.all)
        sources[role], wrong = files_of(role, stored, snapshot, columns)
        findings += [*manifests.lost_manifests(stored), *wrong]
    if side is not None and tables.decision is not None and tables.decision.is_replay and tables.decision.side:
        replayed = decided_outcomes(table, tables.decision.side, side.identifier)
        sources[Role.DEAD_LETTERS] = replace(sources[Role.DEAD_LETTERS], replayed=replayed)
    pending, wrong = pending_files(table, side, tables.decision, pipeline, Columns("topic", "partition", "offset"))
    findings += wrong
    if newest.keys is not None:
        findings += of_remembered_deletes(table, pipeline.name, newest.remembered_deletes)
    if newest.keys is not None and newest.keys.late:
        late = f"{newest.keys.late:,} of the records came late: their keys had later rows, so they changed nothing"
        known["notes"] = (*known["notes"], late)
    topics = by_topic(totals, newest.end)
    key = _key(pipeline, topics[0][1].topic, [(stored, columns) for stored, _, columns in loaded.values()])
    before = proofs.load(key) if proofs is not None else Remembered()
    newer = [manifests.foreign_commits(stored, before.read_at.get(role)) for role, (stored, *_) in loaded.items()]
    reads_keys = deep or keys or any(newer)
    state = State(sources[Role.TABLE], newest.keys, reads_keys) if newest.keys is not None else None
    counted = [*(of for role, of in sources.items() if state is None or role is not Role.TABLE), *pending]
    believed = None if deep or keys or (reads_keys and state is not None) else before
    parts = list[tuple[Totals, Offsets, Counting]]()
    for totals, end in topics:
        remembered = None if parts else believed
        read = ranges_read(totals, end)
        counting = Counting(counted, read, topic=end.topic, deep=reads_keys, remembered=remembered)
        parts.append((totals, end, counting))
    known |= {"stale_keys": stale.keys, "unknown_keys": stale.unknown} if stale is not None else {}
    known["commits"] = len(commits)
    return Audit(
        result=verification(findings),
        parts=tuple(parts),
        decision=tables.decision,
        snapshots={role: snapshot.id if snapshot else None for role, (_, snapshot, _) in loaded.items()},
        key=key,
        before=before,
        reads_keys=reads_keys,
        is_changed=any(manifests.undecided_commits(stored) for stored, *_ in loaded.values()),
        sources=(*sources.values(), *pending),
        remembered_deletes=newest.remembered_deletes.locations,
        state=state,
    )


def _dead_letter_columns(side: StoredTable) -> Columns:
    """Return the columns of dead letters; a table of an earlier release lacks their outcome."""
    return Columns("topic", "partition", "offset", "outcome" if "outcome" in side.layout.columns else None)


def place_columns(pipeline: Pipeline) -> Columns:
    """Return the columns that say which record a row of the table was."""
    return Columns(*(f"{prefix_of(pipeline)}{name}" for name in ("topic", "partition", "offset")))


def last_result(pipeline: Pipeline, table: StoredTable, side: StoredTable | None, proofs: ProofFolder) -> Result | None:
    """Return the result of the last verification of these tables that a folder remembers; None without one."""
    newest = table.newest(pipeline.name)
    if newest is None or newest.entry.end is None:
        return None
    loaded = [(table, place_columns(pipeline)), *([(side, _dead_letter_columns(side))] if side is not None else [])]
    return proofs.load(_key(pipeline, newest.entry.end.topic, loaded)).result


def _key(pipeline: Pipeline, topic: str, loaded: Sequence[tuple[StoredTable, Columns]]) -> dict[str, Any]:
    """Return what a proof is of."""
    tables = [_identity(stored, columns) for stored, columns in loaded]
    return {"rule": RULE, "pipeline": pipeline.name, "topic": topic, "tables": tables}


def _identity(table: StoredTable, columns: Columns) -> list[Any]:
    """Return a table's uuid, and which of its columns say where a row comes from."""
    return [table.uuid, [[name, number] for name, (number, _) in field_ids(table, columns.all).items()]]


def _check_columns(pipeline: Pipeline, table: str, actual: Layout, names: Iterable[str]) -> None:
    """Raise `ColumnsMissing` if a table lacks one of its columns, with the name that it has now."""
    if lost := {name: actual.name_now(name) for name in names if name not in actual.columns}:
        raise ColumnsMissing.of(pipeline.name, table, lost)
