"""Prove that no record of a routed topic is in two of its tables, and count those that are in none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from frazil.audit.accounts.pending_dead_letters import Tables, load_tables
from frazil.audit.files.count import Counting
from frazil.audit.files.file_scan import Source
from frazil.audit.files.window import Found, Role, Tally
from frazil.audit.finding import Finding, Flaw, Outcome, Range, worst
from frazil.audit.verification import Verification
from frazil.audit.verify import prepared
from frazil.declaration import Header, Pipeline, Rest
from frazil.declaration.documents.to_json import to_json
from frazil.lake.layout import shapes
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Total, Totals
from frazil.lake.read.stored_tables import Lake


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicVerification:
    """The comparison of a topic's tables, over the offsets that all pipelines of its route have read.

    `landed` are rows of append tables; tables with a key, `states` of them, are not compared. `dead_lettered` are dead letters, of
    which `repeated` are those of a record that is one in several tables, and `also_landed` those of one that is a row of another
    table. `nowhere` are offsets with neither: gaps, records that each table filtered or skipped, and those of tables with a key.
    `is_complete` says that these were compared with what the tables count, which is possible where all have read to the same
    offsets. `waits` are pipelines without a table yet.
    """

    topic: str
    pipelines: tuple[str, ...]
    outcome: Outcome
    offsets: int = 0
    landed: int = 0
    dead_lettered: int = 0
    repeated: int = 0
    also_landed: int = 0
    nowhere: int = 0
    states: int = 0
    is_complete: bool = False
    waits: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Return the exit code: 0 proven, 1 not proven, 5 could not be checked."""
        return self.outcome.exit_code

    def document(self) -> dict[str, Any]:
        """Return the verification as JSON."""
        return {**asdict(self), "exit_code": self.exit_code}


def families(pipelines: Sequence[Pipeline]) -> list[list[Pipeline]]:
    """Return the pipelines of each route of a topic; those without a route are in none.

    A topic may be routed twice by the same types. Then each type is in each route once, in the order of the declaration.
    """
    found: dict[object, list[list[Pipeline]]] = {}
    for one in pipelines:
        if (route := one.shape.route) is not None:
            known = found.setdefault(route.of_topic, [])
            mine = next((family for family in known if not any(_is_same_place(one, other) for other in family)), None)
            if mine is None:
                known.append(mine := [])
            mine.append(one)
    return [family for known in found.values() for family in known]


def _is_same_place(one: Pipeline, other: Pipeline) -> bool:
    a, b = one.shape.route, other.shape.route
    return a is not None and b is not None and a.types == b.types


@dataclass(slots=True)
class _Tables:
    """The tables of a route, loaded. `reads` and `accounts` are in the order of the pipelines."""

    sources: list[Source] = field(default_factory=list)
    reads: list[Mapping[int, Range]] = field(default_factory=list)
    accounts: list[tuple[bool, Mapping[int, Total]]] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


def verify_topic(
    pipelines: Sequence[Pipeline], lake: Lake, *, wait: Callable[[float], None] = time.sleep
) -> TopicVerification:
    """Compare the tables of one route, by the coordinates of their rows. Raises `CatalogUnavailable`.

    A table with a key has the coordinates of each key's last record only, or deletes that other ones have, too. So for these
    tables their own proof counts, and here records that are in no other table may be theirs.
    """
    began = time.monotonic()
    topic, found = pipelines[0].topic.name, _Tables()
    for pipeline in pipelines:
        _load(pipeline, load_tables(pipeline, lake, wait), found)
    common = _common(found.reads)
    if not found.findings and not common:
        what = "there are no offsets that all tables have read"
        found.findings.append(Finding(flaw=Flaw.NOT_COMPARED, where=f"topic {topic}", what=what))
    findings, total, is_complete = found.findings, Tally(), False
    if not findings:
        every = {p for one in found.reads for p in one}  # a table may have no partition that has no record
        reads = [{p: one.get(p, Range(0, 0)) for p in every} for one in found.reads]
        is_complete = not found.waits and all(one[p].end == reads[0][p].end for one in reads for p in every)
        are_same = all(one == reads[0] for one in reads)
        ranges = {p: [one] for p, one in common.items()}
        counted = Counting(found.sources, ranges, topic=topic, deep=False, remembered=None).run()
        sums: dict[int, Tally] = {}
        for part, tally in counted.tallies:
            sums[part.partition] = sums.get(part.partition, Tally()) + tally
        route = pipelines[0].shape.route
        is_certain = route is not None and isinstance(route.by, Header)
        has_rest = any(one.shape.route is not None and one.shape.route.rest is not Rest.FILTER for one in pipelines)
        of_records = list[Finding]()
        for p, tally in sums.items():
            limit = _limit(found.accounts, p, has_rest=has_rest) if is_complete else None
            if limit and not are_same:  # a table may have left them out before another one began
                limit, is_complete = None, False
            of_records += _findings(topic, p, tally, limit, is_certain=is_certain)
        findings = [*counted.findings, *_explained(topic, of_records, found.changed)]
        total = sum(sums.values(), Tally())
    return TopicVerification(
        topic=topic,
        pipelines=tuple(one.name for one in pipelines),
        outcome=worst(tuple(findings)),
        offsets=sum(map(len, common.values())),
        landed=total.landed,
        dead_lettered=total.dead_lettered + total.pending,
        repeated=total.doubled_dead.number,
        also_landed=total.both.number,
        nowhere=total.absent.number,
        states=sum(one.write.has_key for one in pipelines),
        is_complete=is_complete,
        waits=tuple(found.waits),
        findings=tuple(findings),
        seconds=round(time.monotonic() - began, 3),
    )


def _load(pipeline: Pipeline, tables: Tables, found: _Tables) -> None:
    audit = prepared(pipeline, tables, deep=False, keys=False, proofs=None)
    if isinstance(audit, Verification):
        if {one.flaw for one in audit.findings} == {Flaw.NO_TABLE}:
            found.waits.append(pipeline.name)
        else:
            found.findings += audit.findings
        return
    found.findings += audit.result.findings
    totals, end, _ = audit.parts[0]
    if totals.closed or len(audit.parts) > 1:
        what = "the topic was created again, or truncated, so that offsets have more than one record"
        found.findings.append(Finding(flaw=Flaw.NOT_COMPARED, where=f"pipeline {pipeline.name}", what=what))
        return
    assert tables.table is not None
    declared = to_json(pipeline.shape.of_rows).get("route")
    if any(shape.get("route") != declared for shape in shapes(tables.table.layout)):
        found.changed.append(pipeline.name)
    found.reads.append(_ranges(totals, end))
    found.accounts.append((pipeline.write.has_key, totals.at))
    found.sources += [one for one in audit.sources if not (pipeline.write.has_key and one.role is Role.TABLE)]


def _ranges(totals: Totals, end: Offsets) -> dict[int, Range]:
    """Return the offsets that a pipeline has read, by partition."""
    return {p: Range(one.start, end.at.get(p, one.start)) for p, one in totals.at.items()}


def _common(reads: Sequence[Mapping[int, Range]]) -> dict[int, Range]:
    """Return the offsets that all have read, by partition, without partitions that have none."""
    if not reads:
        return {}
    partitions = set(reads[0]).intersection(*reads[1:])
    found = {p: Range(max(one[p].start for one in reads), min(one[p].end for one in reads)) for p in sorted(partitions)}
    return {p: one for p, one in found.items() if one.start < one.end}


def _limit(accounts: Sequence[tuple[bool, Mapping[int, Total]]], partition: int, *, has_rest: bool) -> int | None:
    """Return how many offsets may be nowhere, as the accounts of the tables say; None if no table is compared.

    If the route leaves no record to no table (`has_rest`) and all tables are compared, they are gaps, and what a table has left out
    of its own records. Compaction and retention may have made other gaps for each table, so the bound is the sum of them. Else they
    are no more than any compared table lacks.
    """
    of = [(has_key, at.get(partition, Total(0))) for has_key, at in accounts]
    lacks = [one.filtered + one.skipped + one.gaps + one.deleted for has_key, one in of if not has_key]
    if not lacks:
        return None
    if not has_rest or any(has_key for has_key, _ in of):
        return min(lacks)
    return sum(one.gaps + one.filtered - one.routed + one.skipped + one.deleted for _, one in of)


def _findings(topic: str, partition: int, tally: Tally, limit: int | None, *, is_certain: bool) -> list[Finding]:
    """Return what is wrong with the records of a partition. The type of one is only certain before it is decoded by a header.

    Else a record that one table cannot take, or whose schema was unknown, may be a dead letter there and land in another one.
    """
    where = f"topic {topic}, partition {partition}"

    def of(flaw: Flaw, what: str, found: Found) -> Finding:
        said = f"{found.number} {what}: {found.describe()}"
        return Finding(flaw=flaw, where=where, what=said, partition=partition, ranges=found.ranges, count=found.number)

    made = []
    if tally.doubled.number:
        made.append(of(Flaw.DOUBLED, "rows are of records that another table has, too", tally.doubled))
    if is_certain and tally.both.number:
        made.append(of(Flaw.IN_BOTH, "records are rows of a table and dead letters of another", tally.both))
    if limit is not None and tally.absent.number > limit:
        found = Found(tally.absent.number - limit, tally.absent.ranges)
        made.append(
            of(
                Flaw.MISSING,
                "records more than the tables left out are in none, among the offsets without a row",
                found,
            )
        )
    return made


def _explained(topic: str, findings: Sequence[Finding], changed: Sequence[str]) -> Sequence[Finding]:
    """Return the findings; if the route of a table was changed, that nothing follows from them."""
    if not findings or not changed:
        return findings
    names = ", ".join(changed)
    what = f"the route of {names} was changed, so records of before may be in two tables or in none: {findings[0].what}"
    return [Finding(flaw=Flaw.NOT_COMPARED, where=f"topic {topic}", what=what)]
