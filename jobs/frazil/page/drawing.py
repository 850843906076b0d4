"""The way of a pipeline's records as a drawing: places of boxes and lines. The template writes the SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, GAP, EDGE = 196, 54, 2
LINE, HEAD, FOOT = 17, 44, 12
TITLE_CHARACTERS, LINE_CHARACTERS = 23, 29
"""Characters of a box's title and of its lines, as its width has room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """A station of the way. `kind` chooses its colour; `arrives` is written at the line that leads to it."""

    kind: str
    title: str
    lines: tuple[str, ...] = ()
    arrives: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A station at its place; texts are cut, `full` has all of them."""

    kind: str
    x: int
    y: int
    height: int
    title: str
    lines: tuple[str, ...]
    full: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line between two boxes, as an SVG path, with its label."""

    path: str
    label: str
    x: int
    y: int
    anchor: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A drawing and its size."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    text: str
    """The drawing in words."""


def wide(way: Sequence[Station], aside: Station | None) -> Drawing:
    """Return the way from left to right; `aside` is below the last station but one, and is reached from the one before."""
    height = max(map(_height, way))
    boxes = [_box(one, EDGE + n * (WIDTH + GAP), EDGE, height) for n, one in enumerate(way)]
    lines, middle = [], EDGE + height // 2
    for left, right, station in zip(boxes, boxes[1:], way[1:], strict=False):
        begin, end = left.x + WIDTH, right.x
        lines.append(_line(f"M{begin} {middle}H{end - 9}", station, (begin + end) // 2, middle - 9))
    bottom = EDGE * 2 + height
    if aside is not None:
        source, target = boxes[-3], boxes[-2]
        below = _box(aside, target.x, EDGE + height + 44, _height(aside))
        x, y = source.x + WIDTH // 2, below.y + below.height // 2
        path = f"M{x} {EDGE + height}V{y - 12}Q{x} {y} {x + 12} {y}H{below.x - 9}"
        lines.append(_line(path, aside, (x + below.x) // 2 + 8, y - 9))
        boxes.append(below)
        bottom = below.y + below.height + EDGE
    width = EDGE * 2 + len(way) * WIDTH + (len(way) - 1) * GAP
    return Drawing(width=width, height=bottom, boxes=tuple(boxes), lines=tuple(lines), text=_words(way, aside))


def tall(way: Sequence[Station], aside: Station | None) -> Drawing:
    """Return the way from top to bottom, for a phone; `aside` is the last box, and is reached along the right side."""
    boxes, lines, y, side = list[Box](), list[Line](), EDGE, EDGE + WIDTH + 56
    for station in way:
        box = _box(station, EDGE, y, _height(station))
        if boxes:
            x, above = EDGE + WIDTH // 2, boxes[-1].y + boxes[-1].height
            lines.append(_line(f"M{x} {above}V{y - 9}", station, x + 10, (above + y) // 2 + 4, "start"))
        boxes.append(box)
        y += box.height + GAP - 14
    if aside is not None:
        box, source = _box(aside, EDGE, y, _height(aside)), boxes[-3]
        begin, end = source.y + source.height // 2, y + box.height // 2
        right = EDGE + WIDTH
        path = (
            f"M{right} {begin}H{side - 12}Q{side} {begin} {side} {begin + 12}V{end - 12}Q{side} {end} {side - 12} {end}"
        )
        lines.append(_line(f"{path}H{right + 9}", aside, right + 10, end + 18, "start"))
        boxes.append(box)
        y += box.height + GAP
    text = _words(way, aside)
    return Drawing(width=side + 30, height=y - GAP + 24, boxes=tuple(boxes), lines=tuple(lines), text=text)


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, its end cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _height(station: Station) -> int:
    return HEAD + LINE * len(station.lines) + FOOT


def _box(station: Station, x: int, y: int, height: int) -> Box:
    lines = tuple(cut(line, LINE_CHARACTERS) for line in station.lines)
    full = "\n".join((station.title, *station.lines))
    title = cut(station.title, TITLE_CHARACTERS)
    return Box(kind=station.kind, x=x, y=y, height=height, title=title, lines=lines, full=full)


def _line(path: str, to: Station, x: int, y: int, anchor: str = "middle") -> Line:
    return Line(path=path, label=to.arrives, x=x, y=y, anchor=anchor, kind=to.kind)


def _words(way: Sequence[Station], aside: Station | None) -> str:
    parts = [f"{one.kind} {one.title}" for one in way]
    return ", then ".join(parts) + (f"; dead letters: {aside.title}" if aside is not None else "")
