"""The rounds of a race: every contender of a shape lands the same topic in turn, repeatedly, with warm sessions.

Comparisons are within one round: other load slows all contenders of a round alike, and
the median summarises the ratios of the rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from bench.accounting import without_broker
from bench.environment import NAMESPACE, BenchEnvironment, Contender, tell
from bench.sessions import Sessions
from bench.shapes import SHAPES, Format
from bench.topics import Topic

WRITE_MODES = ("ours", "state", "changelog", "filtered", "selected", "masked")
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

    def only(self, ways: Sequence[str]) -> Race:
        """Return the race with the named contenders, all by default."""
        return replace(self, ways=tuple(way for way in self.ways if way in (ways or self.ways)))

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
    """Return the process that a contender runs in. The write modes share one, and so do the ways of Flink."""
    return "ours" if way in WRITE_MODES else way.removesuffix("_bare")


def is_framed(way: str, shape: str) -> bool:
    """Return whether a contender reads values that begin with a schema id."""
    return way not in PEERS or SHAPES[shape].format is not Format.JSON


def run(ground: BenchEnvironment, race: Race, sessions: Sessions) -> list[Figure]:
    """Fill the topics, warm up every contender, and land in turns. Each landing is checked, then dropped."""
    tell(f"{race.shape}: {', '.join(race.ways)}")
    small = _topics(ground, race, f"{race.shape}_warm", race.warm_rows)
    timed = _topics(ground, race, race.shape, race.rows)
    up = sessions.of({way: (host(way), timed[is_framed(way, race.shape)]) for way in race.ways})
    figures: list[Figure] = []
    for number in range(-race.warm_up, race.rounds):
        is_small = number < -1 or (number < 0 and "n0" in race.ways)
        figures += _round(ground, race, up, small if is_small else timed, number)
    ground.drop_topics(*small.values(), *timed.values())
    return figures


def run_from_cold(ground: BenchEnvironment, race: Race) -> list[Figure]:
    """Do the same with processes of this race alone, and count the first landing of each, too, from the start of the process.

    It is the first round of warm-up, so there is no warm-up topic. Processes start one after another.
    """
    tell(f"{race.shape}: {', '.join(race.ways)}")
    timed = _topics(ground, race, race.shape, race.rows)
    figures: list[Figure] = []
    with ExitStack() as left:
        up: dict[str, Contender] = {}
        for way in race.ways:
            topic, name = timed[is_framed(way, race.shape)], host(way)
            job = ground.job(name, f"{race.shape}_{way}", topic)
            if name in up:  # the process has landed before
                with ground.served(job) as other:
                    figures.append(_said(land(ground, other, way, topic, -race.warm_up, is_cold=True)))
            else:
                up[name] = left.enter_context(ground.served(job))
                figures.append(_said(land(ground, up[name], way, topic, -race.warm_up, is_cold=True)))
        for number in range(1 - race.warm_up, race.rounds):
            figures += _round(ground, race, up, timed, number)
        for contender in up.values():
            contender.end()
    ground.drop_topics(*timed.values())
    return figures


def _round(
    ground: BenchEnvironment, race: Race, up: Mapping[str, Contender], topics: Mapping[bool, Topic], number: int
) -> Iterator[Figure]:
    """Let each contender land in turn. The figures are empty for a round of warm-up, whose number is negative."""
    for way in race.ways:
        figure = land(ground, up[host(way)], way, topics[is_framed(way, race.shape)], number)
        if number >= 0:
            yield _said(figure)


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
    table = f"{NAMESPACE}.{topic.shape}_{way}_{number + 9}"
    used = contender.land(way, topic, table)
    if used["counted"] is not None and used["counted"] != topic.rows:
        raise RuntimeError(f"{way} says it wrote {used['counted']} rows of {topic.rows}")
    ground.check(table, topic, state=way == "state")
    ground.drop(table)
    used |= used["since_start"] if is_cold else {}
    cpu = dict(used["cpu"])
    return Figure(
        way=way,
        round=number,
        rows=topic.rows,
        wall=used["wall"],
        cpu=without_broker(cpu),
        by_process=cpu,
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


def ratio(figures: Sequence[Figure], over: str, under: str, what: str) -> float | None:
    """Return the median over the rounds of the ratio of `over` to `under`; None if one did not run."""
    above, below = of(figures, over), of(figures, under)
    if not (above and below):
        return None
    return float(median(getattr(a, what) / getattr(b, what) for a, b in zip(above, below, strict=True)))
