"""Frazil with the topics of one pattern in one warm session: landed together, one after another, and followed without records."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import Any

from bench.accounting import Meter
from bench.contenders.product import declared, drained, driver, heard
from bench.fill import fill
from bench.topics import Job
from frazil.declaration.several.topic_pattern import TopicPattern
from frazil.ingest import runner
from frazil.job.matched_topics import MatchedTopics
from frazil.lake.read.stored_tables import Lake

SEED = 7
SETTLE_SECONDS = 20.0


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Land each topic's few records in each way, in turns; then follow all topics, which have no new ones.

    The first turn creates the tables and warms up.
    """
    count, rounds, seconds = (job.wants[name] for name in ("topics", "rounds", "seconds"))
    topics = [replace(job.timed, name=f"{job.timed.name}.t{number:03d}") for number in range(count)]
    bootstrap = job.environment.kafka.bootstrap
    shared_by_all = declared(job, job.timed, f"{job.table}_shared")
    table = replace(shared_by_all.table, identifier=f"{shared_by_all.table.namespace}.topic")
    pattern = TopicPattern(
        rf"{job.timed.name}\.(?P<of>.*)",
        table=f"{job.table}_{{of}}",
        pipeline=replace(shared_by_all, topic=replace(shared_by_all.topic, name="topic"), table=table, name="topic"),
        most=count,
    )
    pipelines = [pattern.pipeline_of(topic.name) for topic in topics]
    measured, given = list[dict[str, Any]](), 0
    with driver(job) as (shared, registry):
        for number in range(rounds + 1):
            for way in ("together", "alone"):
                fill(bootstrap, topics, seed=SEED, first=given)
                given += job.timed.rows
                before = meter.read()
                groups = [pipelines] if way == "together" else [[pipeline] for pipeline in pipelines]
                written = sum(drained(group, shared, registry) for group in groups)
                used = meter.read().since(before)
                assert written == job.timed.rows * count, written
                measured.append({"way": way, "round": number, **asdict(used)})
        lake = Lake(job.environment, lambda secret: "")
        found = MatchedTopics([pattern], (), lake, shared.kafka.names)
        stop = threading.Event()
        following = replace(shared, stopping=stop.is_set, wait=stop.wait)
        with ThreadPoolExecutor(1) as threads:
            ended = threads.submit(runner.follow, (), following, registry, heard, topics=found, probe=False)
            try:
                stop.wait(SETTLE_SECONDS)
                before = meter.read()
                stop.wait(seconds)
                idle = meter.read().since(before)
            finally:
                stop.set()
            outcomes = ended.result()
        assert len(outcomes) == count, len(outcomes)
        assert not any(outcome.error for outcome in outcomes.values())
    return {"topics": count, "measured": [one for one in measured if one["round"]], "idle": asdict(idle)}
