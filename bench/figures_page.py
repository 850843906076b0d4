"""The figures of `make bench` as parts of its page, from the results of one run: `python -m bench.figures_page RESULTS`.

It replaces two parts of `docs/benchmarks.md`: the races with all goals, and the batches of upsert tables. A run with
`--only upserts --many-rows` replaces a third one instead: the batches of larger tables, too, with the goals of these tables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.goal import Goal
from bench.goals import counted
from bench.page_part import PagePart
from bench.plan import MANY_ROWS
from bench.report import CAPTIONS
from bench.rounds import Figure, middle, of
from bench.shapes import SHAPES

FIGURES, UPSERTS, LARGE = (PagePart(name, "bench.figures_page") for name in ("figures", "upserts", "large"))
WAYS = {
    "ours": "Frazil",
    "indexed": "Frazil with an index",
    "merge": "copy-on-write `MERGE`",
    "staged": "staging and `MERGE`",
}


def figures(document: Mapping[str, Any]) -> str:
    """Return the races of one run's document and the goals that it measured."""
    races = {shape: [Figure(**figure) for figure in found] for shape, found in document["races"].items()}
    rows = ", ".join(f"{found[0].rows:,} of {SHAPES[shape].says}" for shape, found in races.items())
    rounds = sorted({len(of(found, found[0].way)) for found in races.values()})
    lines = [
        f"{_introduction(document['machine'])} Medians of {' to '.join(map(str, dict.fromkeys((rounds[0], rounds[-1]))))} counted rounds.",
        f"Rows: {rows}.",
        "",
        "| | rows/s | wall s | CPU-s per million rows |",
        "|---|---|---|---|",
        *(line for shape, found in races.items() for line in _race(shape, found)),
        "",
        *_judged(document),
        "",
        *_others(document),
    ]
    return "\n".join(lines).rstrip()


def upserts(document: Mapping[str, Any]) -> str:
    """Return the batches of upsert tables: medians, and those of the ratios within a round."""
    batches = document["upserts"]["batches"]
    tables = sorted({(one["of"], one["version"]) for one in batches})
    lines = [
        f"{_introduction(document['machine'])} CPU-s, wall s and MB written of a batch, and the wall time divided by Frazil's.",
        "",
        f"| rows, format version | {' | '.join(WAYS.values())} |",
        "|---" * (len(WAYS) + 1) + "|",
        *(_batch([one for one in batches if (one["of"], one["version"]) == table], table) for table in tables),
    ]
    return "\n".join(lines)


def large(document: Mapping[str, Any]) -> str:
    """Return the batches of all tables of a run, and the goals."""
    return "\n".join([upserts(document), "", *_judged(document)])


def _judged(document: Mapping[str, Any]) -> Iterator[str]:
    yield from ("| goal | measured | target | |", "|---|---|---|---|")
    for goal in _goals(document):
        if goal.value is not None:
            yield f"| {goal.says} | {goal.found} | {goal.wanted} | {goal.verdict} |"


def _introduction(machine: Mapping[str, Any]) -> str:
    return (
        f"One `make bench` on {machine['cores']} cores ({machine['memory_gib']} GiB), {machine['date'][:10]}: "
        f"{machine['seconds'] / 60:.1f} minutes, load average {machine['load'][0]:.1f} at its end."
    )


def _race(shape: str, found: Sequence[Figure]) -> Iterator[str]:
    first = f"**{SHAPES[shape].says}**: "
    for way, caption in CAPTIONS.items():
        values = [middle(found, way, what) for what in ("rows_a_second", "wall", "cpu_a_million")]
        if values[0] is not None:
            speed, wall, cpu = (value or 0.0 for value in values)
            yield f"| {first}{caption} | {speed:,.0f} | {wall:.2f} | {cpu:.2f} |"
            first = ""


def _goals(document: Mapping[str, Any]) -> list[Goal]:
    return [Goal(**{name: value for name, value in goal.items() if name != "verdict"}) for goal in document["goals"]]


def _others(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what each part measured that no goal shows."""
    if commits := document["commits"]:
        last = commits["looks"][-1]
        yield (
            f"- {len(commits['commits']):,} commits took {commits['seconds']:.0f} s and left {last['metadata_bytes'] / 1e6:.1f} MB of metadata in "
            f"{last['metadata_files']} files, with the {last['snapshots']} snapshots that are kept."
        )
    if many := document["many"]:
        said = (f"{one['way']} {one['wall']:.1f} s and {_cpu(one):.1f} CPU-s" for one in many["measured"])
        yield f"- 50 small pipelines: {', '.join(said)}."
    if fresh := document["fresh"]:
        shell, first = (", ".join(f"{value:.1f}" for value in fresh[what]) for what in ("shell", "first"))
        yield f"- `frazil run` of 1,000 records from the shell: {shell} s. The first 200,000 nested Avro orders of a session: {first} CPU-s."


def _batch(batches: Sequence[Mapping[str, Any]], table: tuple[int, int]) -> str:
    ours = {one["round"]: one for one in batches if one["way"] == "ours"}
    cells = []
    for way in WAYS:
        found = counted(batches, way)
        if not found:
            cells.append("–")
            continue
        values = [(_cpu(one), one["wall"], one["bytes"]) for one in found]
        cpu, wall, written = (median(column) for column in zip(*values, strict=True))
        ratio = median(value[1] / ours[one["round"]]["wall"] for value, one in zip(values, found, strict=True))
        said = f"{cpu:.1f}, {wall:.1f}, {written / 1e6:.1f}"
        cells.append(said if way == "ours" else f"{said}: {ratio:.2f}")
    return f"| {table[0] // 1_000_000} M, v{table[1]} | {' | '.join(cells)} |"


def _cpu(used: Mapping[str, Any]) -> float:
    return float(sum(seconds for name, seconds in used["cpu"].items() if name != "broker"))


def main() -> None:
    """Write the parts of the page that the results have."""
    document = json.loads(Path(sys.argv[1]).read_text())
    if document["upserts"] and any(one["of"] == max(MANY_ROWS) for one in document["upserts"]["batches"]):
        LARGE.write(large(document))
        return
    if document["races"]:
        FIGURES.write(figures(document))
    if document["upserts"]:
        UPSERTS.write(upserts(document))


if __name__ == "__main__":
    main()
