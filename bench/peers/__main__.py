"""The peers' bench: `make bench-peers`, or `make bench-peers ARGS="--shape nested_avro --way flink --way ours"`."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import Any

from bench import command, rounds
from bench.environment import OUT, BenchEnvironment, ground, tell
from bench.fill import make
from bench.peers import state_race
from bench.peers.jars import LOCK, flink_jars, sink_jars
from bench.peers.page import section
from bench.peers.races import CAPTIONS, RACES
from bench.plan import chosen
from bench.shapes import SHAPES
from bench.small import SECONDS, WARM_SECONDS
from frazil.local.toolchain.jars import lock_file, locked

STATE, TRICKLES = "state", "trickles"
"""Names of the races of state tables and of trickles, among those of the shapes."""
TRICKLE_WAYS = {"flink_job": ("flink_trickles", 1), "flink_jobs": ("flink_trickles", 8), "ours": ("small", 0)}
"""The process of each contender of the trickles, and its jobs of Flink."""


def main() -> None:
    shapes = [*(race.shape for race in RACES), STATE, TRICKLES]
    ways = [*CAPTIONS, *state_race.HOSTS]
    out = OUT.with_name("bench-peers")
    given = command.parser("bench-peers", __doc__, shapes=shapes, ways=ways, out=out).parse_args()
    began = time.monotonic()
    flink_jars(), sink_jars()  # fetched before the clock of a cold start runs
    found: dict[str, Any] = {"races": {}, "state": None, "trickles": None}
    with ground(seed=given.seed, heap=given.heap, cores=given.cores, out=given.out) as here:
        for race in chosen(RACES, shapes=given.shape, ways=given.way, scale=given.scale, rounds=given.rounds):
            found["races"][race.shape] = [asdict(figure) for figure in rounds.run_from_cold(here, race)]
            command.keep(given, found, time.monotonic() - began, **versions())
        if TRICKLES in given.shape or not (given.shape or given.way):
            found["trickles"] = _trickles(here, given.rounds or 1)
        if _has_state(given):
            found["state"] = state_race.run(here, ways=given.way, scale=given.scale, rounds=given.rounds)
    document = command.keep(given, found, time.monotonic() - began, **versions())
    print(f"\n{section(document)}\n\nThe figures are in {given.out / 'results.json'}")


def _has_state(given: argparse.Namespace) -> bool:
    """Return whether state tables are raced: by default, if their shape or one of their contenders is named."""
    if given.shape:
        return STATE in given.shape
    return not given.way or any(way in given.way for way in state_race.HOSTS)


def _trickles(here: BenchEnvironment, rounds: int) -> dict[str, Any]:
    """Follow eight keyed topics with a few records a second each, by each contender in turns. Return the figures of each by its rounds."""
    unread = make(here.world, SHAPES["light_avro"], "trickle_unread", 0, partitions=1)
    wants = {"seconds": SECONDS, "warm_seconds": WARM_SECONDS}
    found: dict[str, Any] = {way: [] for way in TRICKLE_WAYS}
    for number in range(rounds):
        for way, (contender, jobs) in TRICKLE_WAYS.items():
            job = here.job(contender, f"trickle_{way}_{number}", unread, wants={**wants, "jobs": jobs})
            found[way].append(here.run(job))
            tell(f"  trickles, {way}: {found[way][-1]}")
    return found


def versions() -> dict[str, str]:
    """Return the versions of the peers, as they are locked."""
    found = {artifact.name: artifact.version for lock in (lock_file(), LOCK) for artifact in locked(lock)}
    names = {"flink": "flink-clients", "connect": "connect-runtime", "iceberg": "iceberg-kafka-connect"}
    return {peer: found[name] for peer, name in names.items()}


if __name__ == "__main__":
    main()
