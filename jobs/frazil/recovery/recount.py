"""Correct the number of offsets without a record where the ledger counts more of them than there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from frazil.audit.finding import Finding, Flaw
from frazil.audit.verify import verify
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.job.context import JobContext
from frazil.lake.commit.commit_rows_and_offsets import commit
from frazil.lake.commit.request import CommitRequest
from frazil.lake.ledger import entry as ledger
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.next_offsets import Offsets, canonical
from frazil.lake.ledger.totals import Counts
from frazil.lake.read.stored_tables import Lake
from frazil.lake.stage import empty_commit


@dataclass(frozen=True, slots=True)
class Recount:
    """What was corrected: by partition, how many offsets fewer are without a record. The ledger's offsets stay as they are."""

    before: Offsets
    after: Offsets
    fewer: dict[int, int]
    lost: Mapping[int, int] = field(default_factory=dict)


def recount(pipeline: Pipeline, lake: Lake, reason: str, job: JobContext) -> Recount:
    """Count all rows and dead letters, and take from the ledger's gaps what has a row after all; offsets stay as they are.

    The decision, its reason and the numbers are a commit without rows. Gaps only become fewer: records that are missing are
    never explained away. Raises `InvalidInput` if the gaps are right, or if anything else is wrong with the pipeline's tables;
    `Fenced` if a driver commits meanwhile.
    """
    where = f"table {pipeline.table.identifier}"
    last = entry(job.iceberg.load(pipeline.table.identifier), pipeline.name)  # before the count, which is of this entry
    found = verify(pipeline, lake, keys=True)
    others = [str(f) for f in found.findings if f.flaw not in (Flaw.EXCESS, Flaw.MISCOUNTED)]
    if others:
        raise InvalidInput(
            f"more is wrong than the number of gaps: {'; '.join(others[:3])}", where=where, do="Solve that first"
        )
    fewer = _excess(found.findings)
    if not fewer or last is None or last.end is None:
        what = f"there is nothing to accept: {ledger.RECOUNT} has not happened: no record was counted as a gap and has a row"
        do = f"`frazil verify {pipeline.name} --deep` says what is wrong, if anything is"
        raise InvalidInput(what, where=where, do=do)
    at = datetime.fromtimestamp(job.clock(), UTC).isoformat()
    corrected = {str(p): -n for p, n in fewer.items()}
    # A row that another engine deleted may have been put back: then it is no gap that is too many.
    at_now = last.totals.at if last.totals is not None else {}
    back = {p: m for p, n in fewer.items() if (m := min(n, at_now[p].deleted if p in at_now else 0))}
    batch = CommitRequest(
        pipeline=pipeline.name,
        run=job.run,
        version=job.version,
        start=last.end,
        end=last.end,
        committed=last.end,
        topic_id=last.end.topic_id,
        schema_ids=last.schema_ids,
        valid_through=last.valid_through,
        counts=Counts(
            gaps={p: back.get(p, 0) - n for p, n in fewer.items()}, deleted_at={p: -n for p, n in back.items()}
        ),
        accepted=canonical({"event": ledger.RECOUNT, "reason": reason, "at": at, "gaps": corrected}),
        on=last.snapshot_id,
    )
    staged = empty_commit(job.iceberg, pipeline.table.identifier, at=job.clock())
    commit(job, staged, batch)
    return Recount(last.end, last.end, fewer)


def _excess(findings: tuple[Finding, ...]) -> dict[int, int]:
    excess = (f for f in findings if f.flaw is Flaw.EXCESS and f.partition is not None and f.count)
    return {f.partition: f.count for f in excess if f.partition is not None and f.count is not None}
