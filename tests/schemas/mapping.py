"""The rows of docs/schemas.md and `mapping_examples.md`, and what the code makes of each: the page and the code cannot part."""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from frazil.decode.avro.avro_decoder import avro_body
from frazil.decode.protobuf.projection import reading
from frazil.decode.protobuf.protobuf_decoder import decoded
from frazil.decode.spark_types import spark_struct
from frazil.decode.values.leaves import all_in_years
from frazil.decode.writers.record_type import embedded_type, json_type
from frazil.schemas import avro, protobuf
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.json import json_schema
from frazil.schemas.types import Struct
from tests.support.bodies import at_once
from tests.support.connect_schemas import connect_of
from tests.support.proto import compiled
from tests.support.proto import protobuf as message

REJECTED = "rejected"
PAGE = Path(__file__).parents[2] / "docs" / "schemas.md"
EXAMPLES = Path(__file__).parent / "mapping_examples.md"
"""More rows: cases of the page's rules, and types that the page describes in a sentence."""
_ROW = re.compile(
    r"^\| (?P<what>.+?) \| `(?P<schema>.+?)` \| (?P<column>.+?) \| `(?P<written>.+?)` \| `(?P<lands>.+?)` \|$"
)
_TYPES = "enum Colour { RED = 0; GREEN = 1; } message Point { int32 x = 1; } message Empty {} message Tree { int32 v = 1; Tree next = 2; }"
_IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto"; '
    for name in ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
)


@dataclass(frozen=True)
class Row:
    """One row of a table of the page: a field `x` of this schema, its column, and an example as JSON."""

    what: str
    schema: str
    column: str
    written: str
    lands: str


def rows(section: str) -> list[Row]:
    """The rows under a heading of the page, and then those under the same heading of the examples."""
    texts = [file.read_text("utf-8") for file in (PAGE, EXAMPLES)]
    bodies = [text.partition(f"\n## {section}\n")[2].partition("\n## ")[0] for text in texts]
    lines = [line for body in bodies for line in body.splitlines()]
    return [Row(**match.groupdict()) for line in lines if (match := _ROW.match(line))]


def landed(row_type: Struct) -> Struct:
    """Where records of the one version of a subject land."""
    return landing(Struct(()), [(1, row_type)]).target


def _exact(target: Struct, *, is_key: bool) -> Struct:
    return target.exact() if is_key else target


def column(row_type: Struct) -> str:
    """The Iceberg type of the column `x`, and whether it holds JSON text."""
    (field,) = landed(row_type).fields
    return f"{field.type}, JSON" if field.as_json else str(field.type)


def avro_row(schema: str) -> Struct:
    return avro.row_type(avro.parse(_avro_text(schema)))


def debezium_row(schema: str) -> Struct:
    return avro.row_type(avro.parse(_avro_text(schema), connect_types=True))


def json_row(schema: str) -> Struct:
    return json_schema.row_type(json_schema.parse(_json_text(schema), {}))


def debezium_json_row(schema: str) -> Struct:
    return json_type(_json_text(schema), {}, connect_types=True).row


def connect_row(schema: str) -> Struct:
    return embedded_type(json.dumps(_connect_schema(schema))).row


def _connect_schema(schema: str) -> dict[str, Any]:
    return connect_of(json.loads(_json_text(schema)))


def protobuf_row(schema: str) -> Struct:
    return protobuf.row_type(compiled(_proto_text(schema)), "M")


def avro_values(
    spark: SparkSession, given: Sequence[Row], *, connect_types: bool = False, is_key: bool = False
) -> list[str]:
    """What each example of an Avro row lands as, in a value or in the key of a row."""
    columns = []
    for row in given:
        text = _avro_text(row.schema)
        parsed = avro.parse(text, connect_types=connect_types)
        target = _exact(landed(avro.row_type(parsed)), is_key=is_key)
        raw = _without_logical_types(json.loads(text))
        value = _avro_value(json.loads(row.written), raw["fields"][0]["type"], {})
        body = io.BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(raw), {"x": value})
        made = at_once(avro_body(avro.reader(parsed, target), target), F.lit(bytearray(body.getvalue())))
        checks = all_in_years(made, target)  # as `is_readable` does
        columns.append(F.when(reduce(Column.__and__, checks, F.lit(True)), made))
    return _on_spark(spark, columns)


def json_values(
    spark: SparkSession, given: Sequence[Row], *, connect_types: bool = False, is_key: bool = False
) -> list[str]:
    """What each example of a JSON Schema row lands as, in a value or in the key of a row."""
    columns = []
    for row in given:
        of = json_type(_json_text(row.schema), {}, connect_types=connect_types)
        decoder = of.body(_exact(landed(of.row), is_key=is_key))
        columns.append(at_once(decoder, F.lit(bytearray(f'{{"x":{row.written}}}'.encode()))))
    return _on_spark(spark, columns)


def connect_values(spark: SparkSession, given: Sequence[Row], *, is_key: bool = False) -> list[str]:
    """What each example of a row of Debezium in JSON Schema lands as if Connect's own converter writes it."""
    columns = []
    for row in given:
        schema = _connect_schema(row.schema)
        of = embedded_type(json.dumps(schema))
        decoder = of.body(_exact(landed(of.row), is_key=is_key))
        columns.append(at_once(decoder, F.lit(bytearray(f'{{"payload":{{"x":{row.written}}}}}'.encode()))))
    return _on_spark(spark, columns)


def protobuf_values(given: Sequence[Row], *, is_key: bool = False) -> list[str]:
    """What each example of a Protobuf row lands as."""
    found = []
    for row in given:
        text = _proto_text(row.schema)
        of, target = compiled(text), _exact(landed(protobuf_row(row.schema)), is_key=is_key)
        arrow = to_arrow_type(spark_struct(target).add("_decoded", T.BooleanType()))
        body = message(text, {"x": json.loads(row.written)}, message="M")
        out = decoded(pa.array([body]), pa.array([0], pa.int32()), [reading(of, "M", target)], arrow)
        (landed_as,) = out.to_pylist()
        found.append(told(landed_as["x"]) if landed_as else REJECTED)
    return found


def told(value: Any) -> str:
    """A column's value as the page writes it."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    match value:
        case bytes() | bytearray():
            return "0x" + value.hex()
        case datetime.datetime():
            return value.isoformat(" ")
        case datetime.date():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case dict():
            return {str(_plain(key)): _plain(inner) for key, inner in value.items()}
        case list() if value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
            return {str(_plain(key)): _plain(inner) for key, inner in value}
        case list():
            return [_plain(inner) for inner in value]
        case _:
            return value


def _on_spark(spark: SparkSession, columns: Sequence[Column]) -> list[str]:
    """All examples in one job; the session's time zone is UTC."""
    made = [
        F.struct(F.when(row["_decoded"], row["x"]).alias("x"), row["_decoded"].alias("is_row")).alias(f"x{i}")
        for i, row in enumerate(columns)
    ]
    found = [value.asDict(recursive=True) for value in spark.range(1).select(*made).collect()[0]]
    return [told(value["x"]) if value["is_row"] else REJECTED for value in found]


def _avro_text(schema: str) -> str:
    field = {"name": "x", "type": json.loads(schema)}
    return json.dumps({"type": "record", "name": "M", "fields": [field]})


def _json_text(schema: str) -> str:
    definitions = {
        "Point": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "Tree": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/definitions/Tree"}}},
    }
    return json.dumps({"type": "object", "properties": {"x": json.loads(schema)}, "definitions": definitions})


def _proto_text(schema: str) -> str:
    if schema.startswith("proto2: "):
        return f'syntax = "proto2"; message M {{ {schema.removeprefix("proto2: ")} }}'
    return f'syntax = "proto3"; {_IMPORTS} message M {{ {schema} }} {_TYPES}'


def _without_logical_types(tree: Any) -> Any:
    match tree:
        case dict():
            return {key: _without_logical_types(value) for key, value in tree.items() if key != "logicalType"}
        case list():
            return [_without_logical_types(inner) for inner in tree]
    return tree


def _avro_value(value: Any, kind: Any, names: dict[str, Any]) -> Any:
    """A value of JSON as fastavro takes it: bytes stand in base64."""
    if isinstance(kind, str) and kind in names:
        kind = names[kind]
    match kind:
        case "bytes" | {"type": "bytes" | "fixed"}:
            return base64.b64decode(value)
        case {"type": "record", "name": name, "fields": fields}:
            names[name] = kind
            return {f["name"]: _avro_value(value[f["name"]], f["type"], names) for f in fields if f["name"] in value}
        case {"type": "array", "items": items}:
            return [_avro_value(inner, items, names) for inner in value]
        case {"type": "map", "values": values}:
            return {key: _avro_value(inner, values, names) for key, inner in value.items()}
        case [*branches] if value is not None and len([b for b in branches if b != "null"]) == 1:
            return _avro_value(value, next(b for b in branches if b != "null"), names)
        case _:
            return value
