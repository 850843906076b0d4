"""Plots of values over time: places of lines and labels. The template writes the SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor, log10

WIDTH, HEIGHT = 360, 150
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 24
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One plot: a line of steps, the area below, dots with their words, and labels of both axes by their places."""

    title: str
    newest: str
    line: str
    area: str
    dots: tuple[tuple[float, float, str], ...]
    values: tuple[tuple[float, str], ...]
    times: tuple[tuple[float, str, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT


def plot(title: str, points: Sequence[tuple[float, float]], shown: Callable[[int], str]) -> Plot | None:
    """Return the plot of values at times in seconds since 1970, oldest first; None without two different times."""
    if len({at for at, _ in points}) < 2:
        return None
    begin, end, top = points[0][0], points[-1][0], _round_up(max(value for _, value in points))

    def place(at: float, value: float) -> tuple[float, float]:
        x = LEFT + (at - begin) / (end - begin) * (WIDTH - LEFT - RIGHT)
        return round(x, 1), round(HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM), 1)

    places = [place(*point) for point in points]
    line = f"M{places[0][0]} {places[0][1]}" + "".join(f"H{x}V{y}" for x, y in places[1:])
    dots = tuple(
        (x, y, f"{_time(at, '%Y-%m-%d %H:%M:%S')} UTC: {shown(round(value))}")
        for (x, y), (at, value) in zip(places, points, strict=True)
    )
    form = "%b %d" if end - begin >= DAY_SECONDS else "%H:%M" if end - begin >= 600 else "%H:%M:%S"
    return Plot(
        title=title,
        newest=shown(round(points[-1][1])),
        line=line,
        area=f"{line}V{HEIGHT - BOTTOM}H{places[0][0]}Z",
        dots=dots,
        values=tuple((place(begin, share * top)[1], shown(round(share * top))) for share in (0, 0.5, 1)),
        times=((LEFT, "start", _time(begin, form)), (WIDTH - RIGHT, "end", _time(end, form))),
    )


def _round_up(value: float) -> float:
    """Return the next number of 1, 2, 4, 6 or 8 and zeros: half of it is short to write, too."""
    if value <= 2:
        return 2.0
    unit = 10.0 ** floor(log10(value))
    return next(step * unit for step in (1, 2, 4, 6, 8, 10, 20) if step * unit >= value)


def _time(at: float, form: str) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)
