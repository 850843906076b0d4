"""The offsets of a table whose ledger is lost, taken from its rows."""

from __future__ import annotations

from frazil.declaration import Pipeline, Upsert
from frazil.errors import InvalidInput
from frazil.job.context import JobContext
from frazil.lake import row_offsets
from frazil.lake.commit.side_table import Look
from frazil.lake.offsets import Offsets
from frazil.recovery.decisions import Acceptance, Accepted
from frazil.recovery.rows import LETTERS


def ledger_lost(pipeline: Pipeline, job: JobContext, found: Look, prefix: str) -> Acceptance:
    """Return the offsets after the last row or dead letter of each partition; without any, the topic's first offset.

    `prefix` is what the columns of a row's place begin with. Raises `InvalidInput` if the table has a ledger.
    """
    table, topic = pipeline.table, pipeline.topic
    if found.last is not None:
        raise InvalidInput(
            "the ledger is not lost: a snapshot says which offsets the table holds",
            where=f"table {table.identifier}",
            do="Nothing is to be decided",
        )
    if isinstance(pipeline.write, Upsert):
        raise InvalidInput(
            "the rows of a table of current state do not say which records were landed",
            where=f"table {table.identifier}",
            do="Name another table: it is made from the declared start",
        )
    spans = job.kafka.offsets(topic.name, pipeline.isolation)
    first = {p: span.earliest for p, span in spans.items()}
    after = dict(first)
    seen: set[int] = set()
    for identifier, names in ((table.identifier, prefix), (table.dead_letters, LETTERS)):
        if not job.iceberg.exists(identifier):
            continue
        full = f"{job.iceberg.name}.{identifier}"
        for p, rows in row_offsets.found(job.spark, full, topic.name, names).items():
            first[p] = min(first[p], rows.first) if p in seen else rows.first
            after[p] = max(after[p], rows.after) if p in seen else rows.after
            seen.add(p)
    topic_id = job.kafka.topic(topic.name).topic_id
    before, now = (Offsets(topic.name, topic_id, dict(sorted(at.items()))) for at in (first, after))
    return Acceptance(Accepted.LEDGER_LOST, before, now)
