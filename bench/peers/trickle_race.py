"""The race of trickles: eight keyed topics with a few records a second each, followed into upsert tables by one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.environment import BenchEnvironment, tell
from bench.fill import make
from bench.shapes import SHAPES
from bench.small import SECONDS, WARM_SECONDS

WAYS = {"flink_job": ("flink_trickles", 1), "flink_jobs": ("flink_trickles", 8), "ours": ("small", 0)}
"""The process of each contender, and its jobs of Flink."""
_CAPTIONS = {
    "flink_job": "Flink SQL, one job of eight statements, parallelism 1",
    "flink_jobs": "Flink SQL, eight jobs in one JVM",
    "ours": "Frazil, eight pipelines in one driver",
}


def run(here: BenchEnvironment, *, rounds: int) -> dict[str, Any]:
    """Follow the topics by each contender, in turns; return the figures of each by its rounds."""
    unread = make(here.world, SHAPES["light_avro"], "trickle_unread", 0, partitions=1)
    wants = {"seconds": SECONDS, "warm_seconds": WARM_SECONDS}
    found: dict[str, Any] = {way: [] for way in WAYS}
    for number in range(rounds or 1):
        for way, (contender, jobs) in WAYS.items():
            job = here.job(contender, f"trickle_{way}_{number}", unread, wants={**wants, "jobs": jobs})
            found[way].append(here.run(job))
            tell(f"  trickles, {way}: {found[way][-1]}")
    return found


def trickle_section(found: Mapping[str, Any] | None) -> list[str]:
    """Return the part of the peers' page; none if the race was not run."""
    if not found:
        return []
    lines = [
        "",
        "### Trickles",
        "",
        f"Eight keyed topics of JSON, five records a second each, into upsert tables, measured for {SECONDS} s after "
        f"{WARM_SECONDS} s. Flink reads `upsert-kafka`, has a checkpoint every 5 s and writes equality deletes.",
    ]
    lines += [
        "",
        "| | CPU-s a minute | commits | CPU-s a commit | s between two commits of a table | s until each table has a commit |",
    ]
    lines += ["|---|---|---|---|---|---|"]
    for way, rounds in found.items():
        for one in rounds:
            figures = (
                f"{one['cpu_a_minute']:.1f}",
                one["commits"],
                f"{one['cpu_a_commit']:.2f}",
                f"{one['seconds_between']:.2f}",
            )
            lines.append(f"| {_CAPTIONS[way]} | {' | '.join(map(str, figures))} | {one['first_commits'][-1]:.1f} |")
    return lines
