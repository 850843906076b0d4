"""The account of one partition: landed + dead-lettered + skipped and filtered as declared + gaps = offsets read.

`landed` and `dead_lettered` come from data files, the other terms from what the commits say of themselves. None of them is the
difference of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from frazil.audit.files.count import Counted
from frazil.audit.files.window import NONE, Found, Role, Tally
from frazil.audit.finding import Finding, Flaw, Range
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Closed, Total, Totals


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAccount:
    """The offsets of one partition that were read since the pipeline began, and what each of them is.

    `start` and `end` are those of the stretch that the ledger is in; `read` counts the offsets of stretches that an
    operator's decision closed too. `gaps` are offsets that hold no record: those that Kafka's compaction and transactions leave,
    and those that an operator accepted. `pending` are dead letters that are decided and not appended yet. `deleted` are rows that
    other engines deleted, as an operator accepted. `filtered` are records that the declaration's `where` leaves out. `topic` is
    the partition's topic: a pipeline that was moved has accounts of each.
    """

    partition: int
    start: int
    end: int
    read: int
    landed: int
    dead_lettered: int
    skipped: int
    gaps: int
    pending: int = 0
    deleted: int = 0
    filtered: int = 0
    topic: str = ""

    @property
    def adds_up(self) -> bool:
        """The equation."""
        found = self.landed + self.dead_lettered + self.pending
        return self.read == found + self.skipped + self.filtered + self.gaps + self.deleted


def by_topic(totals: Totals, end: Offsets) -> tuple[tuple[Totals, Offsets], ...]:
    """Split an account by topic: totals and offsets of each. The topic that the ledger is in comes first."""
    named: dict[str, list[Closed]] = {}
    for one in totals.closed:
        named.setdefault(one.topic, []).append(one)
    now = Totals(totals.at, tuple(named.pop(end.topic, ()))), end
    return (now, *((Totals({}, tuple(closed)), Offsets(name, "", {})) for name, closed in sorted(named.items())))


def ranges_read(totals: Totals, end: Offsets) -> dict[int, list[Range]]:
    """Return what was read of each partition: closed accounts in their order, then the one that the ledger is in."""
    found: dict[int, list[Range]] = {}
    for closed in totals.closed:
        found.setdefault(closed.partition, []).append(Range(closed.start, closed.end))
    for partition, total_ in totals.at.items():
        found.setdefault(partition, []).append(Range(total_.start, end.at.get(partition, total_.start)))
    return found


def account(
    totals: Totals, end: Offsets, counted: Counted, tables: Mapping[Role, str]
) -> tuple[tuple[PartitionAccount, ...], list[Finding]]:
    """Return each partition's account, and what is wrong with its records. `tables` are the names of the tables."""
    accounts, findings = [], []
    read = ranges_read(totals, end)
    tallies: dict[int, list[Tally]] = {}
    for part, tally in counted.tallies:
        tallies.setdefault(part.partition, []).append(tally)
    for partition in sorted({*read, *(partition for _, partition in counted.outside)}):
        outside = {role: counted.outside.get((role, partition), NONE) for role in Role}
        tally = sum(tallies.get(partition, ()), Tally())
        one, wrong = _account(partition, read.get(partition, []), totals, tally, outside, tables)
        accounts.append(replace(one, topic=end.topic))
        findings += wrong
    return tuple(accounts), findings


def _account(
    partition: int,
    read: Sequence[Range],
    totals: Totals,
    tally: Tally,
    outside: Mapping[Role, Found],
    tables: Mapping[Role, str],
) -> tuple[PartitionAccount, list[Finding]]:
    findings: list[Finding] = []

    def note(flaw: Flaw, role: Role, what: str, found: Found, number: int | None = None) -> None:
        if number := found.number if number is None else number:
            where, what = f"table {tables[role]}, partition {partition}", f"{number} {what}{found.describe()}"
            ranges = found.ranges
            findings.append(
                Finding(flaw=flaw, where=where, what=what, partition=partition, ranges=ranges, count=number)
            )

    for role in Role:
        note(Flaw.OUT_OF_RANGE, role, "records are of offsets that were not read: ", outside[role])
    note(Flaw.DOUBLED, Role.TABLE, "rows too many, of ", tally.doubled)
    note(Flaw.DOUBLED, Role.DEAD_LETTERS, "rows too many, of ", tally.doubled_dead)
    note(Flaw.IN_BOTH, Role.TABLE, "records are rows and dead letters too: ", tally.both)

    parts = [totals.at.get(partition, Total(0)), *(c for c in totals.closed if c.partition == partition)]
    terms = {of: sum(getattr(part, of) for part in parts) for of in ("skipped", "gaps", "deleted", "filtered")}
    absent = sum(terms.values())
    offsets, twice = sum(map(len, read)), tally.doubled.number + tally.doubled_dead.number + tally.both.number
    found = tally.landed + tally.dead_lettered + tally.pending - twice
    missing = offsets - found - absent
    if missing > 0:
        what = "records are in neither table"
        if absent:
            what += f", among the {tally.absent.number} offsets without a row"
        note(Flaw.MISSING, Role.TABLE, f"{what}: ", tally.absent, missing)
    elif missing < 0:
        what = "records were counted as skipped, filtered, as gaps or as deleted, and exist: the offsets without a row are "
        note(Flaw.EXCESS, Role.TABLE, what, tally.absent, -missing)
    last = read[-1] if read else Range(0, 0)
    return PartitionAccount(
        partition=partition,
        start=last.start,
        end=last.end,
        read=offsets,
        landed=tally.landed + outside[Role.TABLE].number,
        dead_lettered=tally.dead_lettered + outside[Role.DEAD_LETTERS].number,
        pending=tally.pending + outside[Role.PENDING].number,
        **terms,
    ), findings
