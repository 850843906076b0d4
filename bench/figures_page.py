"""The figures of `make bench` as parts of its page, from the results of one run: `python -m bench.figures_page RESULTS`.

It replaces two parts of `docs/benchmarks.md`: the races with all goals, and the batches of upsert tables. A run with
`--only upserts --many-rows` replaces a third one instead: the batches of larger tables, too, with the goals of these tables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.accounting import without_broker
from bench.fill import ROOT
from bench.goals import Goal, counted
from bench.plan import CAPTIONS, MANY_ROWS
from bench.request_figures import GLUE, READS, WRITES, billed_of_a_commit, in_series, price
from bench.rounds import Figure, middle, of
from bench.shapes import SHAPES
from policies.review.prices import price_table

PAGE = ROOT / "docs" / "benchmarks.md"


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of `docs/benchmarks.md` between two markers: its name, and the module that writes it from the results of a run."""

    name: str
    module: str

    @property
    def begin(self) -> str:
        """The line before the part."""
        return f"<!-- {self.name}: written by `python -m {self.module} RESULTS`; do not edit -->"

    @property
    def end(self) -> str:
        """The line behind the part."""
        return f"<!-- {self.name} end -->"

    def replaced(self, page: str, text: str) -> str:
        """Return the page with another text between the markers. Raises `ValueError` if it lacks one."""
        before, begin, rest = page.partition(self.begin)
        _, end, after = rest.partition(self.end)
        if not (begin and end):
            raise ValueError(f"{PAGE.name} lacks a marker: {self.begin} or {self.end}")
        return f"{before}{begin}\n{text}\n{end}{after}"

    def write(self, text: str) -> None:
        """Replace the part in the page."""
        PAGE.write_text(self.replaced(PAGE.read_text(), text))


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
    rounds = sorted({len(of(found, found[0].way)) for found in races.values()})
    lines = [
        f"{_introduction(document['machine'])} Medians of {' to '.join(map(str, dict.fromkeys((rounds[0], rounds[-1]))))} counted rounds.",
        "",
        "| | CPU-s per million rows | rows/s |",
        "|---|---|---|",
        *(line for shape, found in races.items() for line in _race(shape, found)),
        "",
        *_judged(document),
        "",
        *_others(document),
    ]
    return "\n".join(lines).rstrip()


def summary(document: Mapping[str, Any]) -> str:
    """Return all parts of one run: what the bench prints at its end."""
    parts = [figures(document)] if document["races"] else [_introduction(document["machine"])]
    if not document["races"]:
        parts.append("\n".join([*_judged(document), "", *_others(document)]).strip())
    if document["upserts"]:
        parts.append(upserts(document))
    parts.append("\n".join(_asked_for(document)))
    return "\n\n".join(filter(None, parts)).rstrip()


def upserts(document: Mapping[str, Any]) -> str:
    """Return the batches of upsert tables: medians, and those of the ratios within a round.

    A cell has CPU-seconds, seconds and MB written, then the wall time over Frazil's, and for `MERGE` the bytes over Frazil's.
    """
    batches = document["upserts"]["batches"]
    ways = {way: says for way, says in WAYS.items() if any(one["way"] == way for one in batches)}
    tables = sorted({(one["of"], one["version"]) for one in batches})
    lines = [
        _introduction(document["machine"]),
        "",
        f"| rows, format version | {' | '.join(ways.values())} |",
        "|---" * (len(ways) + 1) + "|",
        *(
            _batch(list(ways), [one for one in batches if (one["of"], one["version"]) == table], table)
            for table in tables
        ),
    ]
    return "\n".join(lines)


def large(document: Mapping[str, Any]) -> str:
    """Return the batches of all tables of a run, and the goals."""
    return "\n".join([upserts(document), "", *_judged(document)])


def _judged(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the goals that were measured, without those of `MERGE`: they are ratios of the table of batches."""
    goals = (Goal(**{name: value for name, value in one.items() if name != "verdict"}) for one in document["goals"])
    measured = [goal for goal in goals if goal.value is not None and "MERGE" not in goal.says]
    yield from ("| goal (missed: bold) | measured | target |", "|---|---|---|") if measured else ()
    for goal in measured:
        found, wanted = (words.removesuffix(" x") for words in (goal.found, goal.wanted))
        yield f"| {goal.says} | {f'**{found}**' if goal.verdict == 'missed' else found} | {wanted} |"


def _introduction(machine: Mapping[str, Any]) -> str:
    return (
        f"`make bench`, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['date'][:10]}: "
        f"{machine['seconds'] / 60:.1f} minutes, load average {machine['load'][0]:.1f} at its end."
    )


def _race(shape: str, found: Sequence[Figure]) -> Iterator[str]:
    first = f"{SHAPES[shape].says} ({found[0].rows:,}): "
    for way, caption in CAPTIONS.items():
        speed, cpu = (middle(found, way, what) for what in ("rows_a_second", "cpu_a_million"))
        if speed is not None:
            yield f"| {first}{caption} | {cpu:.2f} | {speed:,.0f} |"
            first = ""


def _others(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what each part measured that no goal shows."""
    if commits := document["commits"]:
        last = commits["looks"][-1]
        yield (
            f"- {len(commits['commits']):,} commits took {commits['seconds']:.0f} s and left {last['metadata_bytes'] / 1e6:.1f} MB of metadata in "
            f"{last['metadata_files']} files, with the {last['snapshots']} snapshots that are kept."
        )
    if many := document["many"]:
        said = (
            f"{one['way']} {one['wall']:.1f} s and {without_broker(one['cpu']):.1f} CPU-s" for one in many["measured"]
        )
        yield f"- 50 small pipelines: {', '.join(said)}."


def _asked_for(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures of parts that a page gets by hand."""
    for found in document["aging"]:
        reads = (f"{what} {found['aged'][what]:.2f} s (fresh {fresh:.2f})" for what, fresh in found["fresh"].items())
        yield f"- {len(found['commits']):,} batches of changes, v{found['version']}: {', '.join(reads)}"
    if partitions := document["partitions"]:
        for one in (*partitions["batches"], *partitions["landings"]):
            of_what = f"{one['partitions']:,} partitions" if "partitions" in one else f"a batch, {one['files']} files"
            yield f"- {of_what}: {without_broker(one['cpu']):.1f} CPU-s, {one['wall']:.1f} s"
    for found in document["requests"]:
        counts, prices = billed_of_a_commit(found), price_table()
        yield (
            f"- {found['case']}, a commit: {counts[WRITES]:.1f} writes, {counts[READS]:.1f} reads, {counts[GLUE]:.1f} Glue requests; "
            f"{in_series(found):.0f} wait for one another; {prices.currency} {price(counts, prices) * 1000:.3f} for 1,000 commits"
        )


def _batch(ways: Sequence[str], batches: Sequence[Mapping[str, Any]], table: tuple[int, int]) -> str:
    ours = {one["round"]: one for one in batches if one["way"] == "ours"}
    cells = []
    for way in ways:
        found = counted(batches, way)
        if not found:
            cells.append("–")
            continue
        values = [(without_broker(one["cpu"]), one["wall"], one["bytes"]) for one in found]
        cpu, wall, written = (median(column) for column in zip(*values, strict=True))
        ratio = median(value[1] / ours[one["round"]]["wall"] for value, one in zip(values, found, strict=True))
        said = f"{cpu:.1f}, {wall:.1f}, {written / 1e6:.1f}"
        smaller = median(one["bytes"] / ours[one["round"]]["bytes"] for one in found)
        more = f" and {smaller:.2f}" if way == "merge" else ""
        cells.append(said if way == "ours" else f"{said}: {ratio:.2f}{more}")
    return f"| {table[0] // 1_000_000} M, v{table[1]} | {' | '.join(cells)} |"


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
