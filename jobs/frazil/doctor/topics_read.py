"""Checks of topics: that they exist, our rights on them, and that records can be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from frazil.clients.kafka import Kafka
from frazil.clients.kafka_rights import KafkaAccess
from frazil.declaration import Pipeline
from frazil.doctor.brokers import LOGIN
from frazil.doctor.check_result import Check
from frazil.doctor.schedule import Step

NEEDED = ("DESCRIBE", "DESCRIBE_CONFIGS", "READ")
"""The operations on a topic that a run needs, by Kafka's names."""


def steps(pipelines: Sequence[Pipeline], kafka: Callable[[], Kafka], access: Callable[[], KafkaAccess]) -> list[Step]:
    """Return two steps for each topic: its rights, and a fetch."""
    topics = {pipeline.topic.name: pipeline for pipeline in pipelines}
    made = []
    for name, pipeline in topics.items():
        rights = f"topic {name}"
        made.append(Step(name=rights, work=partial(_rights, name, kafka, access), after=(LOGIN,)))
        made.append(Step(name=f"read {name}", work=partial(_fetch, pipeline, kafka), after=(rights,)))
    return made


def of_rights(topic: str, partitions: int, granted: frozenset[str]) -> Check:
    """Return the check of the operations that a broker authorises; none if it does not say."""
    name, found = f"topic {topic}", f"{partitions} partition{'' if partitions == 1 else 's'}"
    missing = [operation for operation in NEEDED if operation not in granted]
    if not granted or "ALL" in granted:
        return Check.ok(name, found)
    if missing:
        what, do = f"our user may not {', '.join(missing)}", f"Allow {', '.join(missing)} on topic {topic} to our user"
        return Check.failed(name, what, do)
    return Check.ok(name, f"{found}, {', '.join(NEEDED)} allowed")


def _rights(topic: str, kafka: Callable[[], Kafka], access: Callable[[], KafkaAccess]) -> Check:
    """Check what a run asks of a topic. Raises `KafkaUnavailable`."""
    granted = access().rights(topic)
    return of_rights(topic, len(kafka().topic(topic).partitions), granted)


def _fetch(pipeline: Pipeline, kafka: Callable[[], Kafka]) -> Check:
    """Check that offsets are listed and a fetch is answered, by the last offset of one partition. Raises `KafkaUnavailable`."""
    topic = pipeline.topic.name
    spans = kafka().offsets(topic, pipeline.isolation)
    held = {partition: span for partition, span in spans.items() if span.stable > span.earliest}
    partition, span = next(iter(held.items() or spans.items()))
    kafka().records(topic, {partition: max(span.stable - 1, span.earliest)}, pipeline.isolation)
    if not held:
        return Check.warning(f"read {topic}", "the topic has no records", "Nothing lands until a producer writes some")
    count = sum(span.stable - span.earliest for span in held.values())
    return Check.ok(f"read {topic}", f"{count:,} offsets, a fetch was answered")
