"""A pipeline's chain of commits, each starting where the one before it ended, and the account that they carry on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from frazil.audit.finding import Finding, Flaw
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import KeyAccount
from frazil.lake.ledger.totals import Counts, Totals
from frazil.lake.read.stored_tables import Snapshot, StoredTable
from frazil.schemas.reasons import Reason


def check(table: StoredTable, pipeline: str, commits: Sequence[Snapshot]) -> list[Finding]:
    """Return what is wrong with the commits, newest first, as far as the table keeps them."""
    where = f"table {table.identifier}"
    findings = [*_of_the_tag(table, pipeline, commits, where)]
    entries = [commit.entry for commit in commits]
    for entry in entries:
        if entry.start is not None and entry.end is not None:
            replay = entry.summary.get(ledger.REPLAY)
            of_offsets = ledger.commit_id(pipeline, table.uuid, entry.start, entry.end, replay)
            if entry.commit_id != of_offsets:
                what = "its commit id is not that of its offsets: its summary was edited"
                findings.append(_finding(Flaw.MISCOUNTED, where, entry.snapshot_id, what))
    is_corrected = False  # by a decision that came later
    for commit, entry in zip(commits, entries, strict=True):
        wrong = [] if is_corrected else _gaps(entry)
        findings += [_finding(Flaw.MISCOUNTED, where, commit.id, what) for what in [*_of_itself(commit, entry), *wrong]]
        is_corrected = is_corrected or entry.event == ledger.RECOUNT
    for newer, older in pairwise(entries):
        if (found := _between(newer, older)) is not None:
            findings.append(_finding(found[0], where, newer.snapshot_id, found[1]))
    # An operator who held a table that was rolled back to before its first commit continued its account.
    is_first = bool(entries) and has_full_history(table, commits) and entries[-1].event != "rolled-back-hold"
    if is_first and not _carries_on(entries[-1], Totals()):
        what = "it is the first, and its totals are not what it counts"
        findings.append(_finding(Flaw.MISCOUNTED, where, entries[-1].snapshot_id, what))
    return findings


def totals(table: StoredTable, commits: Sequence[Snapshot]) -> Totals | None:
    """Return the account since the pipeline began, from the newest commit; else, if the first commit still exists, as a sum."""
    if not commits:
        return None
    carried = commits[0].entry.totals
    if carried is not None or not has_full_history(table, commits):
        return carried
    total = Totals()
    for commit in reversed(commits):
        total = _next(total, commit.entry)
    return total


def has_full_history(table: StoredTable, commits: Sequence[Snapshot]) -> bool:
    """Return whether the table still has all its snapshots since the first: nothing before the oldest commit is unknown.

    The first is known by its sequence number. A missing parent says nothing: PyIceberg removes the reference when it expires
    the parent.
    """
    *_, first = (None, *table.ancestors(commits[-1] if commits else None))
    return first is not None and first.sequence_number <= 1


def _next(before: Totals, entry: Entry) -> Totals:
    if entry.start is None or entry.end is None:
        return before
    return before.after(entry.start, entry.end, entry.counts or Counts())


def _carries_on(entry: Entry, before: Totals | None) -> bool:
    return entry.totals is None or before is None or entry.totals == _next(before, entry)


def _of_the_tag(table: StoredTable, pipeline: str, commits: Sequence[Snapshot], where: str) -> list[Finding]:
    tagged = table.tagged(pipeline)
    if not table.follows_tag(pipeline):
        what = "the head is not the pipeline's last commit, nor comes after it: it was rolled back by hand"
        return [Finding(flaw=Flaw.ROLLED_BACK, where=where, what=what)]
    if commits and (tagged is None or commits[0].id != tagged.id):
        marked = "is gone" if tagged is None else f"marks snapshot {tagged.id}"
        what = f"snapshot {commits[0].id} is the pipeline's last commit, and the tag {ledger.tag(pipeline)} {marked}"
        return [Finding(flaw=Flaw.UNTAGGED, where=where, what=what)]
    return []


def _of_itself(commit: Snapshot, entry: Entry) -> list[str]:
    """Return what a commit says of itself that does not add up."""
    counts, wrong = entry.counts, []
    if counts is None or entry.start is None or entry.end is None:
        return ["it lacks counts, or where it starts"]
    added = int(commit.summary.get("added-records", 0))
    written = counts.written + counts.marked
    if written != added:
        wrong.append(f"it counts {written} rows written and added {added}")
    if not counts.adds_up:
        wrong.append("what it read is not what it wrote, rejected, skipped and filtered")
    for what, reasons, at in (
        ("skipped", counts.skipped, counts.skipped_at),
        ("filtered", counts.filtered, counts.filtered_at),
    ):
        if sum(reasons.values()) != sum(at.values()):
            wrong.append(f"it {what} another number by reason than by partition")
    return wrong


def _gaps(entry: Entry) -> list[str]:
    """Return what a commit says of offsets without a record that does not add up."""
    counts = entry.counts
    if counts is None or entry.start is None or entry.end is None or ledger.EVENTS in entry.summary:
        return []
    gaps, covered = sum(counts.gaps.values()), sum(end - entry.start.at.get(p, end) for p, end in entry.end.at.items())
    if counts.read + gaps == covered:
        return []
    return [
        f"it covers {covered} offsets, and counts {counts.read} records and {gaps} gaps: if records were counted as gaps, "
        f"`frazil accept {entry.summary.get(ledger.PIPELINE, 'PIPELINE')} {ledger.RECOUNT} --reason …` corrects the number"
    ]


def _between(newer: Entry, older: Entry) -> tuple[Flaw, str] | None:
    """Return the flaw of a commit that does not continue the one before it; None if it does."""
    if newer.start is None or older.end is None or newer.event == "ledger-lost":  # then the account begins there
        return None
    apart = sorted(p for p, end in older.end.at.items() if newer.start.at.get(p) != end)
    late = {p: o for p, o in sorted(newer.start.at.items()) if p not in older.end.at and o > 0}
    if newer.start.topic_id != older.end.topic_id:
        return Flaw.HOLE, f"it starts in topic {newer.start.topic_id}, the one before it ended in {older.end.topic_id}"
    if apart:
        p = apart[0]
        before = f"snapshot {older.snapshot_id} ended at {older.end.at[p]}"
        what = f"it starts at offset {newer.start.at.get(p)} of partition {p}, {before}; so in {len(apart)} partitions"
        return Flaw.HOLE, what
    if late and ledger.EVENTS not in newer.summary:
        p, offset = next(iter(late.items()))
        what = (
            f"partition {p} was added after the commit before it, and its records are read from {offset} on, not from 0"
        )
        return Flaw.HOLE, what
    if (wrong := _keys(newer, older)) is not None:
        return Flaw.MISCOUNTED, wrong
    is_continued = _carries_on(newer, older.totals)
    return None if is_continued else (Flaw.MISCOUNTED, "it does not carry on the totals before it")


def _keys(newer: Entry, older: Entry) -> str | None:
    """Return what a commit of an upsert table says of its keys that does not add up; None if nothing."""
    now, before, counts = newer.keys, older.keys, newer.counts or Counts()
    if newer.event == ledger.ROWS_DELETED and now is not None and before is not None:
        is_carried = now.rows - before.rows == before.removed - now.removed and now.records == before.records
        return None if is_carried else "it does not carry on the account of the keys before it"
    if now is None or ledger.EVENTS in newer.summary:  # a decision after a rollback carries on the head's account
        return None if before is None or now is not None else "it does not carry on the account of the keys"
    was = before or KeyAccount()
    if (now.inserted + now.updated, now.deleted + now.absent) != (counts.written, counts.deletes):
        return "it counts other keys than it wrote and deleted"
    if now.cleared not in (0, was.rows) or (now.cleared and not counts.skipped.get(Reason.TRUNCATED.value)):
        return "it counts other rows than it took away"
    rows = was.rows - now.cleared + now.inserted - now.deleted - now.doubled + counts.marked
    expected = (rows, was.records + counts.landed, was.late + counts.late, was.removed)
    if (now.rows, now.records, now.late, now.removed) != expected:
        return "it does not carry on the account of the keys before it"
    return None


def _finding(flaw: Flaw, where: str, snapshot_id: int, what: str) -> Finding:
    return Finding(flaw=flaw, where=f"{where}, snapshot {snapshot_id}", what=what)
