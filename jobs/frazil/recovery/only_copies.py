"""Rows that a rollback removed, and dead letters that a replay would remove, whose records Kafka cannot give again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.declaration.options import Isolation
from frazil.errors import InvalidInput
from frazil.ingest.plan.log_check import compared
from frazil.ingest.setup.letter_check import first_replaced
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters import of_batches as letters
from frazil.lake.commit.dead_letters.side_table import Look
from frazil.lake.ledger.next_offsets import Offsets


def check_is_in_log(
    pipeline: Pipeline,
    job: JobContext,
    committed: Offsets,
    held: Offsets,
    offsets_lost: Sequence[tuple[int, int, int]],
    *,
    do: str,
) -> None:
    """Raise `InvalidInput` if Kafka lacks records between the offsets `held` and `committed`, which a replay would land again.

    Retention took them, or the log was truncated. What compaction took is not noticed. `offsets_lost` are partition, first and next
    offset of what was given up before, in order: it never landed. `do` is what the operator can do instead.
    """
    topic = pipeline.topic.name
    undone = {p: held.at.get(p, 0) for p, end in committed.at.items() if end > held.at.get(p, 0)}
    for p, first, after in offsets_lost:
        if p in undone and first <= undone[p]:
            undone[p] = max(undone[p], after)
    spans = job.kafka.offsets(topic, Isolation.READ_UNCOMMITTED)  # an open transaction is no end of the log
    what = ""
    for p, start in undone.items():
        if p not in spans or spans[p].stable < committed.at[p]:
            what = f"the log of partition {p} was truncated: it ends before offset {committed.at[p]}"
        elif spans[p].earliest > start:
            what = f"retention took the records of partition {p} from offset {start} up to {spans[p].earliest}"
    if not what and (other := compared(pipeline, job.kafka, committed, spans, of=undone).other):
        what = f"the log of partition {other[0]} was truncated, and has grown again"
    if what:
        raise InvalidInput(f"{what}, so the undone records cannot be landed again", where=f"topic {topic}", do=do)


def check_lands_again(
    pipeline: Pipeline, job: JobContext, found: Look, held: Offsets, batches: Sequence[Mapping[str, Any]], *, do: str
) -> None:
    """Raise `InvalidInput` if a replay from the offsets `held` on cannot land the records of these batches again.

    That is so if the topic has another id, or if records of dead letters are gone: retention took them, or the log was truncated.
    `do` is what the operator can do instead.
    """
    topic, table = pipeline.topic.name, pipeline.table.dead_letters
    if job.kafka.topic(topic).topic_id != held.topic_id:
        what = "the topic was re-created or replaced by another, so the undone records cannot be landed again"
        raise InvalidInput(what, where=f"topic {topic}", do=do)
    if found.side is None or not batches:
        return
    what = ""
    first = {p: span.earliest for p, span in job.kafka.offsets(topic, pipeline.isolation).items()}
    is_gone = F.lit(False)
    for partition, offset in first.items():
        is_gone |= (F.col("partition") == partition) & (F.col("offset") < offset)
    removed = job.spark.table(f"{job.iceberg.name}.{table}").where(letters.condition(batches))
    if number := removed.where(is_gone).count():
        what = f"Kafka does not have the records of {number} dead letters any more, which a replay would remove"
    elif (replaced := first_replaced(pipeline, job.kafka, removed)) is not None:
        what = (
            "the topic's log was truncated, so Kafka does not have the records of dead letters that a replay would remove, "
            f"as that at offset {replaced[1]} of partition {replaced[0]}"
        )
    if what:
        raise InvalidInput(what, where=f"table {table}", do=do)
