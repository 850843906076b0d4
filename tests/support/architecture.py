"""Draw the folders of the wheel and their imports as docs/architecture.svg.

    python -m tests.support.architecture

The storeys are those of the import contract in pyproject.toml, the lines are the imports that the code has. An import that
a chain of other lines implies is left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
Place = tuple[float, int]
"""The middle of a box from the left, and its upper edge."""
PAGE = ROOT / "docs" / "architecture.svg"
PACKAGE = "frazil"
WIDTH, STOREY, BOX, HEIGHT, EDGE = 1096, 104, 118, 40, 24
POINTS = 16  # at which a line is looked at
INK, LINE, FILL, ABOVE = "#1f2933", "#9fb3c8", "#f0f4f8", "#627d98"


def storeys() -> list[list[str]]:
    """Return the folders from top to bottom, as the contract of the layers lists them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract.get("containers") == [PACKAGE])
    return [layer.split(" | ") for layer in layers]


def imports(folders: Sequence[str]) -> dict[str, list[str]]:
    """Return for each folder those that it imports from, sorted."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    found: dict[str, set[str]] = {folder: set() for folder in folders}
    for module in graph.modules:
        importer = module.split(".")[1:2]
        for imported in graph.find_modules_directly_imported_by(module):
            folder = imported.split(".")[1:2]
            if importer and folder and importer != folder and importer[0] in found and folder[0] in found:
                found[importer[0]].add(folder[0])
    return {folder: sorted(used) for folder, used in found.items()}


def reduced(used: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the imports without those that a longer chain of imports implies."""

    def reached(folder: str) -> set[str]:
        return {folder}.union(*(reached(below) for below in used[folder]))

    return {
        folder: [b for b in below if not any(b in reached(other) for other in below if other != b)]
        for folder, below in used.items()
    }


def drawing(rows: Sequence[Sequence[str]], used: Mapping[str, Sequence[str]]) -> str:
    """Return the SVG: a box for each folder, a line from each to what it imports from."""
    at = placed(rows, used)
    height = EDGE * 2 + STOREY * (len(rows) - 1) + HEIGHT
    lines = [_line(at[folder], at[below]) for folder in at for below in used[folder]]
    boxes = [_box(folder, *place) for folder, place in at.items()]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="14">'
    title = "<title>The folders of the wheel; a line leads from a folder down to one that it imports from</title>"
    ground = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, title, ground, *lines, *boxes, "</svg>", ""])


def placed(rows: Sequence[Sequence[str]], used: Mapping[str, Sequence[str]]) -> dict[str, Place]:
    """Return the place of each folder in its storey, so that few lines pass behind a box or are long.

    Begins with the middle columns and swaps columns of a storey as long as that helps, so equal input gives equal places.
    """
    columns = max(map(len, rows)) + 1  # a gap in the fullest storey, for lines to pass
    storeys = [_spread(row, columns) for row in rows]

    def places() -> dict[str, Place]:
        return {
            folder: (round((n + 0.5) * WIDTH / columns, 1), EDGE + y * STOREY)
            for y, storey in enumerate(storeys)
            for n, folder in enumerate(storey)
            if folder
        }

    best, is_better = _cost(places(), used), True
    while is_better:
        is_better = False
        for storey in storeys:
            for a, b in combinations(range(columns), 2):
                storey[a], storey[b] = storey[b], storey[a]
                cost = _cost(places(), used) if storey[a] or storey[b] else best
                if cost < best:
                    best, is_better = cost, True
                else:
                    storey[a], storey[b] = storey[b], storey[a]
    return places()


def _spread(row: Sequence[str], columns: int) -> list[str]:
    before = (columns - len(row)) // 2
    return [""] * before + list(row) + [""] * (columns - len(row) - before)


def _cost(at: Mapping[str, Place], used: Mapping[str, Sequence[str]]) -> float:
    """Return how bad a drawing is: lines behind boxes count most, then how far lines lead to the side."""
    behind, sideways = 0, 0.0
    for folder, place in at.items():
        for below in used[folder]:
            sideways += abs(place[0] - at[below][0])
            points = [_point(place, at[below], step / POINTS) for step in range(1, POINTS)]
            boxes = (box for box in at.values() if place[1] < box[1] < at[below][1])
            behind += sum(
                any(abs(x - box[0]) < BOX / 2 + 4 and -4 < y - box[1] < HEIGHT + 4 for x, y in points) for box in boxes
            )
    return behind * 10 * WIDTH + sideways


def _point(upper: Place, lower: Place, t: float) -> tuple[float, float]:
    """Return a point of the line of `_line`, a Bézier curve; `t` runs from 0 to 1."""
    begin, end = upper[1] + HEIGHT, lower[1]
    ease = t * t * (3 - 2 * t)
    rise = 1.5 * t * (1 - t) ** 2 + 1.5 * t * t * (1 - t) + t**3
    return upper[0] + (lower[0] - upper[0]) * ease, begin + (end - begin) * rise


def _line(upper: Place, lower: Place) -> str:
    (x, y), (to_x, to_y) = upper, lower
    begin, end = y + HEIGHT, to_y
    bend = (end - begin) * 0.5
    path = f"M{x:g} {begin} C{x:g} {begin + bend:g} {to_x:g} {end - bend:g} {to_x:g} {end}"
    return f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.2"/>'


def _box(folder: str, x: float, y: int) -> str:
    left = x - BOX / 2
    box = f'<rect x="{left:g}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6" fill="{FILL}" stroke="{ABOVE}"/>'
    label = f'<text x="{x:g}" y="{y + 25}" text-anchor="middle" fill="{INK}">{escape(folder)}</text>'
    return box + label


def main() -> str:
    """Return the drawing of the code as it is."""
    rows = storeys()
    return drawing(rows, reduced(imports([folder for row in rows for folder in row])))


if __name__ == "__main__":
    PAGE.write_text(main())
