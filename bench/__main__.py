"""The bench: `make bench`, or `make bench ARGS="--shape nested_avro --way ours --way spike"`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from bench import command, fresh, latency, patterns, rounds, routed, small
from bench.contenders.partitions import few_of, small_of
from bench.environment import OUT, BenchEnvironment, ground, tell
from bench.figures_page import summary
from bench.fill import fill, make
from bench.goals import Results, goals
from bench.plan import (
    ASKED_FOR,
    CAPTIONS,
    CHANGES,
    COMMITS,
    INITIAL_LOAD,
    MANY_ROWS,
    OTHERS,
    RACES,
    UPSERTS,
    chosen,
)
from bench.sessions import Sessions
from bench.shapes import SHAPES
from bench.store_requests import count_requests

COMMIT_ROWS = 20
COMMIT_SECONDS = 2
"""A commit takes no longer on a busy machine; more than that ends the bench."""
REQUEST_COMMITS = 20
AGING_KEYS = 200_000
AGING_LEAST, AGING_MOST = 50, 1000
"""A batch of changes is this part of the keys: a fiftieth, or less if there are more batches."""
SMALL_PIPELINES = 50
MANY_PARTITIONS = 1_000
MANY_PARTITIONS_ROWS = 1_000_000
SMALL_BATCHES = 6


def main() -> None:
    given = _arguments()
    began = time.monotonic()
    results = Results()
    document: dict[str, Any] = {}

    def keep(**found: Any) -> None:
        nonlocal results, document
        results = replace(results, **found)
        judged = [{**asdict(goal), "verdict": goal.verdict} for goal in goals(results)]
        document = command.keep(given, {**asdict(results), "goals": judged}, time.monotonic() - began)

    with ground(
        seed=given.seed, heap=given.heap, cores=given.cores, out=given.out, format_version=given.format_version
    ) as here:
        others = given.only or (() if given.shape or given.way else OTHERS)
        plain = RACES if not given.only or given.shape or given.way else ()
        named = tuple(race for race in (INITIAL_LOAD, CHANGES) if race.shape in given.shape)
        races = chosen((*plain, *named), shapes=given.shape, ways=given.way, scale=given.scale, rounds=given.rounds)
        if "upserts" in others:
            races += [race.sized(given.scale, given.rounds) for race in (INITIAL_LOAD, CHANGES) if race not in named]
        with Sessions(here) as sessions:
            for race in races:
                keep(races={**results.races, race.shape: rounds.run(here, race, sessions)})
        if "follow" in others:
            tell("following")
            keep(fast=latency.follow(here, every_ms=200, records=15, idle_seconds=5))
            keep(usual=latency.follow(here, every_ms=0, records=3, idle_seconds=5))
        if "many" in others:
            keep(many=_many(here, max(given.rounds, 1)))
        if "fresh" in others:
            keep(fresh=fresh.measure(here, given.rounds or fresh.ROUNDS))
        if "small" in others:
            keep(small=small.measure(here))
        if "routes" in others:
            keep(routes=routed.measure(here, given.rounds or 3, given.scale))
        if "patterns" in others:
            keep(patterns=patterns.measure(here, given.rounds or 2, given.scale))
        if "upserts" in others:
            keep(upserts=_upserts(here, UPSERTS | (MANY_ROWS if given.many_rows else {}), given.scale))
        if "aging" in others:
            for version in (2, 3):
                keep(aging=[*results.aging, _aging(here, version, given.upsert_commits, given.scale)])
        if "partitions" in others:
            keep(partitions=_partitions(here, given.rounds or 3, given.scale))
        if "requests" in others:
            for found in count_requests(here, REQUEST_COMMITS):
                keep(requests=[*results.requests, found])
        if "commits" in others:
            keep(commits=_commits(here, given.commits))
    keep()
    print(f"\n{summary(document)}\n\nThe figures are in {given.out / 'results.json'}")


def _arguments() -> argparse.Namespace:
    shapes = [race.shape for race in (*RACES, INITIAL_LOAD, CHANGES)]
    parser = command.parser("bench", __doc__, shapes=shapes, ways=list(CAPTIONS), out=OUT)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=(*OTHERS, *ASKED_FOR),
        help="run one part that is not a race of shapes",
    )
    parser.add_argument("--commits", type=int, default=COMMITS, help="with `--only commits`")
    parser.add_argument("--many-rows", action="store_true", help="upserts also on tables of 5 and 20 million rows")
    parser.add_argument("--upsert-commits", type=int, default=30, help="batches of changes before upserts are read")
    parser.add_argument(
        "--format-version", type=int, choices=(2, 3), default=2, help="of the tables of loads and changes"
    )
    return parser.parse_args()


def _many(here: BenchEnvironment, measured: int) -> dict[str, Any]:
    tell(f"{SMALL_PIPELINES} small pipelines")
    first = make(here.world, SHAPES["light_avro"], "small", 100, partitions=1)
    for number in range(SMALL_PIPELINES):
        make(here.world, SHAPES["light_avro"], f"small_{number:02d}", 100, partitions=1)
    job = here.job("many", "small", first, wants={"pipelines": SMALL_PIPELINES, "rounds": measured})
    found = here.run(job)
    for number in range(SMALL_PIPELINES):
        here.check(f"{job.table}_{number:02d}", replace(first, rows=found["rows_each"]))
        here.drop(f"{job.table}_{number:02d}")
    return found


def _partitions(here: BenchEnvironment, measured: int, scale: float) -> dict[str, Any]:
    tell(f"{MANY_PARTITIONS:,} partitions")
    rows = int(MANY_PARTITIONS_ROWS * scale)
    many = make(here.world, SHAPES["nested_avro"], "partitions", rows, partitions=MANY_PARTITIONS)
    few, small = few_of(many), small_of(many)
    for topic in (few, small):
        make(here.world, SHAPES["nested_avro"], topic.name, topic.rows, partitions=topic.partitions)
    for topic in (few, many):
        fill(here.world.bootstrap, [topic], seed=here.seed)
    job = here.job("partitions", "partitions", many, wants={"batches": SMALL_BATCHES, "rounds": 0})
    found = here.run(job)
    tell(f"  {SMALL_BATCHES} small batches were landed")
    job = here.job("partitions", "partitions", many, wants={"batches": 0, "rounds": measured})
    found = {**here.run(job), "batches": found["batches"]}
    here.check(f"{job.table}_small", replace(small, rows=small.rows * SMALL_BATCHES))
    for topic in (few, many):
        for number in range(measured):
            here.check(f"{job.table}_{topic.partitions}_{number}", topic)
    here.drop_topics(many, few, small)
    return found


def _upserts(here: BenchEnvironment, wanted: Mapping[int, int], scale: float) -> dict[str, Any]:
    tell("upserts")
    topic = make(here.world, SHAPES["light_avro"], "upserts", 0, partitions=1)  # not read: the batches are files
    wants = {str(int(size * scale)): count for size, count in wanted.items()}
    found = here.run(here.job("upserts", "upserts", topic, wants=wants))
    nominal = dict(zip(map(int, wants), wanted, strict=True))
    here.drop_topics(topic)
    return {**found, "batches": [{**one, "of": nominal[one["rows"]]} for one in found["batches"]]}


def _aging(here: BenchEnvironment, version: int, commits: int, scale: float) -> dict[str, Any]:
    tell(f"{commits:,} batches of changes, format version {version}")
    topic = here.topic("keyed_avro", f"aging_v{version}", int(AGING_KEYS * scale))
    topic = replace(topic, is_scattered=True)  # or a batch would change rows that lie side by side
    wants = {"commits": commits, "version": version}
    each = topic.rows // min(max(commits, AGING_LEAST), AGING_MOST)
    job = here.job("aging", f"aging_v{version}", topic, batch_rows=each, wants=wants)
    found = here.run(job)
    here.drop(job.table, f"{job.table}_fresh")
    here.drop_topics(topic)
    return found


def _commits(here: BenchEnvironment, count: int) -> dict[str, Any]:
    tell(f"{count:,} commits")
    topic = make(here.world, SHAPES["light_avro"], "commits", count * COMMIT_ROWS, partitions=1)
    fill(here.world.bootstrap, [topic], seed=here.seed)
    job = here.job("commits", "commits", topic, batch_rows=COMMIT_ROWS)
    found = here.run(job, timeout=max(count * COMMIT_SECONDS, 3600))
    here.check(job.table, topic)
    here.drop(job.table)
    return found


if __name__ == "__main__":
    main()
