"""The topics of the demo, as data: each with the versions of its schema, its rows and how a row is written."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from frazil.cli.demo import data
from frazil.cli.demo.data import Row
from frazil.clients.registry.schemas import SchemaType

Encode = Callable[[Row], bytes]


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
    """What fills one topic: `versions` take turns, each with an equal share of the rows, in their order."""

    topic: str
    type: SchemaType
    versions: tuple[Version, ...]
    count: int
    rows: Callable[[], Iterator[Row]]
    key: Callable[[Row], str]
    index: bytes = b""
    """The bytes between the frame's schema id and the body: Protobuf's message index."""


def _nullable(kind: str) -> list[str]:
    return ["null", kind]


_FLIGHT: dict[str, Any] = {
    "time_hour": {"type": "long", "logicalType": "timestamp-millis"},
    "carrier": "string",
    "flight": "int",
    "tailnum": _nullable("string"),
    "origin": "string",
    "dest": "string",
    "year": "int",
    "month": "int",
    "day": "int",
    "hour": "int",
    "minute": "int",
    "sched_dep_time": "int",
    "sched_arr_time": "int",
    "dep_time": _nullable("int"),
    "arr_time": _nullable("int"),
    "dep_delay": _nullable("int"),
    "arr_delay": _nullable("int"),
    "air_time": _nullable("int"),
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


def _flight_rows() -> Iterator[Row]:
    for row in data.flights():
        row["cancelled"] = row["dep_time"] is None
        yield row


def flights() -> Source:
    """Return 336,776 flights, in Avro; half-way a column is added and one widened."""
    second = "distance becomes a long, and a column cancelled is added"
    return Source(
        topic="flights",
        type=SchemaType.AVRO,
        versions=(_avro("Flight", _FLIGHT), _avro("Flight", _FLIGHT_2, second)),
        count=data.FLIGHTS,
        rows=_flight_rows,
        key=lambda row: f"{row['carrier']}{row['flight']}",
    )


_WEATHER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Weather",
    "type": "object",
    "properties": {
        "origin": {"type": "string", "description": "the airport"},
        "time_hour": {"type": "string", "format": "date-time"},
        **{column: {"type": "integer"} for column in ("year", "month", "day", "hour")},
        **{
            column: {"type": ["number", "null"]}
            for column in [
                "temp",
                "dewp",
                "humid",
                "wind_dir",
                "wind_speed",
                "wind_gust",
                "precip",
                "pressure",
                "visib",
            ]
        },
    },
    "required": ["origin", "time_hour"],
}


def _json(row: Row) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode()


def weather() -> Source:
    """Return 26,115 hours of weather, in JSON by a JSON Schema."""
    return Source(
        topic="weather",
        type=SchemaType.JSON,
        versions=(Version(json.dumps(_WEATHER), _json),),
        count=data.WEATHER,
        rows=data.weather,
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


def _protobuf(text: str, name: str, change: Callable[[Row], Row]) -> Version:
    """Return a Protobuf version; `change` makes a row what the message `name` takes."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    from frazil.decode.protobuf.compiler import compile_proto

    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(compile_proto(text).descriptors).file:
        pool.AddSerializedFile(file.SerializeToString())
    message = GetMessageClass(pool.FindMessageTypeByName(name))

    def encode(row: Row) -> bytes:
        return bytes(message(**change(row)).SerializeToString())

    return Version(text, encode)


def _plane(row: Row) -> Row:
    known = {column: value for column, value in row.items() if value is not None}
    engine = (row["engine"] or "unknown").replace("4", "four").upper()
    return {**known, "engine": engine.replace("-", "_").replace(" ", "_")}


def planes() -> Source:
    """Return 3,322 planes, in Protobuf."""
    return Source(
        topic="planes",
        type=SchemaType.PROTOBUF,
        versions=(_protobuf(_PLANE, "nyc.Plane", _plane),),
        count=data.PLANES,
        rows=data.planes,
        key=lambda row: str(row["tailnum"]),
        index=b"\0",  # the first message of the file
    )


SOURCES: dict[str, Callable[[], Source]] = {"flights": flights, "weather": weather, "planes": planes}
"""What can fill a topic, by the topic's name."""
