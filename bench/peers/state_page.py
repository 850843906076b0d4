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
_OURS = "frazil_state"
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
LEFT_OUT = """- Each contender has a topic of its own with the same records. Every table is checked after the changes: rows, keys and the sum of the ids of the rows. \
The run fails if one is wrong.
- Reads are of all columns of all rows, by a warm process of two cores, before any compaction; DuckDB and PyIceberg read once, in a new process each, whose start is not counted. MB are new files of rows and deletes; staging is included. \
Deletes are the entries of delete files that a reader takes into account: keys for Flink, positions for Frazil.
- Spark loads with the `MERGE` too, into an empty table.
- Flink keeps the last row of each key in its state, on the heap, and a checkpoint every 5 s writes all of it. Its batch is produced while the job runs; the wall time \
includes that, and the wait for the checkpoint.
- Flink's and Spark's tables have four metadata columns and the key, Frazil's has its eight. All are tables of format version 2.
- Kafka Connect is not in this race. Settings of upserts are [reported](https://github.com/apache/iceberg/issues/17542) to have no effect in its sink."""


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
        f"A load of {changes.load:,} nested orders, Avro, each of another key; then one batch of {changes.batch:,} records: {changes.updates:,} updates, "
        f"{changes.inserts:,} inserts and {changes.deletes:,} deletes of random keys. They leave {changes.live:,} rows. Medians of "
        f"{rounds} counted {'round' if rounds == 1 else 'rounds'}.",
        "",
        *_HEAD,
        *(
            f"| {caption} | {' | '.join(_cells(figures, way))} |"
            for way, caption in CAPTIONS.items()
            if _ran(figures, way)
        ),
        "",
        *_compared(figures),
        *_refused(figures),
        LEFT_OUT,
    ]


def _ran(figures: Sequence[StateFigure], way: str) -> bool:
    return any(figure.way == way for figure in figures)


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


def _compared(figures: Sequence[StateFigure]) -> Iterator[str]:
    """Yield a line for each other contender: what it takes over what Frazil takes, within a round."""
    for way in CAPTIONS:
        ratios = {
            says: _ratio(figures, way, step, what)
            for says, step, what in (
                ("for the load", LOAD, "cpu"),
                ("for the changes", BATCH, "cpu"),
                ("when Spark reads the table", SPARK, "cpu"),
            )
        }
        said = [f"{value:.1f} times Frazil's {says}" for says, value in ratios.items() if value is not None]
        if way != _OURS and said:
            yield f"- {_WAY[way]}: the CPU is {_listed(said)}."


def _ratio(figures: Sequence[StateFigure], way: str, step: str, what: str) -> float | None:
    over, under = _of(figures, way, step), _of(figures, _OURS, step)
    if not over or not under:
        return None
    pairs = zip(over, under, strict=True)
    return median(getattr(theirs, what) / max(getattr(ours, what), 0.01) for theirs, ours in pairs)


def _refused(figures: Sequence[StateFigure]) -> Iterator[str]:
    """Yield a line for each reader of a table that it cannot read."""
    said = {(figure.way, figure.step): figure.refused for figure in figures if figure.refused}
    readers = {DUCKDB: "DuckDB", PYICEBERG: "PyIceberg"}
    for (way, reader), words in said.items():
        yield f"- {readers[reader]} cannot read the table of {_WAY[way]}: “{words.partition(': http')[0]}”"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
