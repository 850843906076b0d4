"""The race of state tables: a topic of keyed records is loaded, then changed by one batch, then the table is read.

Each contender has a topic of its own with the same records, because Flink's is filled with the batch while its job runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyiceberg.exceptions import NoSuchTableError

from bench.accounting import without_broker
from bench.environment import BenchEnvironment, Contender, tell
from bench.fill import PARTITIONS, make
from bench.peers.other_reader import ENGINES, CannotReadError, read
from bench.peers.state_topics import SHAPE, changes, fill_batch, fill_load, staging_of
from bench.shapes import SHAPES
from bench.topics import Topic

KEYS, WARM_KEYS, ROUNDS = 300_000, 60_000, 2
HOSTS = {"flink_upsert": "flink_state", "spark_merge": "merge_state", "frazil_state": "frazil_state"}
"""The process of each contender."""
FILLS_ITSELF = ("flink_upsert",)
LOAD, BATCH = "load", "batch"
SPARK = "spark"
"""The reader that is warm; the others are `ENGINES`."""


@dataclass(frozen=True, slots=True)
class StateFigure:
    """One step of a contender: the load, the batch, or a reader's scan behind it. CPU-seconds are without the broker's.

    `bytes` are those of new files of rows and deletes, `deletes` the entries of the table's delete files behind it. `refused` is what a
    reader says that cannot read the table.
    """

    way: str
    step: str
    round: int
    wall: float = 0.0
    cpu: float = 0.0
    bytes: int = 0
    deletes: int = 0
    refused: str = ""


def run(here: BenchEnvironment, *, ways: Sequence[str], scale: float, rounds: int) -> dict[str, Any]:
    """Race, and return the document of all figures. Raises if a table does not hold the state that its records leave."""
    chosen = [way for way in HOSTS if not ways or way in ways]
    tell(f"state tables: {', '.join(chosen)}")
    figures: list[StateFigure] = []
    with ExitStack() as left:
        any_topic = Topic(name="state", shape=SHAPE, rows=0, partitions=PARTITIONS, schema_id=0)
        up = {
            name: left.enter_context(here.served(here.job(name, f"state_{name}", any_topic, wants={"seed": here.seed})))
            for name in (*(HOSTS[way] for way in chosen), "state_reader")
        }
        last = (rounds or ROUNDS) - 1
        for number in range(-2, last + 1):
            keys = int((WARM_KEYS if number == -2 else KEYS) * scale) // PARTITIONS * PARTITIONS
            for way in chosen:
                found = _steps(here, up, way, keys, number, is_last=number == last)
                figures += found if number >= 0 else []
    topic = replace(any_topic, keys=int(KEYS * scale) // PARTITIONS * PARTITIONS, is_scattered=True)
    return {"changes": asdict(changes(topic)), "figures": [asdict(figure) for figure in figures]}


def _steps(
    here: BenchEnvironment, up: Mapping[str, Contender], way: str, keys: int, number: int, *, is_last: bool
) -> list[StateFigure]:
    contender, bootstrap = up[HOSTS[way]], here.world.bootstrap
    table = f"{contender.job.table}_{number + 2}"
    topic = make(here.world, SHAPES[SHAPE], f"{way}_{number + 2}", keys)
    topic = replace(topic, keys=keys, is_scattered=True)
    wanted = changes(topic)
    fill_load(bootstrap, topic, seed=here.seed)
    land = partial(_land, here, contender, topic, table)
    found = [replace(land(LOAD, wanted.load), way=way, round=number)]
    if way not in FILLS_ITSELF:
        fill_batch(bootstrap, topic, seed=here.seed)
    found.append(replace(land(BATCH, wanted.batch), way=way, round=number))
    contender.land("end", topic, table)
    scanned = up["state_reader"].land("scan", topic, table)
    found.append(StateFigure(way, SPARK, number, scanned["wall"], without_broker(scanned["cpu"])))
    if is_last:  # DuckDB takes minutes of CPU for some hundred thousand equality deletes
        found += (replace(one, way=way, round=number) for one in _others(here, table, (wanted.live, wanted.ids)))
    here.drop(table, staging_of(table))
    here.drop_topics(topic)
    tell(
        f"  {f'round {number + 1}' if number >= 0 else 'warm up'} {way:12} "
        + ", ".join(_said(figure) for figure in found)
    )
    return found


def _land(
    here: BenchEnvironment, contender: Contender, topic: Topic, table: str, step: str, wanted: int
) -> StateFigure:
    before = _files(here, table)
    used = contender.land(step, topic, table)
    if used["counted"] != wanted:
        raise RuntimeError(f"{table}, {step}: {used['counted']} records are counted, not {wanted}")
    written = sum(size for file, size in _files(here, table).items() if file not in before)
    return StateFigure("", step, 0, used["wall"], without_broker(used["cpu"]), written, _deletes(here, table))


def _deletes(here: BenchEnvironment, table: str) -> int:
    """Return the entries of a table's delete files: positions, and values of keys."""
    snapshot = here.catalog().load_table(table).current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    return sum(int(snapshot.summary[f"total-{kind}-deletes"] or 0) for kind in ("equality", "position"))


def _files(here: BenchEnvironment, table: str) -> dict[Path, int]:
    """Return the files of rows and deletes of a table and of its staging, with their sizes."""
    found: dict[Path, int] = {}
    for name in (table, staging_of(table)):
        try:
            folder = Path(urlparse(here.catalog().load_table(name).location()).path) / "data"
        except NoSuchTableError:
            continue
        found |= {file: file.stat().st_size for file in folder.rglob("*.*") if file.name[0] != "."}
    return found


def _others(here: BenchEnvironment, table: str, wanted: tuple[int, int]) -> Iterator[StateFigure]:
    """Read all columns with other engines. An engine that refuses the table has no figure, and says why."""
    metadata = here.catalog().load_table(table).metadata_location
    yield from (_read(engine, metadata, wanted) for engine in ENGINES)


def _read(engine: str, metadata: str, wanted: tuple[int, int]) -> StateFigure:
    try:
        found = read(engine, metadata)
    except CannotReadError as refused:
        return StateFigure("", engine, 0, refused=str(refused))
    figure = StateFigure("", engine, 0, found["wall"], found["cpu"])
    if (found["rows"], found["ids"]) != wanted:
        return replace(figure, refused=f"reads {found['rows']:,} rows of {wanted[0]:,}")
    return figure


def _said(figure: StateFigure) -> str:
    if figure.refused:
        return f"{figure.step}: {figure.refused}"
    written = f" {figure.bytes / 1e6:.1f} MB" if figure.bytes else ""
    return f"{figure.step} {figure.wall:.2f} s {figure.cpu:.2f} CPU-s{written}"
