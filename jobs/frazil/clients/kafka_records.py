"""Read single records from Kafka in the driver, where Spark's source cannot help."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

# The group is named and never joined: offsets are given, and nothing is committed.
OPTIONS = {
    "group.id": "frazil",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": "10",
}
FEW = {"max.partition.fetch.bytes": str(64 << 10)}  # one record of each partition is wanted
MANY = {"max.partition.fetch.bytes": str(8 << 20)}
_POLL_SECONDS = 0.1
_MESSAGES = 500  # a call returns when it has so many, or after the time above
MOST_RECORDS, MOST_BYTES = 20_000, 64 << 20  # that one call holds in memory
_END = frozenset({KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_FINAL = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED})  # not that of the group, which is not used


@dataclass(frozen=True, slots=True)
class Record:
    """A record as Kafka holds it.

    `timestamp_ms` is any 64-bit number, as Kafka does not check it. `timestamp_type` is Kafka's number: -1 none, 0 by the
    producer, 1 by the broker.
    """

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    timestamp_type: int
    headers: tuple[tuple[str, bytes | None], ...]


def at(consumer: Any, topic: str, offsets: Mapping[int, int], seconds: float) -> dict[int, Record | None]:
    """Return the record at the given offset of each partition; None if it does not exist.

    Raises `KafkaException` if the broker does not answer within `seconds`.
    """
    found: dict[int, Record | None] = {}
    for partition, record in _polled(consumer, topic, offsets, seconds, at_once=min(len(offsets), _MESSAGES)):
        if partition not in found:
            found[partition] = record if record is not None and record.offset == offsets[partition] else None
        if len(found) == len(offsets):
            break
    return found


def stretches(
    consumer: Any, topic: str, ends: Mapping[int, tuple[int, int]], is_wanted: Callable[[Record], bool], seconds: float
) -> list[Record]:
    """Return the records of each partition from the first to the last that is wanted, between two offsets of it.

    Raises `MemoryError` if they are more than `MOST_RECORDS`, or hold more than `MOST_BYTES`; `KafkaException` if the broker
    does not answer within `seconds`.
    """
    kept: dict[int, list[Record]] = {}
    wanted: dict[int, int] = {}  # how many of the kept ones there are up to the last that is wanted
    ended: set[int] = set()
    held = 0
    for partition, record in _polled(consumer, topic, {p: start for p, (start, _) in ends.items()}, seconds):
        if record is None or record.offset >= ends[partition][1]:
            ended.add(partition)
        elif partition not in ended and (partition in kept or is_wanted(record)):
            kept.setdefault(partition, []).append(record)
            held += len(record.key or b"") + len(record.value or b"")
            if is_wanted(record):
                wanted[partition] = len(kept[partition])
            if sum(map(len, kept.values())) > MOST_RECORDS or held > MOST_BYTES:
                raise MemoryError(f"more than {MOST_RECORDS} records, or {MOST_BYTES >> 20} MB, are read by the driver")
        if len(ended) == len(ends):
            break
    return [record for p, records in sorted(kept.items()) for record in records[: wanted[p]]]


def tails(consumer: Any, ends: Mapping[tuple[str, int], tuple[int, int]], seconds: float) -> dict[str, list[Record]]:
    """Return the records of partitions of several topics between two offsets of each, by topic.

    Those that `seconds`, or `MOST_BYTES`, do not suffice for are omitted. Raises `KafkaException` if it may not read at all.
    """
    found: dict[str, list[Record]] = {}
    left, held = set(ends), 0
    consumer.assign([TopicPartition(topic, partition, start) for (topic, partition), (start, _) in ends.items()])
    deadline = time.monotonic() + seconds
    while left and held < MOST_BYTES and time.monotonic() < deadline:
        for message in consumer.consume(_MESSAGES, timeout=_POLL_SECONDS):
            place, error = (message.topic(), message.partition()), message.error()
            if place not in left:
                continue
            if error is None and message.offset() < ends[place][1]:
                found.setdefault(place[0], []).append(_record(message))
                held += len(message.key() or b"") + len(message.value() or b"")
            elif error is not None and error.fatal():
                raise KafkaException(error)
            if error is not None or message.offset() + 1 >= ends[place][1]:
                left.discard(place)
                consumer.pause([TopicPartition(*place)])
    return found


def _polled(
    consumer: Any, topic: str, offsets: Mapping[int, int], seconds: float, *, at_once: int = _MESSAGES
) -> Iterator[tuple[int, Record | None]]:
    """Yield each partition's records from its offset on, and None at its end; endless. `seconds` bound each wait."""
    if offsets:
        consumer.assign([TopicPartition(topic, p, o) for p, o in offsets.items()])
    deadline = time.monotonic() + seconds
    while offsets:
        for message in consumer.consume(at_once, timeout=_POLL_SECONDS):
            error = message.error()
            if error is None:
                yield message.partition(), _record(message)
            elif error.code() in _END:
                yield message.partition(), None
            elif error.fatal() or error.code() in _FINAL:
                raise KafkaException(error)
            else:
                continue
            deadline = time.monotonic() + seconds
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def _record(message: Any) -> Record:
    kind, ms = message.timestamp()
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Record(message.partition(), message.offset(), message.key(), message.value(), ms, kind - 1, headers)
