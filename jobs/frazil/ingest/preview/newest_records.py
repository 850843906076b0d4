"""The newest records of a topic, or the first ones: a few of each partition, read by the driver."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.clients.kafka import Kafka, Span
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline
from frazil.errors import InvalidInput

WIDENINGS = 4
"""Times that the window of offsets is widened, eightfold each: gaps, of compaction and transactions, hold no records."""
MOST_OFFSETS = 20_000
"""Offsets that one look reads, over all partitions."""


def chosen_records(
    pipeline: Pipeline, kafka: Kafka, spans: Mapping[int, Span], *, count: int, from_start: bool
) -> list[Record]:
    """Return at most `count` records, the oldest first: the newest of the topic by their timestamps, or the first ones.

    Each partition that has records gives about the same number. Of more partitions than `count` the largest ones are read. Raises
    `KafkaUnavailable`, and `InvalidInput` if so many records hold more bytes than the driver reads at a time.
    """
    held = {p: span for p, span in spans.items() if span.stable > span.earliest}
    largest = sorted(held, key=lambda p: held[p].earliest - held[p].stable)[:count]
    if not largest:
        return []
    share, found = -(-count // len(largest)), list[Record]()
    for _ in range(WIDENINGS):
        ends = {p: _window(held[p], share, from_start=from_start) for p in largest}
        try:
            found = kafka.stretches(pipeline.topic.name, ends, pipeline.isolation, lambda record: True)
        except MemoryError as error:
            if found:  # of the window before: it had gaps
                break
            raise InvalidInput(
                str(error), where=f"topic {pipeline.topic.name}", do="Ask for fewer: --records"
            ) from None
        is_all = all(end - start == held[p].stable - held[p].earliest for p, (start, end) in ends.items())
        if len(found) >= count or is_all or 8 * share * len(largest) > MOST_OFFSETS:
            break
        share *= 8
    ordered = sorted(found, key=lambda record: (record.timestamp_ms, record.partition, record.offset))
    return ordered[:count] if from_start else ordered[-count:]


def _window(span: Span, share: int, *, from_start: bool) -> tuple[int, int]:
    if from_start:
        return span.earliest, min(span.earliest + share, span.stable)
    return max(span.stable - share, span.earliest), span.stable
