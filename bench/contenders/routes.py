"""Frazil with one topic as one table, and as several by a route: the same records, in batches that are read once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from confluent_kafka import Producer

from bench.accounting import Meter
from bench.bodies import pool
from bench.contenders.product import declared, drained, driver
from bench.shapes import SHAPES
from bench.topics import Job, Topic
from frazil.declaration import Header, Pipeline, Table, Target, routes

TYPES, FIRST = 60, 600


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Land each batch by every way in turn. The first one creates the tables, the second one warms up."""
    rows, rounds = job.timed.rows, job.wants["rounds"]
    one = declared(job, job.timed, f"{job.table}_one")
    types = [f"t{number}" for number in range(TYPES)]
    ways = {
        "one": [one],
        "three": routed(job, one, [types[each::3] for each in range(3)], "three"),
        "twenty": routed(job, one, [types[each::20] for each in range(20)], "twenty"),
    }
    measured: list[dict[str, Any]] = []
    given = 0
    with driver(job) as (shared, registry):
        for number in range(rounds + 2):
            many = FIRST if number == 0 else rows
            produce(job, job.timed, given, many)
            given += many
            for way, pipelines in ways.items():
                before = meter.read()
                written = drained(pipelines, shared, registry)
                used = meter.read().since(before)
                assert written == many, (way, written, many)
                measured.append({"way": way, "round": number, **asdict(used)})
    return {"measured": [one for one in measured if one["round"] > 1], "rows": rows}


def routed(job: Job, one: Pipeline, types: list[list[str]], name: str) -> list[Pipeline]:
    """Return a pipeline for each list of types, with all else as `one` has it."""
    to = {tuple(each): Target(Table(f"{job.table}_{name}_{number}")) for number, each in enumerate(types)}
    return list(routes(one.topic, by=Header("type"), to=to, engine=one.engine))


def produce(job: Job, topic: Topic, first: int, count: int) -> None:
    """Send records of the topic's shape with a header that says of which of 60 types each is."""
    head, tails, keys = pool(SHAPES[topic.shape], seed=7)
    frame = b"\0" + topic.schema_id.to_bytes(4, "big")
    producer = Producer(
        {
            "bootstrap.servers": job.environment.kafka.bootstrap,
            "log_level": 3,
            "linger.ms": 20,
            "compression.type": "lz4",
        }
    )
    for number in range(first, first + count):
        place = number % len(tails)
        value, headers = frame + head(number) + tails[place], [("type", b"t%d" % (number % TYPES))]
        while True:
            try:
                producer.produce(topic.name, value, keys[place], number % topic.partitions, headers=headers)
                break
            except BufferError:
                producer.poll(0.05)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("the broker did not take everything")
