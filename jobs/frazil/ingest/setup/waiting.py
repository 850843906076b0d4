"""The facts that a pipeline reports while no schema of its topic is known, so that there is no table to land in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.clients.kafka import Kafka, Span
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline
from frazil.declaration.options import SubjectStrategy
from frazil.declaration.topic import Topic
from frazil.errors import ServiceUnavailable
from frazil.ingest.setup.table_setup import read_ledger, start_of
from frazil.job.context import JobContext
from frazil.schemas.wire_format import GUID_MAGIC, VALUE_HEADER

_FRAMED = (0, GUID_MAGIC)
_NO_TIMESTAMP = -1


def waiting(
    pipeline: Pipeline,
    kafka: Kafka,
    start: Mapping[int, int],
    spans: Mapping[int, Span],
    *,
    now: float,
    lacks_key: bool,
    problem: str = "",
) -> dict[str, Any]:
    """Return the facts of an `idle` event: what is missing, and how much waits for it.

    `lag` counts the offsets from `start` on, `freshness_seconds` is the age of the oldest of the first records (0 if none waits,
    absent if Kafka does not give them). `problem` is why a schema that is registered cannot be used. `hint` says that the first
    record has no schema id, so that another format may be meant.
    """
    first = {p: max(start.get(p, 0), span.earliest) for p, span in spans.items()}
    first = {p: offset for p, offset in first.items() if offset < spans[p].stable}
    lag = sum(spans[p].stable - offset for p, offset in first.items())
    subject = _subject(pipeline.topic, is_key=lacks_key)
    awaited = f"a schema in subject {subject}"
    if pipeline.topic.key.has_schemas_inside if lacks_key else pipeline.topic.value.has_schemas_inside:
        subject = f"the {'keys' if lacks_key else 'values'} of topic {pipeline.topic.name}"
        awaited = f"a record that has its schema in its {'key' if lacks_key else 'value'}"
    message = f"waiting for {awaited}" if not problem else f"no schema of {subject} can be used: {problem}"
    facts: dict[str, Any] = {"lag": lag, "message": message}
    records = _records(pipeline, kafka, first)
    ages = [now - r.timestamp_ms / 1000 for r in records if r.timestamp_type != _NO_TIMESTAMP]
    if not lag or ages:
        facts["freshness_seconds"] = round(max([0.0, *ages]), 3)
    hint_of = _hint_of_embedded if pipeline.topic.value.has_schemas_inside else _hint
    hint = next(filter(None, map(hint_of, records)), "") if not lacks_key else ""
    return {**facts, "hint": hint} if hint else facts


def position(pipeline: Pipeline, job: JobContext, spans: Mapping[int, Span]) -> Mapping[int, int]:
    """Return where the pipeline continues: the offsets of its table, if it has one, or its declared start."""
    has_table = job.iceberg.exists(pipeline.table.identifier)
    last = read_ledger(job.iceberg, pipeline) if has_table else None
    return last.end.at if last is not None and last.end is not None else start_of(pipeline, job, spans)


def _records(pipeline: Pipeline, kafka: Kafka, first: Mapping[int, int]) -> list[Record]:
    try:
        found = kafka.records(pipeline.topic.name, first, pipeline.isolation) if first else {}
    except ServiceUnavailable:  # they are for people only: what must be read is read by Spark, and fails there
        return []
    return [record for record in found.values() if record is not None]


def _hint(record: Record) -> str:
    value = record.value
    if not value or value[0] in _FRAMED or any(name == VALUE_HEADER for name, _ in record.headers):
        return ""
    place = f"The record at partition {record.partition}, offset {record.offset}"
    if value.lstrip()[:1] in (b"{", b"["):
        return f"{place} looks like JSON without a schema id: declare the format json"
    return f"{place} does not begin with 0x00, so it has no schema id: declare another format"


def _hint_of_embedded(record: Record) -> str:
    if not record.value or b'"schema"' in record.value:
        return ""
    place = f"The record at partition {record.partition}, offset {record.offset}"
    return f"{place} has no schema: set schemas.enable=true in the converter, or declare the format json with columns"


def _subject(topic: Topic, *, is_key: bool) -> str:
    if is_key or topic.value.subject_strategy is SubjectStrategy.TOPIC:
        return f"{topic.name}-{'key' if is_key else 'value'}"
    prefix = f"{topic.name}-" if topic.value.subject_strategy is SubjectStrategy.TOPIC_RECORD else ""
    return f"{prefix}{topic.value.record_name or '<record name>'}"
