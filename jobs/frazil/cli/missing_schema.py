"""What a pipeline without a table waits for: a schema that its topic needs."""

from __future__ import annotations

import time

from frazil.clients.kafka import Kafka
from frazil.clients.registry.client import Registry
from frazil.declaration import Pipeline
from frazil.errors import KafkaUnavailable, RegistryUnavailable, TopicMissing


def missing_schema(pipeline: Pipeline, registry: Registry | None, kafka: Kafka) -> str:
    """Return the sentence that an `idle` event has, with its hint; empty if the topic has a schema or needs none."""
    from frazil.decode.writers.topic_writers import writer_schemas
    from frazil.envelopes.chosen_envelope import envelope
    from frazil.ingest.reporting.waiting import waiting

    topic = pipeline.topic
    writers = writer_schemas(topic, registry, envelope=envelope(pipeline.envelope))
    try:
        spans = kafka.offsets(topic.name, pipeline.isolation)
    except TopicMissing:
        return ""  # that is said of the lag, and comes before a schema
    except KafkaUnavailable:
        spans = {}
    try:
        writers.refresh()
        if writers.versions or writers.may_begin_without:
            return ""
    except RegistryUnavailable as error:
        return str(error)
    problem = next(iter(writers.problems.values()), "")
    facts = waiting(pipeline, kafka, {}, spans, now=time.time(), lacks_key=False, problem=problem)
    return ". ".join(str(facts[key]) for key in ("message", "hint") if key in facts)
