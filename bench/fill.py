"""Fill topics: several processes, each with partitions of its own, so that a partition's content is known beforehand."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from math import gcd
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.bodies import POOL, Head, pool, varint
from bench.shapes import SHAPES, Format, Shape
from bench.topics import Topic
from frazil.clients.registry.admin import RegistryAdmin
from frazil.local.services import LocalServices
from tests.support.debezium_events import KEY, key_schema

ROOT = Path(__file__).parents[1]
PARTITIONS = 4
WORKERS = 2
_STEP = 2_000
_SETTINGS = {
    "log_level": 3,
    "acks": 1,
    "linger.ms": 20,
    "batch.num.messages": 10_000,
    "batch.size": 1 << 20,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 1_000_000,
    "delivery.report.only.error": True,
}


def make(
    world: LocalServices,
    shape: Shape,
    name: str,
    rows: int,
    *,
    partitions: int = PARTITIONS,
    is_framed: bool = True,
) -> Topic:
    """Create an empty topic that is to hold `rows` records, and register its schema."""
    schema_id = RegistryAdmin(world.registry_url).register(f"{name}-value", shape.schema, shape.type)
    admin = AdminClient(
        {"bootstrap.servers": world.bootstrap, "log_level": 3}
    )  # named: without it, the client ends before the answer
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    keys = rows if shape.keyed else min(shape.changes, rows)
    of_key = (
        RegistryAdmin(world.registry_url).register(f"{name}-key", json.dumps(key_schema(KEY))) if shape.changes else 0
    )
    return Topic(
        name=name,
        shape=shape.name,
        rows=rows,
        partitions=partitions,
        schema_id=schema_id,
        keys=keys,
        key_schema_id=of_key,
        is_framed=is_framed,
    )


def key(topic: Topic, number: int) -> tuple[int, bool]:
    """Return the key of a record of a topic that has keys, and whether the record deletes it.

    Each round of `topic.keys` records has every key once, in an order of no use to min and max, and each key in one partition. From
    the second round on a tenth of the records deletes its key, and keys that are scattered have another order than in the first.
    """
    each = topic.keys // topic.partitions
    number_of, partition = divmod(number, topic.partitions)
    round_, place = divmod(number_of, each)
    least = each * 3 // 8 if topic.is_scattered and round_ else each * 2 // 3
    chosen = place * _stride(each, least) % each
    return chosen * topic.partitions + partition, round_ > 0 and (place + round_) % 10 == 0


@lru_cache(maxsize=8)
def _stride(each: int, least: int) -> int:
    return next(stride for stride in range(least + 1, 2 * each + 2) if gcd(stride, each) == 1)


def last_records(topic: Topic, records: int) -> dict[int, int]:
    """Return the number of the last record of each key that the first so many records of a topic leave."""
    left: dict[int, int] = {}
    for number in range(records):
        chosen, is_delete = key(topic, number)
        if is_delete:
            left.pop(chosen, None)
        else:
            left[chosen] = number
    return left


def tail_of(topic: Topic, number: int, many: int) -> int:
    """Return which of so many tails a record of a topic has, as `produce` gives them to a topic whose ids begin at 0."""
    place, partition = divmod(number, topic.partitions)
    return (partition * many // topic.partitions + place) % many


def fill(bootstrap: str, topics: Sequence[Topic], *, seed: int, first: int = 0) -> float:
    """Give each topic its records, ids from `first` on, dealt to the partitions in turn; returns the seconds."""
    workers = min(WORKERS, topics[0].partitions) if topics[0].rows > 50_000 else 1
    described = json.dumps([json.loads(topic.to_json()) for topic in topics])
    began = time.monotonic()
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.fill", bootstrap, described, *map(str, (seed, first, worker, workers))],
            cwd=ROOT,
        )
        for worker in range(workers)
    ]
    ended = [child.wait() for child in children]
    if any(ended):
        raise RuntimeError(f"topic {topics[0].name} could not be filled")
    return time.monotonic() - began


def produce(
    producer: Producer, topic: Topic, partition: int, first: int, made: tuple[Head, list[bytes], list[bytes]]
) -> None:
    """Send a partition's share of the topic's records to it, ids from `first` on."""
    head, tails, keys = made
    frame = b"\0" + topic.schema_id.to_bytes(4, "big")
    frame += b"\0" if SHAPES[topic.shape].format is Format.PROTOBUF else b""
    frame = frame if topic.is_framed else b""
    place, many = partition * len(tails) // topic.partitions, len(tails)
    send, name = producer.produce, topic.name
    for number in range(first + partition, first + topic.rows, topic.partitions):
        value: bytes | None = frame + head(number) + tails[place]
        record_key = keys[place]
        if topic.keys:
            chosen, is_delete = key(topic, number)
            record_key, value = b"k%d" % chosen, None if is_delete else value
            if topic.key_schema_id:
                record_key = b"\0" + topic.key_schema_id.to_bytes(4, "big") + varint(chosen << 1)
                value = None if is_delete else frame + head(chosen) + tails[place]
        while True:
            try:
                send(name, value, record_key, partition)
                break
            except BufferError:
                producer.poll(0.05)
        place = (place + 1) % many
        if number % _STEP < topic.partitions:
            producer.poll(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("topics", type=json.loads)
    for name in ("seed", "first", "worker", "workers"):
        parser.add_argument(name, type=int)
    given = parser.parse_args()
    topics = [Topic(**topic) for topic in given.topics]
    made = pool(SHAPES[topics[0].shape], seed=given.seed, size=min(POOL, topics[0].rows))
    producer = Producer({"bootstrap.servers": given.bootstrap, **_SETTINGS})
    for topic in topics:
        for partition in range(given.worker, topic.partitions, given.workers):
            produce(producer, topic, partition, given.first, made)
    if producer.flush(120):
        raise RuntimeError("the broker did not take everything")


if __name__ == "__main__":
    main()
