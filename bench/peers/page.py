"""The page of the peers, from the figures of one run: `python -m bench.peers.page RESULTS`.

It replaces a part of `docs/benchmarks.md`, between two markers, and the plot beside it. No figure is written by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.page_part import PAGE, PagePart
from bench.peers.left_out import LEFT_OUT
from bench.peers.races import CANNOT, CAPTIONS
from bench.peers.state_page import state_section
from bench.peers.trickle_race import trickle_section
from bench.rounds import Figure, middle, of, ratio
from bench.shapes import SHAPES

PLOT = PAGE.with_name("benchmarks-peers.svg")
PART = PagePart("peers", "bench.peers.page")
_HEAD = (
    "| | CPU-s per million rows | wall s | rows/s | cold: CPU-s per million rows | cold: wall s |",
    "|---|---|---|---|---|---|",
)


def figures_of(document: Mapping[str, Any]) -> dict[str, list[Figure]]:
    """Return the figures of a run's document, by shape."""
    return {shape: [Figure(**figure) for figure in found] for shape, found in document["races"].items()}


def section(document: Mapping[str, Any]) -> str:
    """Return the part of the page that one run's document makes."""
    races, state = figures_of(document), state_section(document.get("state"))
    state += trickle_section(document.get("trickles"))
    if not races:
        return "\n".join(state)
    lines = [
        _introduction(document["machine"], races),
        "",
        *_HEAD,
        *(line for shape, figures in races.items() for line in _rows(shape, figures)),
        "",
        *_compared(races),
        "",
        f"![CPU-seconds per million rows]({PLOT.name})",
        "",
        LEFT_OUT,
        *state,
    ]
    return "\n".join(lines)


def _introduction(machine: Mapping[str, Any], races: Mapping[str, Sequence[Figure]]) -> str:
    versions = machine["versions"]
    rows = ", ".join(f"{figures[0].rows:,} of {SHAPES[shape].says}" for shape, figures in races.items())
    rounds = sorted({len(of(figures, figures[0].way)) for figures in races.values()})
    return (
        f"One `make bench-peers` on {machine['cores']} cores ({machine['memory_gib']} GiB), {machine['date'][:10]}: "
        f"{machine['seconds'] / 60:.0f} minutes, load average {machine['load'][0]:.1f} at its end. Flink {versions['flink']}, "
        f"Kafka Connect {versions['connect']}, both with Iceberg {versions['iceberg']}; Frazil {machine['version']}.\n"
        f"Rows: {rows}. Medians of {' to '.join(str(number) for number in dict.fromkeys((rounds[0], rounds[-1])))} counted rounds; "
        "a cold figure is the first landing of a process, from its start."
    )


def _rows(shape: str, figures: Sequence[Figure]) -> Iterator[str]:
    first = f"**{SHAPES[shape].says}**: "
    for way, caption in CAPTIONS.items():
        if why := CANNOT.get((shape, way)):
            yield f"| {first}{caption.partition(',')[0]} | cannot: {why} | | | | |"
        elif of(figures, way):
            yield f"| {first}{caption} | {' | '.join(_cells(figures, way))} |"
        else:
            continue
        first = ""


def _cells(figures: Sequence[Figure], way: str) -> Iterator[str]:
    for what, is_cold, form in (
        ("cpu_a_million", False, ".1f"),
        ("wall", False, ".1f"),
        ("rows_a_second", False, ",.0f"),
        ("cpu_a_million", True, ".1f"),
        ("wall", True, ".1f"),
    ):
        found = middle(figures, way, what, is_cold=is_cold)
        yield "–" if found is None else format(found, form)


def _compared(races: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    """Yield a line for each shape: the CPU of Frazil with the columns of the peers, over theirs, within a round."""
    for shape, figures in races.items():
        found = {peer: ratio(figures, ["ours_as_spike"], peer, "cpu") for peer in ("flink", "connect")}
        said = [f"{value:.2f} of that of {CAPTIONS[peer].partition(',')[0]}" for peer, value in found.items() if value]
        eight = ratio(figures, ["ours"], "flink", "cpu")
        also = "" if eight is None else f" With its eight columns it is {eight:.2f} of that of Flink SQL with four."
        if said:
            yield f"- {SHAPES[shape].says}: with the same four columns, Frazil's CPU is {' and '.join(said)}.{also}"


def main() -> None:
    document = json.loads(Path(sys.argv[1]).read_text())
    from bench.peers.plot import plot

    PART.write(section(document))
    if document["races"]:
        plot(figures_of(document), PLOT)


if __name__ == "__main__":
    main()
