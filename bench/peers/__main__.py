"""The peers' bench: `make bench-peers`, or `make bench-peers ARGS="--shape nested_avro --way flink --way ours"`."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import Any

from bench import command, rounds
from bench.environment import OUT, ground
from bench.peers import state_race, trickle_race
from bench.peers.jars import LOCK, flink_jars, sink_jars
from bench.peers.page import section
from bench.peers.races import CAPTIONS, RACES
from bench.plan import chosen
from frazil.local.toolchain.jars import lock_file, locked

STATE, TRICKLES = "state", "trickles"
"""Names of the races of state tables and of trickles, among those of the shapes."""


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
            found["trickles"] = trickle_race.run(here, rounds=given.rounds)
        if _has_state(given):
            found["state"] = state_race.run(here, ways=given.way, scale=given.scale, rounds=given.rounds)
    document = command.keep(given, found, time.monotonic() - began, **versions())
    print(f"\n{section(document)}\n\nThe figures are in {given.out / 'results.json'}")


def _has_state(given: argparse.Namespace) -> bool:
    """Return whether state tables are raced: by default, if their shape or one of their contenders is named."""
    if given.shape:
        return STATE in given.shape
    return not given.way or any(way in given.way for way in state_race.HOSTS)


def versions() -> dict[str, str]:
    """Return the versions of the peers, as they are locked."""
    found = {artifact.name: artifact.version for lock in (lock_file(), LOCK) for artifact in locked(lock)}
    names = {"flink": "flink-clients", "connect": "connect-runtime", "iceberg": "iceberg-kafka-connect"}
    return {peer: found[name] for peer, name in names.items()}


if __name__ == "__main__":
    main()
