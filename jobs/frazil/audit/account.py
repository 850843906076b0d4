"""The account of one partition: landed + dead-lettered + declared skipped + explained = read.

`landed` and `dead_lettered` come from data files, `skipped` and `explained` from what the commits say of themselves;
nothing is told by subtracting one from another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from frazil.audit.count import Counted
from frazil.audit.finding import SHOWN, Finding, Flaw
from frazil.audit.runs import Range, Runs, holes, of_ranges, union, within
from frazil.lake.ledger import Offsets, Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAccount:
    """What became of the offsets of one partition that were read since the pipeline began.

    `start` and `end` are those of the stretch that the ledger is in; `read` counts stretches closed by an operator's
    decision too. `explained` are offsets that hold no record: gaps of compaction and transactions, and those that an
    operator accepted. `pending` are dead letters that are decided and not appended yet.
    """

    partition: int
    start: int
    end: int
    read: int
    landed: int
    dead_lettered: int
    skipped: int
    explained: int
    pending: int = 0

    @property
    def adds_up(self) -> bool:
        """The equation."""
        return self.read == self.landed + self.dead_lettered + self.skipped + self.explained + self.pending


def account(
    totals: Totals, end: Offsets, table: Counted, side: Counted, pending: Counted
) -> tuple[tuple[PartitionAccount, ...], list[Finding]]:
    """Each partition's account, and what is wrong with its records."""
    accounts, findings = [], []
    closed = {c.partition for c in totals.closed}
    partitions = {*totals.at, *closed, *table.tallies, *side.tallies, *pending.tallies}
    for partition in sorted(partitions):
        one, wrong = _account(partition, totals, end, table, side, pending)
        accounts.append(one)
        findings += wrong
    return tuple(accounts), findings


def _account(
    partition: int, totals: Totals, end: Offsets, table: Counted, side: Counted, pending: Counted
) -> tuple[PartitionAccount, list[Finding]]:
    total, closed = totals.at.get(partition), [c for c in totals.closed if c.partition == partition]
    stretches = [Range(c.start, c.end) for c in closed]
    if total is not None:
        stretches.append(Range(total.start, end.at.get(partition, total.start)))
    findings: list[Finding] = []

    def note(flaw: Flaw, where: str, what: str, offsets: Runs, number: int | None = None) -> None:
        number = offsets.offsets if number is None else number
        if number:
            findings.append(
                Finding(
                    flaw=flaw,
                    where=f"{where}, partition {partition}",
                    what=f"{number} {what}{_told(offsets)}",
                    partition=partition,
                    ranges=offsets.ranges(SHOWN),
                    count=number,
                )
            )

    # Offsets that an operator's decision lets come again may stand once more for each time.
    _, again = union([of_ranges(stretches)])
    doubled = 0
    for counted in (table, side):
        _, outside = within(counted.set_of(partition), stretches)
        note(Flaw.OUT_OF_RANGE, f"table {counted.read.table}", "records are of offsets that were not read: ", outside)
        excess = counted.tallies[partition].excess if partition in counted.tallies else []
        twice, beyond = _beyond(excess, again)
        note(Flaw.DOUBLED, f"table {counted.read.table}", "rows too many, of ", twice, beyond)
        doubled += beyond + outside.offsets
    _, both = union([table.set_of(partition), side.set_of(partition)])
    both = within(both, again.ranges())[1]
    note(Flaw.IN_BOTH, f"table {table.read.table}", "records are rows and dead letters too: ", both)

    read = sum(map(len, stretches))
    skipped = sum(c.skipped for c in closed) + (total.skipped if total else 0)
    explained = sum(c.gaps for c in closed) + (total.gaps if total else 0)
    found = [counted.rows_of(partition) for counted in (table, side, pending)]
    missing = read - (sum(found) - doubled - both.offsets) - skipped - explained
    absent = holes(union([c.set_of(partition) for c in (table, side, pending)])[0], stretches)
    if missing > 0:
        what = (
            "records are in neither table: "
            if not skipped + explained
            else (f"records are in neither table, among the {absent.offsets} offsets without a row: ")
        )
        note(Flaw.MISSING, f"table {table.read.table}", what, absent, missing)
    elif missing < 0:
        what = "records were counted as skipped or explained, and are there: the offsets without a row are "
        note(Flaw.EXCESS, f"table {table.read.table}", what, absent, -missing)
    now = stretches[-1] if stretches else Range(0, 0)
    return PartitionAccount(
        partition=partition,
        start=now.start,
        end=now.end,
        read=read,
        landed=found[0],
        dead_lettered=found[1],
        skipped=skipped,
        explained=explained,
        pending=found[2],
    ), findings


def _beyond(excess: Sequence[Runs], again: Runs) -> tuple[Runs, int]:
    """What of the excess is not allowed, as a set, and how many rows that is."""
    twice, more = union(excess)
    _, outside = within(twice, again.ranges())
    return outside, outside.offsets + more.offsets


def _told(offsets: Runs) -> str:
    shown = ", ".join(map(str, offsets.ranges(3)))
    return f"offsets {shown}{', …' if len(offsets) > 3 else ''}" if shown else "none"
