"""The report of a run: one table for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from bench import growth_page
from bench.goal import Goal
from bench.goals import Results
from bench.rounds import Figure, middle

CAPTIONS = {
    "n0": "N0: from_json, 10,000 a trigger, direct sink",
    "n1": "N1: foreachBatch, two counts",
    "spike": "spike",
    "ours_as_spike": "Frazil, the spike's columns",
    "ours": "Frazil",
    "state": "Frazil, an upsert table",
    "changelog": "Frazil, a table of every change",
    "read": "… read: Kafka to nowhere",
    "decode": "… and decoded, to nowhere",
    "files": "… and written to files",
}


def table(results: Results, goals: Sequence[Goal]) -> str:
    """Return the table: every contender of every shape, then every goal."""
    head = f"{'shape, contender':58} {'rows/s':>9} {'wall s':>7} {'CPU-s/M':>8} {'JVM':>6} {'broker':>6} {'MB':>6}"
    lines = [head] if results.races else []
    for shape, figures in results.races.items():
        lines += ["", shape, *(_line(figures, way) for way in CAPTIONS if any(f.way == way for f in figures))]
    lines += ["", *_others(results), "", f"{'goal':70} {'found':>9} {'wanted':>9}"]
    lines += [f"{goal.says:70} {goal.found:>9} {goal.wanted:>9}  {goal.verdict}" for goal in goals]
    return "\n".join(lines)


def _line(figures: Sequence[Figure], way: str) -> str:
    def of(what: str) -> float:
        found = middle(figures, way, what)
        assert found is not None
        return found

    last = [figure for figure in figures if figure.way == way][-1]
    jvm, broker = (last.by_process.get(name, 0.0) * 1e6 / last.rows for name in ("jvm", "broker"))
    return (
        f"  {CAPTIONS[way]:56} {of('rows_a_second'):9,.0f} {of('wall'):7.2f} {of('cpu_a_million'):8.2f} "
        f"{jvm:6.2f} {broker:6.2f} {last.peak_rss_mb['python']:6.0f}"
    )


def _others(results: Results) -> Iterator[str]:
    for found in (results.fast, results.usual):
        if found:
            low, high = min(found.seconds), max(found.seconds)
            yield (
                f"followed every {found.every_seconds} s: one record visible after {found.median_seconds:.2f} s "
                f"({low:.2f} to {high:.2f}), idle {found.idle_share:.1%} of a core"
            )
    if results.commits:
        count, seconds = len(results.commits["commits"]), results.commits["seconds"]
        looks = results.commits["looks"]
        yield f"{count:,} commits in {seconds:.0f} s" + (
            f", {looks[-1]['metadata_bytes'] / 1e6:.1f} MB of metadata in {looks[-1]['metadata_files']} files, "
            f"{looks[-1]['snapshots']} snapshots"
            if looks
            else ""
        )
    if results.many:
        for measured in results.many["measured"]:
            yield f"50 pipelines {measured['way']}: {measured['wall']:.1f} s, {_cpu(measured):.1f} CPU-s"
    if results.fresh:
        shell, first = (", ".join(f"{value:.1f}" for value in results.fresh[what]) for what in ("shell", "first"))
        yield f"frazil run from the shell: {shell} s; the first rows of a session: {first} CPU-s"
    for found in results.aging:
        seconds = ", ".join(
            f"{what} {found['aged'][what]:.2f} s (fresh {fresh:.2f})" for what, fresh in found["fresh"].items()
        )
        yield f"{len(found['commits']):,} batches of changes, v{found['version']}, {len(found['compacted'])} compactions: {seconds}"
    for batch in results.upserts["batches"] if results.upserts else ():
        yield (
            f"{batch['rows']:,} rows, v{batch['version']}, round {batch['round']}, {batch['way']:7}: {batch['wall']:.2f} s, "
            f"{_cpu(batch):.1f} CPU-s, {batch['bytes'] / 1e6:.2f} MB"
        )
    for index in results.upserts.get("indexes", ()) if results.upserts else ():
        yield f"index of keys, v{index['version']}: " + ", ".join(
            f"{k} {v}" for k, v in index.items() if k != "version"
        )
    yield from growth_page.lines(results.requests, results.growth)
    if results.partitions:
        yield from _of_partitions(dict(results.partitions))


def _of_partitions(found: dict[str, Any]) -> Iterator[str]:
    for number, batch in enumerate(found["batches"], 1):
        cpu, broker = _cpu(batch), batch["cpu"]["broker"]
        yield (
            f"1,000 partitions, batch {number}: {batch['wall']:.1f} s, {cpu:.1f} CPU-s, broker {broker:.1f}, {batch['files']} files"
        )
    for landing in found["landings"]:
        cpu, broker = _cpu(landing), landing["cpu"]["broker"]
        yield f"a large topic of {landing['partitions']:,} partitions: {landing['wall']:.1f} s, {cpu:.1f} CPU-s, broker {broker:.1f}"


def _cpu(used: dict[str, Any]) -> float:
    return float(sum(seconds for name, seconds in used["cpu"].items() if name != "broker"))


def document(results: Results, goals: Sequence[Goal], machine: dict[str, Any]) -> dict[str, Any]:
    """Return all results as a document."""
    return {
        "version": 1,
        "machine": machine,
        "races": {shape: [asdict(figure) for figure in figures] for shape, figures in results.races.items()},
        "follow": [asdict(found) for found in (results.fast, results.usual) if found],
        "commits": results.commits,
        "many": results.many,
        "fresh": results.fresh,
        "small": results.small,
        "partitions": results.partitions,
        "upserts": results.upserts,
        "aging": list(results.aging),
        "requests": list(results.requests),
        "growth": results.growth,
        "goals": [{**asdict(goal), "verdict": goal.verdict} for goal in goals],
    }
