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
from tests.bench.shapes import SHAPES, Format
from tests.bench.topics import Topic

PARTS = ("read", "decode", "files")
COUNTS_NOTHING = ("read", "decode")  # these leave no files that could be counted
PEERS = ("flink", "flink_bare", "connect")


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """The contenders of a shape, the rows of the timed topic and of the warm-up topic, and the number of rounds."""

    shape: str
    ways: tuple[str, ...]
    rows: int
    rounds: int
    warm_rows: int = 0
    warm_up: int = 2
    has_cold: bool = False
    """Whether each contender's first landing counts, from the start of its process. It is its first round of warm-up, so there is
    no warm-up topic.
    """

    def only(self, ways: Sequence[str]) -> Race:
        """Return the race with the named contenders, all by default."""
        return replace(self, ways=tuple(way for way in self.ways if not ways or way in ways))

    def sized(self, scale: float, rounds: int) -> Race:
        """Return the race with topics `scale` times as large, and with `rounds` rounds if not 0."""
        rows, warm_rows = int(self.rows * scale), int(self.warm_rows * scale)
        return replace(self, rows=rows, warm_rows=warm_rows, rounds=rounds or self.rounds)


@dataclass(frozen=True, slots=True)
class Figure:
    """One landing: its round, wall seconds, CPU-seconds of all processes except the broker, and by process.

    A cold one is measured from the start of the contender's process.
    """

    way: str
    round: int
    rows: int
    wall: float
    cpu: float
    by_process: Mapping[str, float]
    by_thread: Mapping[str, float]
    peak_rss_mb: Mapping[str, float]
    is_cold: bool = False

    @property
    def cpu_a_million(self) -> float:
        """CPU-seconds for a million rows."""
        return self.cpu * 1e6 / self.rows

    @property
    def rows_a_second(self) -> float:
        """Rows a second on the wall."""
        return self.rows / self.wall


def host(way: str) -> str:
    """Return the process that a contender runs in. The parts share one, and so do the ways of Flink."""
    return "parts" if way in PARTS else way.removesuffix("_bare")


def is_framed(way: str, shape: str) -> bool:
    """Return whether a contender reads values that begin with a schema id."""
    return way not in PEERS or SHAPES[shape].format is not Format.JSON


def run(ground: BenchEnvironment, race: Race) -> list[Figure]:
    """Fill the topics, warm up every contender, and land in turns. Each landing is checked, then dropped.

    All processes start at once, but for those of which the first landing counts: these start one after another.
    """
    tell(f"{race.shape}: {', '.join(race.ways)}")
    small = {} if race.has_cold else _topics(ground, race, f"{race.shape}_warm", race.warm_rows)
    timed = _topics(ground, race, race.shape, race.rows)
    figures: list[Figure] = []
    with ExitStack() as left:
        up: dict[str, Contender] = {}
        for way in race.ways:
            topic = timed[is_framed(way, race.shape)]
            label = f"{race.shape}_{way}"
            if host(way) not in up:
                up[host(way)] = left.enter_context(ground.served(ground.job(host(way), label, topic)))
                if race.has_cold:
                    figures.append(_said(land(ground, up[host(way)], way, topic, -race.warm_up, is_cold=True)))
            elif race.has_cold:  # the process has landed before
                with ground.served(ground.job(host(way), label, topic)) as other:
                    figures.append(_said(land(ground, other, way, topic, -race.warm_up, is_cold=True)))
        for contender in up.values():
            contender.await_ready()  # none warms up beside a start
        first = -race.warm_up + (1 if race.has_cold else 0)
        for number in range(first, race.rounds):
            topics = timed if number >= 0 or race.has_cold or (number == -1 and "n0" not in race.ways) else small
            for way in race.ways:
                figure = land(ground, up[host(way)], way, topics[is_framed(way, race.shape)], number)
                if number >= 0:
                    figures.append(_said(figure))
        for contender in up.values():
            contender.end()
    ground.drop_topics(*small.values(), *timed.values())
    return figures


def _topics(ground: BenchEnvironment, race: Race, name: str, rows: int) -> dict[bool, Topic]:
    """Return the filled topics, by whether their values are framed: as the contenders read them."""
    kinds = sorted({is_framed(way, race.shape) for way in race.ways})
    return {
        framed: ground.topic(race.shape, name if framed else f"{name}_unframed", rows, is_framed=framed)
        for framed in kinds
    }


def _said(figure: Figure) -> Figure:
    tell(
        f"  {'cold   ' if figure.is_cold else f'round {figure.round + 1}'} {figure.way:14} {figure.wall:6.2f} s, "
        f"{figure.rows_a_second:9,.0f} rows/s, {figure.cpu_a_million:6.2f} CPU-s/M"
    )
    return figure


def land(
    ground: BenchEnvironment, contender: Contender, way: str, topic: Topic, number: int, *, is_cold: bool = False
) -> Figure:
    """Let a contender land a topic into a new table, check it, and drop it."""
    table = f"{contender.job.table}_{way}_{number + 9}"
    used = contender.land(way, topic, table)
    if used["counted"] is not None and used["counted"] != topic.rows:
        raise RuntimeError(f"{way} says it wrote {used['counted']} rows of {topic.rows}")
    if host(way) != "parts":
        ground.check(table, topic, state=way == "state")
    ground.drop(table)
    used |= used["since_start"] if is_cold else {}
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
        is_cold=is_cold,
    )


def of(figures: Sequence[Figure], way: str, *, is_cold: bool = False) -> list[Figure]:
    """Return the warm or the cold figures of one contender, by round."""
    mine = (figure for figure in figures if (figure.way, figure.is_cold) == (way, is_cold))
    return sorted(mine, key=lambda figure: figure.round)


def middle(figures: Sequence[Figure], way: str, what: str, *, is_cold: bool = False) -> float | None:
    """Return the median of one figure of a contender; None if it did not run."""
    found: list[Any] = [getattr(figure, what) for figure in of(figures, way, is_cold=is_cold)]
    return float(median(found)) if found else None


def ratio(figures: Sequence[Figure], over: Sequence[str], under: str, what: str) -> float | None:
    """Return the median over the rounds of the ratio of `over` (their sum) to `under`; None if one did not run."""
    above = [of(figures, way) for way in over]
    below = of(figures, under)
    if not below or not all(above):
        return None
    by_round = zip(*above, below, strict=True)
    return float(median(sum(getattr(f, what) for f in row[:-1]) / getattr(row[-1], what) for row in by_round))
