"""The topics of a cluster: their partitions, how many records they hold, and their newest few records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from frazil.clients import kafka_records
from frazil.clients.kafka import Kafka, OffsetSpec, list_offsets
from frazil.clients.kafka_connection import Request
from frazil.clients.kafka_records import Record
from frazil.declaration.options import Isolation

NEWEST = 3
"""The most offsets that are read of a partition, and the most partitions that are read of a topic."""
_FEW_BYTES = {
    "isolation.level": Isolation.READ_COMMITTED.value,
    "fetch.max.bytes": str(1 << 20),
    "max.partition.fetch.bytes": str(64 << 10),
    "queued.max.messages.kbytes": str(16 << 10),
}
_SAMPLE_BYTES = {**_FEW_BYTES, "fetch.max.bytes": str(8 << 20), "max.partition.fetch.bytes": str(1 << 20)}


@dataclass(frozen=True, slots=True)
class TopicSpans:
    """A topic's partitions: for each the first offset and the last stable one; None if the broker does not say."""

    name: str
    spans: Mapping[int, tuple[int, int] | None]

    @property
    def held(self) -> dict[int, tuple[int, int]]:
        """The partitions that have records."""
        return {number: span for number, span in self.spans.items() if span is not None and span[0] < span[1]}

    @property
    def records(self) -> int | None:
        """The offsets between first and end: the records, unless compaction or transactions left gaps. None if unknown."""
        known = [span for span in self.spans.values() if span is not None]
        return sum(end - start for start, end in known) if len(known) == len(self.spans) else None


class KafkaListing(Kafka):
    """A cluster with the topics that the login of an environment may see. Raises what `Kafka` raises."""

    def topics(self, is_wanted: Callable[[str], bool]) -> tuple[TopicSpans, ...]:
        """Return the wanted topics by name, in three round trips: all topics, and the first and last offsets."""

        def listed(request: Request) -> tuple[TopicSpans, ...]:
            known = request.admin.list_topics(timeout=request.seconds).topics
            partitions = {name: sorted(known[name].partitions) for name in sorted(known) if is_wanted(name)}
            places = [TopicPartition(name, number) for name, numbers in partitions.items() for number in numbers]
            starts = _offsets(request, places, OffsetSpec.earliest())
            ends = _offsets(request, places, OffsetSpec.latest())

            def span(place: tuple[str, int]) -> tuple[int, int] | None:
                start, end = starts.get(place), ends.get(place)
                return None if start is None or end is None else (start, max(start, end))

            return tuple(
                TopicSpans(name, {number: span((name, number)) for number in numbers})
                for name, numbers in partitions.items()
            )

        return self._connection.ask("all topics", listed)

    def newest(self, topics: Iterable[TopicSpans], *, seconds: float) -> dict[str, list[Record]]:
        """Return the newest records of some partitions of each topic, as far as they can be read within `seconds`."""
        ends: dict[tuple[str, int], tuple[int, int]] = {}
        for topic in topics:
            held = topic.held
            largest = sorted(held, key=lambda number: held[number][0] - held[number][1])[:NEWEST]
            ends |= {(topic.name, n): (max(held[n][0], held[n][1] - NEWEST), held[n][1]) for n in largest}
        return self._tails("the newest records", _FEW_BYTES, ends, seconds)

    def sample(self, topic: TopicSpans, count: int, *, seconds: float) -> list[Record]:
        """Return the oldest and the newest records of all partitions, as far as they can be read within `seconds`.

        About `count` of them, in equal shares; one more of each partition if there are more partitions than that.
        """
        oldest, newest = sampled_spans(topic.held, count)
        deadline = time.monotonic() + seconds
        found: list[Record] = []
        for ranges in (oldest, newest):  # a consumer each: it keeps the pause of a partition that it has read
            ends = {(topic.name, number): span for number, span in ranges.items()}
            left = max(0.0, deadline - time.monotonic())
            found += self._tails("a sample of the records", _SAMPLE_BYTES, ends, left).get(topic.name, [])
        return found

    def _tails(
        self, what: str, options: Mapping[str, str], ends: Mapping[tuple[str, int], tuple[int, int]], seconds: float
    ) -> dict[str, list[Record]]:
        if not ends:
            return {}
        return self._connection.consume(what, options, lambda consumer, _: kafka_records.tails(consumer, ends, seconds))


def sampled_spans(
    spans: Mapping[int, tuple[int, int]], count: int
) -> tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]]:
    """Return the offsets of each partition's oldest and newest records: equal shares of `count`.

    Small partitions leave what they lack to others.
    """
    oldest, newest, left = dict[int, tuple[int, int]](), dict[int, tuple[int, int]](), count
    in_order = sorted(spans, key=lambda number: spans[number][1] - spans[number][0])
    for place, number in enumerate(in_order):
        start, end = spans[number]
        share = min(max(1, left // (len(in_order) - place)), end - start)
        left -= share
        first = share // 2 if share < end - start else 0
        if first:
            oldest[number] = (start, start + first)
        newest[number] = (end - (share - first), end)
    return oldest, newest


def _offsets(request: Request, places: list[TopicPartition], spec: Any) -> dict[tuple[str, int], int]:
    """Return an offset of each partition, without those whose leader does not say."""
    asked = list_offsets(request, places, spec, Isolation.READ_COMMITTED)
    request.settle(asked.values())
    errors = {place: answer.exception() for place, answer in asked.items()}
    if errors and all(errors.values()):
        raise next(error for error in errors.values() if isinstance(error, KafkaException))
    return {
        (place.topic, place.partition): int(answer.result().offset)
        for place, answer in asked.items()
        if errors[place] is None
    }
