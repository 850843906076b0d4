"""Prove that no record of a topic is in two of its tables, and count those that are in none."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from frazil.audit.accounts.pending_dead_letters import load_tables
from frazil.audit.files.count import Counting
from frazil.audit.files.file_scan import Source
from frazil.audit.files.window import Found, Role, Tally
from frazil.audit.finding import Finding, Flaw, Outcome, Range, worst
from frazil.audit.verification import Verification
from frazil.audit.verify import prepared
from frazil.declaration import Pipeline
from frazil.declaration.route import Rest
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Total, Totals
from frazil.lake.read.stored_tables import Lake


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicVerification:
    """What the tables of one topic have of the offsets that all its pipelines read.

    `landed` are rows of append tables and changelogs, `dead_lettered` are dead letters, of which `repeated` are those of a record
    that is one in several tables. `nowhere` are offsets with neither: gaps, records that each table filtered or skipped, and those
    of the tables that are not compared, `states` of them.
    """

    topic: str
    pipelines: tuple[str, ...]
    outcome: Outcome
    offsets: int = 0
    landed: int = 0
    dead_lettered: int = 0
    repeated: int = 0
    nowhere: int = 0
    states: int = 0
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """Return the exit code: 0 proven, 1 not proven, 5 could not be checked."""
        return self.outcome.exit_code

    def document(self) -> dict[str, Any]:
        """Return the verification as JSON."""
        return {**asdict(self), "exit_code": self.exit_code}


def verify_topic(pipelines: Sequence[Pipeline], lake: Lake) -> TopicVerification:
    """Compare the tables of one topic's pipelines, by the coordinates of their rows. Raises `CatalogUnavailable`.

    Upsert tables have the coordinates of each key's last record only, and a delete is in each of several changelogs. So for these
    their own proof counts, and here records that are in no other table may be theirs.
    """
    began = time.monotonic()
    topic, names = pipelines[0].topic.name, tuple(one.name for one in pipelines)
    histories = [one for one in pipelines if one.write.keeps_changes]
    states = [one for one in pipelines if one.write.replaces_rows or (one.write.keeps_changes and len(histories) > 1)]
    sources, reads, findings = list[Source](), list[Mapping[int, Range]](), list[Finding]()
    accounts: list[tuple[bool, Mapping[int, Total]]] = []
    for pipeline in pipelines:
        audit = prepared(pipeline, load_tables(pipeline, lake, time.sleep), deep=False, keys=False, proofs=None)
        if isinstance(audit, Verification):
            findings += audit.findings
            continue
        totals, end, _ = audit.parts[0]
        reads.append(_ranges(totals, end))
        accounts.append((pipeline in states, totals.at))
        sources += [one for one in audit.sources if not (pipeline in states and one.role is Role.TABLE)]
    if findings:
        return TopicVerification(
            topic=topic, pipelines=names, outcome=worst(tuple(findings)), findings=tuple(findings), states=len(states)
        )
    common = {
        p: Range(max(one[p].start for one in reads), min(one[p].end for one in reads))
        for p in reads[0]
        if all(p in one for one in reads)
    }
    common = {p: one for p, one in common.items() if one.start < one.end}
    counted = Counting(sources, {p: [one] for p, one in common.items()}, topic=topic, deep=False, remembered=None).run()
    findings = [*counted.findings]
    sums: dict[int, Tally] = {}
    for part, tally in counted.tallies:
        sums[part.partition] = sums.get(part.partition, Tally()) + tally
    are_equal = all(one == reads[0] for one in reads)
    rests = [one.shape.route.rest for one in pipelines if one.shape.route is not None]
    has_rest = len(rests) == len(pipelines) and any(one is not Rest.FILTER for one in rests)
    for p, tally in sums.items():
        findings += _findings(topic, p, tally, _limit(accounts, p, has_rest=has_rest) if are_equal else None)
    total = sum(sums.values(), Tally())
    return TopicVerification(
        topic=topic,
        pipelines=names,
        outcome=worst(tuple(findings)),
        offsets=sum(map(len, common.values())),
        landed=total.landed,
        dead_lettered=total.dead_lettered + total.pending,
        repeated=total.doubled_dead.number,
        nowhere=total.absent.number,
        states=len(states),
        findings=tuple(findings),
        seconds=round(time.monotonic() - began, 3),
    )


def _ranges(totals: Totals, end: Offsets) -> dict[int, Range]:
    """Return the offsets that a pipeline has read, by partition: those since the last decision that ended an account."""
    return {p: Range(one.start, end.at.get(p, one.start)) for p, one in totals.at.items()}


def _limit(accounts: Sequence[tuple[bool, Mapping[int, Total]]], partition: int, *, has_rest: bool) -> int | None:
    """Return how many offsets may be nowhere, as the accounts of the tables say; None if no table is compared.

    If the route leaves no record to no table (`has_rest`), they are gaps, what a table has left out of its own records, and the
    records of states. Else they are no more than any compared table lacks.
    """
    of = [(is_state, at.get(partition, Total(0))) for is_state, at in accounts]
    lacks = [one.filtered + one.skipped + one.gaps + one.deleted for is_state, one in of if not is_state]
    if not lacks:
        return None
    if not has_rest or any(is_state for is_state, _ in of):
        return min(lacks)
    gaps = max(one.gaps for _, one in of)
    return gaps + sum(one.filtered - one.routed + one.skipped + one.deleted for _, one in of)


def _findings(topic: str, partition: int, tally: Tally, limit: int | None) -> list[Finding]:
    where = f"topic {topic}, partition {partition}"

    def of(flaw: Flaw, what: str, found: Found) -> Finding:
        said = f"{found.number} {what}: {found.describe()}"
        return Finding(flaw=flaw, where=where, what=said, partition=partition, ranges=found.ranges, count=found.number)

    made = []
    if tally.doubled.number:
        made.append(of(Flaw.DOUBLED, "rows are of records that another table has, too", tally.doubled))
    if tally.both.number:
        made.append(of(Flaw.IN_BOTH, "records are rows of a table and dead letters of another", tally.both))
    if limit is not None and tally.absent.number > limit:
        found = Found(tally.absent.number - limit, tally.absent.ranges)
        made.append(of(Flaw.MISSING, "records are in no table, though one that lacks them counts fewer", found))
    return made
