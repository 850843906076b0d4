"""The account of a batch: each of its offsets has a row, a dead letter, a counted skip or a gap, or nothing is committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from frazil.clients.kafka import Kafka
from frazil.declaration import Pipeline
from frazil.declaration.write_modes import identity
from frazil.errors import CountsDisagree
from frazil.ingest.batch.record_counts import Rejected, last_records
from frazil.ingest.batch.staged_records import StagedRecords
from frazil.ingest.plan.lost_deletes import caught_up, check_deletes
from frazil.ingest.plan.plan import Plan
from frazil.ingest.plan.ranges import OffsetRange
from frazil.job.context import JobContext
from frazil.lake.commit.fence import StageAgain
from frazil.lake.commit.request import CommitRequest
from frazil.lake.ledger.last_records import LastRecords
from frazil.lake.ledger.totals import Counts


def commit_request(pipeline: Pipeline, job: JobContext, staged: StagedRecords, rejected: Rejected) -> CommitRequest:
    """Return what the commit of a batch says. Raises `CountsDisagree`, `DeletesLost`, `Fenced`, `StageAgain` for a new leader."""
    planned, topic = staged.plan, job.kafka.topic(pipeline.topic.name)
    elsewhere = Counter(staged.elsewhere) + Counter(rejected.elsewhere)
    filtered = {"route": elsewhere.total(), "where": staged.shaped.records}
    counts = Counts(
        read=staged.read.records,
        **staged.rows.terms,
        rejected=rejected.kept,
        skipped=rejected.skipped,
        skipped_at=rejected.skipped_at,
        filtered={reason: number for reason, number in filtered.items() if number},
        filtered_at=dict(sorted((elsewhere + Counter(staged.shaped.by_partition)).items())),
        routed_at=dict(sorted(elsewhere.items())),
        unmatched=staged.shaped.unmatched,
        late_events=staged.shaped.late_events,
        gaps=gaps(staged.read.by_partition, planned.ranges),
    )
    check(pipeline, planned, counts, compacted=topic.compacted)
    check_deletes(pipeline, planned, counts, topic, job)
    epochs = _leader_epochs(pipeline, job.kafka, planned)
    newest = last_records(staged.read.tail, epochs, now_ms=staged.at.timestamp() * 1000)
    last = (planned.committed.last or LastRecords(planned.committed.topic_id)).after(newest)
    last = caught_up(pipeline, planned, topic, last)
    return CommitRequest(
        pipeline=pipeline.name,
        run=job.run,
        version=job.version,
        start=planned.start,
        end=replace(planned.end, last=last),
        committed=planned.committed,
        topic_id=topic.topic_id,
        counts=counts,
        schema_ids=staged.decoding.schema_ids,
        staged_us=round(staged.at.timestamp() * 1_000_000),
        valid_through=last.valid_through(planned.filled),
        mode=identity(pipeline, staged.key),
    )


def gaps(found: Mapping[int, int], ranges: Sequence[OffsetRange]) -> dict[int, int]:
    """Return the number of offsets without a record, by partition, without zeros; negative if there are too many records."""
    missing = {r.partition: len(r) - found.get(r.partition, 0) for r in ranges}
    return {partition: n for partition, n in missing.items() if n}


def check(pipeline: Pipeline, planned: Plan, counts: Counts, *, compacted: bool) -> None:
    """Raise `CountsDisagree` if a record, or an offset that must have one, is missing or counted twice.

    Offsets may be without a record if the topic is `compacted`, or declared transactional.
    """
    offsets, number = f"{planned.start} to {planned.end}", planned.rows
    if counts.gaps and not compacted and not pipeline.topic.transactional:
        raise CountsDisagree.of_gaps(pipeline.name, offsets=offsets, number=number, read=counts.read, gaps=counts.gaps)
    is_complete = counts.read + sum(counts.gaps.values()) == number and min(counts.gaps.values(), default=0) >= 0
    if not counts.adds_up or not is_complete:
        upserts = ("deletes", "repeated_deletes", "superseded", "late") if counts.landed != counts.written else ()
        raise CountsDisagree.of_batch(
            pipeline.name,
            offsets=offsets,
            number=number,
            counts={
                "read": counts.read,
                "gaps": counts.gaps,
                "written": counts.written,
                **{name: getattr(counts, name) for name in upserts},
                "rejected": dict(counts.rejected),
                "skipped": dict(counts.skipped),
                "filtered": dict(counts.filtered),
            },
        )


def _leader_epochs(pipeline: Pipeline, kafka: Kafka, planned: Plan) -> dict[int, int | None]:
    """Return the leader epochs of the partitions that were read.

    Raises `StageAgain` if one has changed since the batch was planned: the log that was read may be another one than the log
    that was planned on, and only the next plan compares them.
    """
    before = {r.partition: planned.spans[r.partition].leader_epoch for r in planned.ranges}
    now = kafka.leader_epochs(pipeline.topic.name, before.keys())
    if now != before:
        raise StageAgain("a partition got a new leader while the batch was read", where=f"pipeline {pipeline.name}")
    return now
