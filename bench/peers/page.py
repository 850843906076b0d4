"""The page of the peers, from the figures of one run: `python -m bench.peers.page RESULTS`.

It replaces a part of `docs/benchmarks.md`, between two markers, and the plot beside it. No figure is written by hand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures_page import PAGE, PagePart
from bench.peers.races import CANNOT
from bench.peers.state_page import state_section
from bench.rounds import Figure, middle, of, ratio
from bench.shapes import SHAPES

PLOT = PAGE.with_name("benchmarks-peers.svg")
PART = PagePart("peers", "bench.peers.page")
_COLUMNS = {
    "flink": "Flink SQL",
    "connect": "Kafka Connect",
    "ours_as_spike": "Frazil",
    "ours": "Frazil, eight columns",
}


def figures_of(document: Mapping[str, Any]) -> dict[str, list[Figure]]:
    """Return the figures of a run's document, by shape."""
    return {shape: [Figure(**figure) for figure in found] for shape, found in document["races"].items()}


def section(document: Mapping[str, Any]) -> str:
    """Return the part of the page that one run's document makes."""
    races, state = figures_of(document), state_section(document.get("state"))
    if not races:
        return "\n".join(state)
    lines = [
        _introduction(document["machine"], races),
        "",
        *_table(races),
        *_bare_and_missing(races),
        "",
        *_compared(races),
        "",
        f"![CPU-seconds per million rows]({PLOT.name})",
        *state,
    ]
    return "\n".join(lines)


def _introduction(machine: Mapping[str, Any], races: Mapping[str, Sequence[Figure]]) -> str:
    versions = machine["versions"]
    rounds = sorted({len(of(figures, figures[0].way)) for figures in races.values()})
    return (
        f"`make bench-peers`, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['date'][:10]}: "
        f"{machine['seconds'] / 60:.0f} minutes, load average {machine['load'][0]:.1f} at its end. Flink {versions['flink']}, "
        f"Kafka Connect {versions['connect']}, both with Iceberg {versions['iceberg']}; Frazil {machine['version']}. "
        f"Medians of {' to '.join(str(number) for number in dict.fromkeys((rounds[0], rounds[-1])))} counted rounds. "
        "All tables have four metadata columns, the last ones Frazil's eight."
    )


def _table(races: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    yield f"| CPU-s per million rows, rows/s (cold: CPU-s, s) | {' | '.join(_COLUMNS.values())} |"
    yield "|---" * (len(_COLUMNS) + 1) + "|"
    for shape, figures in races.items():
        cells = ("cannot" if (shape, way) in CANNOT else _cell(figures, way) for way in _COLUMNS)
        yield f"| {SHAPES[shape].says} ({figures[0].rows:,}) | {' | '.join(cells)} |"
    yield ""


def _cell(figures: Sequence[Figure], way: str) -> str:
    """Return CPU-seconds per million rows and rows a second; then those CPU-seconds and the seconds from a cold start."""
    if not of(figures, way):
        return "–"
    warm = f"{middle(figures, way, 'cpu_a_million'):.1f}, {middle(figures, way, 'rows_a_second'):,.0f}"
    if not of(figures, way, is_cold=True):
        return warm
    return f"{warm} ({middle(figures, way, 'cpu_a_million', is_cold=True):.1f}, {middle(figures, way, 'wall', is_cold=True):.1f})"


def _bare_and_missing(races: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    """Yield a line for each shape that Flink landed without metadata columns, and for each that a peer cannot land."""
    for shape, figures in races.items():
        if of(figures, "flink_bare"):
            yield f"- {SHAPES[shape].says}, by Flink SQL without metadata columns: {_cell(figures, 'flink_bare')}."
    for (shape, way), why in CANNOT.items():
        if shape in races:
            yield f"- {SHAPES[shape].says}, by {_COLUMNS[way]}: {why}."


def _compared(races: Mapping[str, Sequence[Figure]]) -> Iterator[str]:
    """Yield a table: the CPU of Frazil, as a share of that of the peers, within a round."""
    yield "| Frazil's CPU, as a share of that of | Flink SQL | Kafka Connect | Flink SQL, by Frazil's eight columns |"
    yield "|---|---|---|---|"
    pairs = (("ours_as_spike", "flink"), ("ours_as_spike", "connect"), ("ours", "flink"))
    for shape, figures in races.items():
        shares = [ratio(figures, way, peer, "cpu") for way, peer in pairs]
        if any(shares):
            cells = ("–" if share is None else f"{share:.2f}" for share in shares)
            yield f"| {SHAPES[shape].says} | {' | '.join(cells)} |"


def main() -> None:
    document = json.loads(Path(sys.argv[1]).read_text())
    from bench.peers.plot import plot

    PART.write(section(document))
    if document["races"]:
        plot(figures_of(document), PLOT)


if __name__ == "__main__":
    main()
