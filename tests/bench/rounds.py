"""The rounds of a race: every contender of a shape lands the same topic in turn, repeatedly, with warm sessions.

Comparisons are within one round: other load slows all contenders of a round alike, and
the median summarises the ratios of the rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from tests.bench.environment import BenchEnvironment, Contender, tell
from tests.bench.topics import Topic

PARTS = ("read", "decode", "files")
COUNTS_NOTHING = ("read", "decode")  # these leave no files that could be counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The contenders of a shape, the rows of the timed topic and of the warm-up topic, and the number of rounds."""

    shape: str
    ways: tuple[str, ...]
    rows: int
    warm_rows: int
    rounds: int
    warm_up: int = 2

    def only(self, ways: Sequence[str]) -> Race:
        """Return the race with the named contenders, all by default."""
        return replace(self, ways=tuple(way for way in self.ways if not ways or way in ways))

    def sized(self, scale: float, rounds: int) -> Race:
        """Return the race with topics `scale` times as large, and with `rounds` rounds if not 0."""
        rows, warm_rows = int(self.rows * scale), int(self.warm_rows * scale)
        return replace(self, rows=rows, warm_rows=warm_rows, rounds=rounds or self.rounds)


@dataclass(frozen=True, slots=True)
class Figure:
    """One landing: its round, wall seconds, CPU-seconds of all processes except the broker, and by process."""

    way: str
    round: int
    rows: int
    wall: float
    cpu: float
    by_process: Mapping[str, float]
    by_thread: Mapping[str, float]
    peak_rss_mb: Mapping[str, float]

    @property
    def cpu_a_million(self) -> float:
        """CPU-seconds for a million rows."""
        return self.cpu * 1e6 / self.rows

    @property
    def rows_a_second(self) -> float:
        """Rows a second on the wall."""
        return self.rows / self.wall


def host(way: str) -> str:
    """Return the process that a contender runs in. The parts share one."""
    return "parts" if way in PARTS else way


def run(ground: BenchEnvironment, race: Race) -> list[Figure]:
    """Fill the topics, warm up every contender, and land in turns. Each landing is checked, then dropped."""
    tell(f"{race.shape}: {', '.join(race.ways)}")
    small = ground.topic(race.shape, f"{race.shape}_warm", race.warm_rows)
    timed = ground.topic(race.shape, race.shape, race.rows)
    figures: list[Figure] = []
    with ExitStack() as left:
        up: dict[str, Contender] = {}
        for name in dict.fromkeys(map(host, race.ways)):
            up[name] = left.enter_context(ground.served(ground.job(name, f"{race.shape}_{name}", timed)))
        for number in range(-race.warm_up, race.rounds):
            topic = small if number < 0 else timed
            if number == -1 and "n0" not in race.ways:
                topic = timed
            for way in race.ways:
                figure = _land(ground, up[host(way)], way, topic, number)
                if number >= 0:
                    figures.append(figure)
                    tell(
                        f"  round {number + 1} {way:14} {figure.wall:6.2f} s, {figure.rows_a_second:9,.0f} rows/s, "
                        f"{figure.cpu_a_million:6.2f} CPU-s/M"
                    )
    ground.drop_topics(small, timed)
    return figures


def _land(ground: BenchEnvironment, contender: Contender, way: str, topic: Topic, number: int) -> Figure:
    table = f"{contender.job.table}_{way}_{number + 9}"
    used = contender.land(way, topic, table)
    if used["counted"] is not None and used["counted"] != topic.rows:
        raise RuntimeError(f"{way} says it wrote {used['counted']} rows of {topic.rows}")
    if host(way) != "parts":
        ground.check(table, topic, state=way == "state")
    ground.drop(table)
    cpu = dict(used["cpu"])
    return Figure(
        way=way,
        round=number,
        rows=topic.rows,
        wall=used["wall"],
        cpu=sum(seconds for name, seconds in cpu.items() if name != "broker"),
        by_process=cpu,
        by_thread=used["threads"],
        peak_rss_mb=used["peak_rss_mb"],
    )


def of(figures: Sequence[Figure], way: str) -> list[Figure]:
    """Return the figures of one contender, by round."""
    return sorted((figure for figure in figures if figure.way == way), key=lambda figure: figure.round)


def middle(figures: Sequence[Figure], way: str, what: str) -> float | None:
    """Return the median of one figure of a contender; None if it did not run."""
    found: list[Any] = [getattr(figure, what) for figure in of(figures, way)]
    return float(median(found)) if found else None


def ratio(figures: Sequence[Figure], over: Sequence[str], under: str, what: str) -> float | None:
    """Return the median over the rounds of the ratio of `over` (their sum) to `under`; None if one did not run."""
    above = [of(figures, way) for way in over]
    below = of(figures, under)
    if not below or not all(above):
        return None
    by_round = zip(*above, below, strict=True)
    return float(median(sum(getattr(f, what) for f in row[:-1]) / getattr(row[-1], what) for row in by_round))
