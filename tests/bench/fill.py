"""Fill a topic: several processes, each with partitions of its own, so that a partition's content is known beforehand."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from frazil.clients.registry_admin import RegistryAdmin
from frazil.local.world import World

from tests.bench.bodies import POOL, pool
from tests.bench.shapes import SHAPES, Format, Shape
from tests.bench.topics import Topic

ROOT = Path(__file__).parents[2]
PARTITIONS = 4
_STEP = 2_000
_SETTINGS = {
    "acks": 1,
    "linger.ms": 50,
    "batch.num.messages": 10_000,
    "batch.size": 1 << 20,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 1_000_000,
    "delivery.report.only.error": True,
}


def fill(world: World, shape: Shape, name: str, rows: int, *, seed: int, partitions: int = PARTITIONS) -> Topic:
    """Make a topic of `rows` records with the ids 0 to rows - 1, dealt to partitions in turn; tells the rate."""
    kind = RegistryAdmin(world.registry_url)
    schema_id = kind.register(f"{name}-value", shape.schema, shape.type)
    AdminClient({"bootstrap.servers": world.bootstrap}).create_topics([NewTopic(name, partitions, 1)])[name].result()
    topic = Topic(name=name, shape=shape.name, rows=rows, partitions=partitions, schema_id=schema_id)
    workers = min(2, partitions) if rows > 50_000 else 1
    began = time.monotonic()
    children = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.bench.fill", world.bootstrap, topic.to_json(), str(seed)),
                *map(str, range(worker, partitions, workers)),
            ],
            cwd=ROOT,
        )
        for worker in range(workers)
    ]
    if any([child.wait() for child in children]):
        raise RuntimeError(f"topic {name} could not be filled")
    seconds = time.monotonic() - began
    print(f"  filled {name}: {rows:,} records in {seconds:.1f} s, {rows / seconds:,.0f} a second", flush=True)
    return topic


def _produce(bootstrap: str, topic: Topic, seed: int, partition: int) -> int:
    """Produce the records of one partition; returns their bytes."""
    shape = SHAPES[topic.shape]
    head, tails, keys = pool(shape, seed=seed, size=min(POOL, max(topic.rows, 1)))
    frame = b"\0" + topic.schema_id.to_bytes(4, "big") + (b"\0" if shape.format is Format.PROTOBUF else b"")
    producer = Producer({"bootstrap.servers": bootstrap, **_SETTINGS})
    place, sent, many = partition * len(tails) // topic.partitions, 0, len(tails)
    produce, name = producer.produce, topic.name
    for number in range(partition, topic.rows, topic.partitions):
        value = frame + head(number) + tails[place]
        while True:
            try:
                produce(name, value, keys[place], partition)
                break
            except BufferError:
                producer.poll(0.05)
        sent += len(value)
        place = (place + 1) % many
        if number % _STEP < topic.partitions:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("the broker did not take everything")
    return sent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("topic", type=Topic.from_json)
    parser.add_argument("seed", type=int)
    parser.add_argument("partitions", type=int, nargs="+")
    given = parser.parse_args()
    for partition in given.partitions:
        _produce(given.bootstrap, given.topic, given.seed, partition)


if __name__ == "__main__":
    main()
