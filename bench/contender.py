"""One contender in a process of its own. It lands the topics named on its standard input, and prints the cost of each.

`python -m bench.contender JOB` is started by the bench. Contenders that land topics stay until their standard input
ends, so that rounds of several can be interleaved, all of them warm; the others do their one thing and end.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.accounting import Meter
from bench.topics import Job, Topic

_ROOM, _PEERS = "bench.contenders", "bench.peers"
HOSTS = {  # the module and the function; only the chosen one is imported, so that a process imports its own contender only
    "n0": (f"{_ROOM}.streaming", "n0"),
    "n1": (f"{_ROOM}.streaming", "n1"),
    "spike": (f"{_ROOM}.spike", "spike"),
    "ours": (f"{_ROOM}.product", "ours"),
    "ours_as_spike": (f"{_ROOM}.product", "ours_as_spike"),
    **{name: (f"{_PEERS}.{name}", name) for name in ("merge_state", "frazil_state", "state_reader")},
}
PEERS = {name: (f"{_PEERS}.{name}", name) for name in ("flink", "connect", "flink_state")}
"""Engines in a JVM that this process only starts and asks, so that its own CPU does not count."""
PROGRAMS = {
    name: (f"{_ROOM}.{name}", "run")
    for name in (
        "follow",
        "commits",
        "many",
        "partitions",
        "upserts",
        "aging",
        "requests",
        "small",
        "routes",
        "patterns",
    )
} | {"flink_trickles": (f"{_PEERS}.flink_trickles", "run")}
ANSWER = "answer "  # begins a line of standard output that is meant for the bench


def main() -> None:
    job = Job.from_json(sys.argv[1])
    meter = Meter(job.broker_pid, counts_driver=job.contender not in PEERS)
    if job.contender in PROGRAMS:
        answer = _chosen(*PROGRAMS[job.contender])(job, meter)
        (Path(job.folder) / "answer.json").write_text(json.dumps(answer))
    else:
        _serve(job, meter)


def _serve(job: Job, meter: Meter) -> None:
    with _chosen(*(HOSTS | PEERS)[job.contender])(job) as ways:
        _answer({"ready": sorted(ways)})
        for line in sys.stdin:
            asked = json.loads(line)
            land = ways[asked["way"]](Topic(**asked["topic"]), asked["table"])
            before = meter.read()
            counted = land()
            used = meter.read().since(before)
            more = {"since_start": asdict(meter.since_start()), "counted": counted, "peak_rss_mb": meter.peak_rss_mb()}
            _answer({**asdict(used), **more})


def _chosen(module: str, function: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def _answer(words: object) -> None:
    print(ANSWER + json.dumps(words), flush=True)


if __name__ == "__main__":
    main()
