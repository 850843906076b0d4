"""The part of the peers' page about state tables, from the figures of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from bench.peers.other_reader import DUCKDB, PYICEBERG
from bench.peers.state_race import BATCH, LOAD, SPARK, StateFigure
from bench.peers.state_topics import Changes

CAPTIONS = {
    "flink_upsert": "Flink SQL: upserts by equality deletes",
    "spark_merge": "Spark, by hand: staged, then copy-on-write `MERGE`",
    "frazil_state": "Frazil: `Upsert()`",
}
_HEAD = (
    "| | load: CPU-s | load: wall s | changes: CPU-s | changes: wall s | changes: MB | deletes | Spark reads: CPU-s | DuckDB reads: CPU-s "
    "| PyIceberg reads: CPU-s |",
    "|---|---|---|---|---|---|---|---|---|---|",
)
_COLUMNS = (
    (LOAD, "cpu"),
    (LOAD, "wall"),
    (BATCH, "cpu"),
    (BATCH, "wall"),
    (BATCH, "bytes"),
    (BATCH, "deletes"),
    (SPARK, "cpu"),
    (DUCKDB, "cpu"),
    (PYICEBERG, "cpu"),
)
_WAY = {way: caption.partition(":")[0].partition(",")[0] for way, caption in CAPTIONS.items()}


def figures_of(state: Mapping[str, Any]) -> list[StateFigure]:
    """Return the figures of a run's document."""
    return [StateFigure(**figure) for figure in state["figures"]]


def state_section(state: Mapping[str, Any] | None) -> list[str]:
    """Return the lines of the part; none if the race was not run."""
    if not state:
        return []
    figures, changes = figures_of(state), Changes(**state["changes"])
    rounds = len({figure.round for figure in figures})
    return [
        "",
        "### State tables",
        f"A load of {changes.load:,} nested orders, Avro, each of another key; then a batch of {changes.batch:,} records: {changes.updates:,} updates, "
        f"{changes.inserts:,} inserts and {changes.deletes:,} deletes of random keys, which leave {changes.live:,} rows. Medians of "
        f"{rounds} counted {'round' if rounds == 1 else 'rounds'}.",
        "",
        *_HEAD,
        *(
            f"| {caption} | {' | '.join(_cells(figures, way))} |"
            for way, caption in CAPTIONS.items()
            if any(figure.way == way for figure in figures)
        ),
        "",
        *_refused(figures),
    ]


def _of(figures: Sequence[StateFigure], way: str, step: str) -> list[StateFigure]:
    mine = (figure for figure in figures if (figure.way, figure.step) == (way, step))
    return sorted(mine, key=lambda figure: figure.round)


def _cells(figures: Sequence[StateFigure], way: str) -> Iterator[str]:
    for step, what in _COLUMNS:
        found = _of(figures, way, step)
        if not found:
            yield "–"
        elif any(figure.refused for figure in found):
            yield "cannot"
        else:
            value = median(getattr(figure, what) for figure in found)
            yield {"bytes": f"{value / 1e6:.1f}", "deletes": f"{value:,.0f}"}.get(what, f"{value:.2f}")


def _refused(figures: Sequence[StateFigure]) -> Iterator[str]:
    """Yield a line for each reader of a table that it cannot read."""
    said = {(figure.way, figure.step): figure.refused for figure in figures if figure.refused}
    readers = {DUCKDB: "DuckDB", PYICEBERG: "PyIceberg"}
    for (way, reader), words in said.items():
        yield f"- {readers[reader]} cannot read the table of {_WAY[way]}: “{words.partition(': http')[0]}”"
