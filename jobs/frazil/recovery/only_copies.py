"""Dead letters that a replay would remove, and whose records Kafka cannot give again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.errors import InvalidInput
from frazil.ingest.letter_check import first_replaced
from frazil.job.context import JobContext
from frazil.lake import letters
from frazil.lake.commit.side_table import Look
from frazil.lake.offsets import Offsets


def check_lands_again(
    pipeline: Pipeline, job: JobContext, found: Look, held: Offsets, batches: Sequence[Mapping[str, Any]], *, do: str
) -> None:
    """Raise `InvalidInput` if a replay from the offsets `held` on cannot land the records of these batches again.

    That is so if the topic has another id, or if records of dead letters are gone: retention took them, or the log was truncated.
    `do` is what the operator can do instead.
    """
    topic, table = pipeline.topic.name, pipeline.table.dead_letters
    if job.kafka.topic(topic).topic_id != held.topic_id:
        raise InvalidInput(
            "the topic was re-created or replaced by another, so the undone records cannot be landed again",
            where=f"topic {topic}",
            do=do,
        )
    if found.side is None or not batches:
        return
    first = {p: span.earliest for p, span in job.kafka.offsets(topic, pipeline.isolation).items()}
    is_gone = F.lit(False)
    for partition, offset in first.items():
        is_gone |= (F.col("partition") == partition) & (F.col("offset") < offset)
    removed = job.spark.table(f"{job.iceberg.name}.{table}").where(letters.condition(batches))
    if (number := removed.where(is_gone).count()) > 0:
        raise InvalidInput(
            f"Kafka does not have the records of {number} dead letters any more, which a replay would remove",
            where=f"table {table}",
            do=do,
        )
    replaced = first_replaced(pipeline, job.kafka, removed)
    if replaced is not None:
        partition, offset = replaced
        raise InvalidInput(
            "the topic's log was truncated, so Kafka does not have the records of dead letters that a replay would remove, "
            f"as that at offset {offset} of partition {partition}",
            where=f"table {table}",
            do=do,
        )
