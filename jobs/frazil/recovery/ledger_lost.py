"""The offsets of a table whose ledger is lost, taken from its rows."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.clients.kafka import Span
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline
from frazil.declaration.options import Isolation
from frazil.errors import InvalidInput
from frazil.ingest.plan import fingerprint
from frazil.job.context import JobContext
from frazil.lake.commit.dead_letters.side_table import Look
from frazil.lake.ledger import last_records
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.row_offsets import Found, Last, found
from frazil.recovery.decisions import Acceptance, Accepted, places_of_both


def ledger_lost(pipeline: Pipeline, job: JobContext, look: Look) -> Acceptance:
    """Return the offsets after the last row or dead letter of each partition; without any, the topic's first offset.

    Offsets between the first and the last that no row or dead letter has are given up. Raises `InvalidInput` if the table has a
    ledger, or if the topic's log is not the one that the rows are of.
    """
    table, topic = pipeline.table, pipeline.topic.name
    if look.last is not None:
        what = "the ledger is not lost: a snapshot says which offsets the table holds"
        raise InvalidInput(what, where=f"table {table.identifier}", do="Nothing is to be decided")
    if pipeline.write.replaces_rows:
        raise InvalidInput(
            "the rows of an upsert table do not say which records were landed",
            where=f"table {table.identifier}",
            do="Name another table: it is made from the declared start",
        )
    topic_id = job.kafka.topic(topic).topic_id
    spans = job.kafka.offsets(topic, Isolation.READ_UNCOMMITTED)  # the rows may be of a transaction that is open
    held = found(places_of_both(pipeline, job, topic))
    known = look.main.properties().get(last_records.property_name(pipeline.name))
    if known is not None and held and last_records.topic_of(known) != topic_id:
        raise _other_log(pipeline, "the topic was re-created since the table's rows were landed")
    _check_is_their_log(pipeline, job, held, spans)
    earliest = {p: span.earliest for p, span in spans.items()}
    first = earliest | {p: rows.first for p, rows in held.items()}
    after = earliest | {p: rows.after for p, rows in held.items()}
    lost = {p: n for p, rows in sorted(held.items()) if (n := rows.after - rows.first - rows.count)}
    before, now = (Offsets(topic, topic_id, dict(sorted(at.items()))) for at in (first, after))
    return Acceptance(Accepted.LEDGER_LOST, before, now, lost)


def _check_is_their_log(
    pipeline: Pipeline, job: JobContext, held: Mapping[int, Found], spans: Mapping[int, Span]
) -> None:
    """Raise `InvalidInput` if the topic has another record than the last row, or dead letter, of a partition."""
    topic = pipeline.topic.name
    for p, rows in held.items():
        if p not in spans or rows.after > spans[p].stable:
            raise _other_log(
                pipeline, f"partition {p} of the topic ends before offset {rows.after}, up to which there are rows"
            )
    there = {p: rows.after - 1 for p, rows in held.items() if rows.after > spans[p].earliest}
    records = job.kafka.records(topic, there, Isolation.READ_UNCOMMITTED) if there else {}
    now = job.kafka.offsets(topic, Isolation.READ_UNCOMMITTED)  # retention may have taken one since
    compacted = job.kafka.topic(topic).compacted
    for p, record in records.items():
        if record is None and (compacted or there[p] < now[p].earliest):
            continue
        if record is None or not any(_is_of(row, record) for row in held[p].last):
            raise _other_log(
                pipeline, f"the record at offset {there[p]} of partition {p} is not the one of the table's row"
            )


def _is_of(row: Last, record: Record) -> bool:
    ms = record.timestamp_ms if record.timestamp_ms in fingerprint.TIMESTAMPS else None
    return row.ms == ms and (not row.has_key or row.key == record.key)


def _other_log(pipeline: Pipeline, what: str) -> InvalidInput:
    return InvalidInput(
        f"{what}: the rows do not say which of the topic's records were landed",
        where=f"topic {pipeline.topic.name}, table {pipeline.table.identifier}",
        do="Name another table: it is made from the declared start",
    )
