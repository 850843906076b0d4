"""Check that no other driver has landed more, before a driver asks an operator for a decision."""

from __future__ import annotations

from frazil.declaration import Pipeline
from frazil.errors import Fenced
from frazil.job.context import JobContext
from frazil.lake.commit.fence import StageAgain
from frazil.lake.ledger.entries import entry
from frazil.lake.ledger.next_offsets import Offsets


def check_not_behind(pipeline: Pipeline, committed: Offsets, job: JobContext) -> None:
    """Raise `Fenced` if the table holds records after `committed`, or of another topic: another driver has landed them.

    Raises `StageAgain` if an operator has decided since.
    """
    newest = entry(job.iceberg.load(pipeline.table.identifier), pipeline.name)
    if newest is None or newest.end is None or newest.end.same_as(committed):
        return
    where = f"pipeline {pipeline.name}, table {pipeline.table.identifier}"
    if newest.event is not None:
        raise StageAgain(f"an operator decided about {newest.event}", where=where)
    is_same_topic = newest.end.topic_id == committed.topic_id
    if is_same_topic and all(offset <= committed.at.get(partition, 0) for partition, offset in newest.end.at.items()):
        return
    raise Fenced(
        f"run {newest.run or 'unknown'} committed first; the table holds {newest.end}, this run expected {committed}",
        where=where,
        do="Nothing of this run's batch was added; the other driver goes on",
        winner=newest.run or "",
    )
