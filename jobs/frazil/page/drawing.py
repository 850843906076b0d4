"""The way of a pipeline's records as a drawing: places of boxes and lines. The template writes the SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, GAP, EDGE, TIP = 196, 54, 2, 9
LINE, HEAD, FOOT = 17, 44, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """A station of the way. `kind` chooses its colour; `arrives` is written at the line that leads to it."""

    kind: str
    title: str
    lines: tuple[str, ...] = ()
    arrives: str = ""

    @property
    def height(self) -> int:
        """The height of its box."""
        return HEAD + LINE * len(self.lines) + FOOT


@dataclass(frozen=True, slots=True)
class Box:
    """A station at its place."""

    of: Station
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line to a station as an SVG path, and the place of its label."""

    to: Station
    path: str
    x: int
    y: int
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing and its size."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def wide(way: Sequence[Station], aside: Station) -> Drawing:
    """Return the way from left to right; `aside` is below the last station but one, and is reached from the one before."""
    height = max(one.height for one in way)
    boxes = [Box(one, EDGE + n * (WIDTH + GAP), EDGE, height) for n, one in enumerate(way)]
    middle, source, below = EDGE + height // 2, boxes[-3], Box(aside, boxes[-2].x, EDGE + height + 44, aside.height)
    lines = [
        Line(right.of, f"M{right.x - GAP} {middle}H{right.x - TIP}", right.x - GAP // 2, middle - 9)
        for right in boxes[1:]
    ]
    x, y = source.x + WIDTH // 2, below.y + below.height // 2
    path = f"M{x} {EDGE + height}V{y - 12}Q{x} {y} {x + 12} {y}H{below.x - TIP}"
    lines.append(Line(aside, path, (x + below.x) // 2 + 8, y - 9))
    return Drawing(boxes[-1].x + WIDTH + EDGE, below.y + below.height + EDGE, (*boxes, below), tuple(lines))


def tall(way: Sequence[Station], aside: Station) -> Drawing:
    """Return the way from top to bottom, for a phone; `aside` is the last box, and is reached along the right side."""
    boxes, lines, y, right, side = list[Box](), list[Line](), EDGE, EDGE + WIDTH, EDGE + WIDTH + 56
    for station in (*way, aside):
        if boxes and station is not aside:
            x, above = EDGE + WIDTH // 2, boxes[-1].y + boxes[-1].height
            lines.append(Line(station, f"M{x} {above}V{y - TIP}", x + 10, (above + y) // 2 + 4, "start"))
        boxes.append(Box(station, EDGE, y, station.height))
        y += station.height + GAP - 14
    begin, end = (box.y + box.height // 2 for box in (boxes[-4], boxes[-1]))
    path = f"M{right} {begin}H{side - 12}Q{side} {begin} {side} {begin + 12}V{end - 12}Q{side} {end} {side - 12} {end}"
    lines.append(Line(aside, f"{path}H{right + TIP}", right + 10, end + 18, "start"))
    return Drawing(side + 30, y - GAP + 24, tuple(boxes), tuple(lines))
