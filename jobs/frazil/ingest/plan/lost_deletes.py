"""Notice that compaction may have removed records without a value before they were read: rows of deleted keys would stay."""

from __future__ import annotations

from dataclasses import replace

from py4j.protocol import Py4JJavaError

from frazil.clients.kafka import TopicState
from frazil.declaration import Pipeline
from frazil.errors import DeletesLost
from frazil.ingest.plan.plan import Plan
from frazil.job.context import JobContext
from frazil.lake.ledger import last_records
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.last_records import CaughtUp, LastRecords
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts


def check_deletes(pipeline: Pipeline, planned: Plan, counts: Counts, topic: TopicState, job: JobContext) -> None:
    """Raise `DeletesLost` if compaction may have removed the delete of a key that the table has.

    It may if the log has gaps, and all of it was landed last longer ago than the topic keeps records without a value, by its
    setting of then or of now.
    """
    last = planned.committed.last
    if not _can_lose(pipeline, topic) or last is None or last.caught_up is None or planned.may_lack_deletes:
        return
    retention_ms = min(last.caught_up.retention_ms, topic.delete_retention_ms)
    if counts.gaps and job.clock() * 1000 - last.caught_up.at / 1000 > retention_ms:
        raise DeletesLost.of(
            pipeline.name,
            pipeline.topic.name,
            gaps=sum(counts.gaps.values()),
            caught_up=last.caught_up.at,
            retention_ms=retention_ms,
        )


def caught_up(pipeline: Pipeline, planned: Plan, topic: TopicState, last: LastRecords) -> LastRecords:
    """Return the last records with when all of the topic had landed: after a batch up to its end that is when the end was seen.

    The first batch of an empty table counts from when it was planned: of what was removed before that, there is no row.
    """
    if not pipeline.write.has_key or not (last.caught_up is None or planned.is_to_end):
        return last
    return replace(last, caught_up=CaughtUp(planned.as_of, topic.delete_retention_ms))


def idle(pipeline: Pipeline, planned: Plan, topic: TopicState) -> Offsets:
    """Return the offsets of a plan without records, with the time at which there were none: nothing is lost after them."""
    last = planned.committed.last
    if not _can_lose(pipeline, topic) or not planned.is_to_end or last is None or last.caught_up is None:
        return planned.committed
    known = CaughtUp(planned.as_of, topic.delete_retention_ms)
    return replace(planned.committed, last=replace(last, caught_up=known))


def stored(pipeline: Pipeline, job: JobContext, seen: Offsets, stored_us: int) -> int:
    """Have the table keep the time of `idle`, as there is no commit that would; return the time that it keeps.

    `stored_us` is that of before: half of the time that the topic keeps records without a value must have passed since then.
    """
    known = seen.last.caught_up if seen.last is not None else None
    if known is None or (known.at - stored_us) / 1000 <= known.retention_ms / 2:
        return stored_us
    table = job.iceberg.load(pipeline.table.identifier)
    newest = entry(table, pipeline.name)
    if newest is None or newest.end is None or not newest.end.same_as(seen):
        return stored_us  # another driver has landed more
    value = known.value(seen.topic_id, str(newest.end))
    try:
        table.updateProperties().set(last_records.caught_up_name(pipeline.name), value).commit()
    except Py4JJavaError:
        return stored_us  # the next look tries again
    return known.at


def _can_lose(pipeline: Pipeline, topic: TopicState) -> bool:
    return pipeline.write.has_key and topic.compacted
