"""Kafka Connect's JSON to rows: values as Connect and Debezium write them, and records that hold their own schema.

Times are numbers there, and decimals are bytes. The frame of a record with a schema is the text of the schema, without blanks.
Most records have a schema that is known, and begin with its text: a comparison of bytes finds it. All others are parsed. The
converter always writes the same text for a schema; another writer's order or blanks only make the search slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.decode.decoded_columns import DECODED
from frazil.decode.decoder import Body, Unframed
from frazil.decode.frames.framed import Framed
from frazil.decode.json.enclosing import CORRUPT, NAME
from frazil.decode.json.json_decoder import LONGEST_NULL, OPTIONS, SPACE, is_null, json_body
from frazil.decode.spark_types import spark_type
from frazil.decode.tombstones import tombstone
from frazil.decode.values.conform import conform
from frazil.decode.values.semantic_types import all_meant
from frazil.schemas.connect.connect_types import as_text
from frazil.schemas.json.json_schema import VALUE_COLUMN
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct

PAYLOAD = "payload"
_MARK = Field(DECODED, Primitive(Kind.BOOLEAN))
_BEFORE, _BETWEEN, _WITHOUT = b'{"schema":', b',"payload":', b'{"payload":'
_ALL = 2_147_483_647
_NULL_PAYLOAD = rf'"payload"{SPACE}:{SPACE}null{SPACE}\}}{SPACE}$'
_READ = T.StructType(
    [
        T.StructField(PAYLOAD, T.StringType()),
        T.StructField(NAME, T.BooleanType()),
        T.StructField(CORRUPT, T.StringType()),
    ]
)


@lru_cache(maxsize=1024)
def connect_body(
    held: Struct,
    target: Struct,
    *,
    single_value: bool = False,
    refuses_null: bool = False,
    in_payload: bool = False,
    keeps_unknown: bool = False,
    only: tuple[str, ...] | None = None,
) -> Body:
    """Return how JSON is converted to the columns of `target`, which it holds as `held` says; else it is `json_body`.

    With `in_payload` the row is the member `payload` of a record, and there is no row without it. `keeps_unknown` and
    `refuses_null` are those of `json_body`, and not of a payload. With `only` an object has no other
    members, and none of these twice; others have no row: two keys that differ there alone would be one row.
    """
    if in_payload:
        of_held = _of_payload(held, single_value=single_value)
    else:
        of_held = json_body(held, single_value=single_value, refuses_null=refuses_null, keeps_unknown=keeps_unknown)
    made = of_held if held == target else _meant(of_held, as_text(held), as_text(target))
    return made if only is None or single_value else made.then(_closed(only, in_payload=in_payload))


def _closed(members: tuple[str, ...], *, in_payload: bool) -> Callable[..., Column]:
    """Return the step that keeps rows of objects without other members."""

    def row(body: Column, *steps: Column) -> Column:
        text = body.cast("string")
        checks = _has_each_once(text)
        if in_payload:
            text = F.get_json_object(text, f"$.{PAYLOAD}")
            checks &= _has_each_once(text)
        others = F.array_except(F.json_object_keys(text), F.array(*map(F.lit, members)))
        return F.when(checks & (F.size(others) == 0), steps[-1])

    return row


def _has_each_once(text: Column) -> Column:
    names = F.json_object_keys(text)
    return F.size(F.array_distinct(names)) == F.size(names)


def _of_payload(held: Struct, *, single_value: bool) -> Body:
    """Return the body of records whose payload is the row, or its column of the source `value`."""
    if not single_value:
        record = json_body(Struct((Field(PAYLOAD, held),)))
        return _rows(record, lambda payload: [payload[field.name].alias(field.name) for field in held.fields])
    nulls = {f.name: F.lit(None).cast(spark_type(f.type)) for f in held.fields}
    one = next((f for f in held.fields if f.source == VALUE_COLUMN), None)
    written = Field(PAYLOAD, Primitive(Kind.STRING), as_json=True) if one is None else one
    record = json_body(Struct((replace(written, name=PAYLOAD, source=PAYLOAD),)))
    return _rows(record, lambda payload: [(payload if f is one else nulls[f.name]).alias(f.name) for f in held.fields])


def _rows(of_record: Body, columns: Callable[[Column], list[Column]]) -> Body:

    def row(value: Column, *steps: Column) -> Column:
        record = steps[-1]
        is_row = F.when(record[PAYLOAD].isNotNull(), record[DECODED])
        return F.struct(*columns(record[PAYLOAD]), is_row.alias(DECODED))

    return of_record.then(row)


def _meant(of_held: Body, held: Struct, target: Struct) -> Body:
    """Return the body with one more step: values as they are meant, and no row if one of them has no meaning."""
    types = Struct((*held.fields, _MARK)), Struct((*target.fields, _MARK))

    def row(value: Column, *steps: Column) -> Column:
        read = steps[-1]
        checks = [F.coalesce(read[DECODED], F.lit(False)), *all_meant(read, *types)]
        return F.when(reduce(Column.__and__, checks), conform(read, *types))

    return of_held.then(row)


def frame_inside(value: Column, known: Iterable[bytes]) -> Column:
    """Return the text of a record's schema as bytes; null without one. It is looked for among those that are `known` first."""
    parsed = F.get_json_object(value.cast("string"), "$.schema").cast("binary")
    return _begun(value, known, lambda text: F.lit(bytearray(text)), parsed)


def body_after(value: Column, known: Iterable[bytes]) -> Column:
    """Return the record without its schema where that is one of those that are `known`, else the complete record."""

    def rest(text: bytes) -> Column:
        place = len(_BEFORE + text + _BETWEEN) + 1
        return F.concat(F.lit(bytearray(_WITHOUT)), F.substring(value, F.lit(place), F.lit(_ALL)))

    return _begun(value, known, rest, value)


def _begun(value: Column, known: Iterable[bytes], made: Callable[[bytes], Column], otherwise: Column) -> Column:
    found: Column | None = None
    for text in known:
        begins = F.startswith(value, F.lit(bytearray(_BEFORE + text + _BETWEEN)))
        found = (F if found is None else found).when(begins, made(text))
    return otherwise if found is None else found.otherwise(otherwise)


def has_null_payload(value: Column) -> Column:
    """Return whether the value is one JSON object whose last member is a null payload, and no other one is a payload.

    The end is looked at first, which few records have; a converter writes `payload` last. There another member takes the payload's
    place: only if it is one of the outermost object, it is read.
    """
    ends = F.substring(value, -LONGEST_NULL, LONGEST_NULL).cast("string").rlike(_NULL_PAYLOAD)
    text = F.try_validate_utf8(value.cast("string"))
    read = F.from_json(F.regexp_replace(text, _NULL_PAYLOAD, f'"{NAME}":true}}'), _READ, OPTIONS)
    wanted = F.struct(F.lit(None), F.lit(True), F.lit(None)).cast(_READ)
    return ends & read.eqNullSafe(wanted)


def _is_no_value(value: Column) -> Column:
    return is_null(value) | has_null_payload(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainConnectJson(Unframed):
    """The decoder of records whose columns are declared, so that the schema in a record is not read."""

    null = staticmethod(_is_no_value)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedConnectJson(Framed):
    """The decoder of records by the schemas that they hold."""

    null = staticmethod(_is_no_value)

    def framed(self, records: DataFrame) -> DataFrame:
        """Return the records with the texts of their schemas, and what follows them."""
        frame, body = (part(self.side.bytes, self.frames) for part in (frame_inside, body_after))
        records = records.withColumn(self.side.part("frame"), frame)
        return records.withColumn(self.side.part("body"), body)

    def reason(self) -> Column:
        """Return whether the value is empty, its schema has no decoder, or it is not of its schema."""
        is_unknown = self.side.frame.isNotNull() & ~self.is_one_of(self.frames.keys())
        reason = tombstone(self.side.bytes)
        reason = reason.when(F.length(self.side.bytes) == 0, Reason.EMPTY_VALUE.value)
        reason = reason.when(self.is_refused, self.verdict).when(is_unknown, Reason.UNKNOWN_SCHEMA.value)
        return reason.otherwise(Reason.UNDECODABLE.value)
