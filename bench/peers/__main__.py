"""The peers' bench: `make bench-peers`, or `make bench-peers ARGS="--shape nested_avro --way flink --way ours"`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from bench import rounds
from bench.environment import OUT, ground
from bench.peers import state_race, trickle_race
from bench.peers.jars import LOCK, flink_jars, sink_jars
from bench.peers.page import section
from bench.peers.races import CAPTIONS, RACES
from bench.plan import chosen
from bench.rounds import Figure
from frazil.local.toolchain.jars import lock_file, locked
from frazil.version import VERSION

STATE, TRICKLES = "state", "trickles"
"""Names of the races of state tables and of trickles, among those of the shapes."""


def main() -> None:
    given = _arguments()
    began = time.monotonic()
    flink_jars(), sink_jars()  # fetched before the clock of a cold start runs
    races: dict[str, Sequence[Figure]] = {}
    state: dict[str, Any] | None = None
    trickles: dict[str, Any] | None = None
    with ground(seed=given.seed, heap=given.heap, cores=given.cores, out=given.out) as here:
        for race in chosen(RACES, shapes=given.shape, ways=given.way, scale=given.scale, rounds=given.rounds):
            races[race.shape] = rounds.run_from_cold(here, race)
            _keep(races, state, trickles, given, time.monotonic() - began)
        if TRICKLES in given.shape or not (given.shape or given.way):
            trickles = trickle_race.run(here, rounds=given.rounds)
        if _has_state(given):
            state = state_race.run(here, ways=given.way, scale=given.scale, rounds=given.rounds)
    document = _keep(races, state, trickles, given, time.monotonic() - began)
    print(f"\n{section(document)}\n\nThe figures are in {given.out / 'results.json'}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-peers ARGS=…", description=__doc__)
    parser.add_argument(
        "--shape", action="append", default=[], choices=[*(race.shape for race in RACES), STATE, TRICKLES]
    )
    parser.add_argument(
        "--way", action="append", default=[], choices=[*CAPTIONS, *state_race.HOSTS], help="a contender"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="times the rows of each topic")
    parser.add_argument("--rounds", type=int, default=0, help="rounds that count; 0 is each race's own")
    parser.add_argument("--heap", default="3g", help="of each contender's JVM")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument(
        "--out", type=Path, default=OUT.with_name("bench-peers"), help="the folder for figures and logs"
    )
    parser.add_argument("--seed", type=int, default=20261101)
    return parser.parse_args()


def _has_state(given: argparse.Namespace) -> bool:
    """Return whether state tables are raced: by default, if their shape or one of their contenders is named."""
    if given.shape:
        return STATE in given.shape
    return not given.way or any(way in given.way for way in state_race.HOSTS)


def _keep(
    races: Mapping[str, Sequence[Figure]],
    state: Mapping[str, Any] | None,
    trickles: Mapping[str, Any] | None,
    given: argparse.Namespace,
    seconds: float,
) -> dict[str, Any]:
    """Write the document of a run, and return it."""
    document = {
        "version": 1,
        "machine": {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "version": VERSION,
            "versions": versions(),
            "cores": os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "python": platform.python_version(),
            "load": os.getloadavg(),
            "seconds": seconds,
            "arguments": {name: value for name, value in vars(given).items() if name != "out"},
        },
        "races": {shape: [asdict(figure) for figure in figures] for shape, figures in races.items()},
        "state": state,
        "trickles": trickles,
    }
    (given.out / "results.json").write_text(json.dumps(document, indent=1))
    return document


def versions() -> dict[str, str]:
    """Return the versions of the peers, as they are locked."""
    found = {artifact.name: artifact.version for lock in (lock_file(), LOCK) for artifact in locked(lock)}
    names = {"flink": "flink-clients", "connect": "connect-runtime", "iceberg": "iceberg-kafka-connect"}
    return {peer: found[name] for peer, name in names.items()}


if __name__ == "__main__":
    main()
