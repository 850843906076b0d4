"""JSON bodies to rows whose values are written as Kafka Connect and Debezium write them: numbers for times, bytes for decimals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.decoder import Decoder
from frazil.decode.decoding import DECODED
from frazil.decode.json.json_decoder import json_decoder
from frazil.decode.spark_types import spark_type
from frazil.decode.values.conform import conform
from frazil.decode.values.semantic_types import all_meant
from frazil.schemas.connect.connect_types import as_text
from frazil.schemas.json.json_schema import VALUE_COLUMN
from frazil.schemas.types import Field, Kind, Primitive, Struct

_MARK = Field(DECODED, Primitive(Kind.BOOLEAN))


PAYLOAD = "payload"


@lru_cache(maxsize=1024)
def connect_decoder(
    held: Struct,
    target: Struct,
    *,
    single_value: bool = False,
    in_payload: bool = False,
    keeps_unknown: bool = False,
) -> Decoder:
    """Return how JSON is converted to the columns of `target`, which it holds as `held` says; else it is `json_decoder`.

    With `in_payload` the row is the member `payload` of a record, and there is no row without it. `keeps_unknown` is that of
    `json_decoder`, and not of a payload.
    """
    if in_payload:
        of_held = _of_payload(held, single_value=single_value)
    else:
        of_held = json_decoder(held, single_value=single_value, keeps_unknown=keeps_unknown)
    return of_held if held == target else _meant(of_held, as_text(held), as_text(target))


def _of_payload(held: Struct, *, single_value: bool) -> Decoder:
    """Return the decoder of records whose payload is the row, or its column of the source `value`."""
    if not single_value:
        record = json_decoder(Struct((Field(PAYLOAD, held),)))
        return _rows(record, lambda payload: [payload[field.name].alias(field.name) for field in held.fields])
    nulls = {f.name: F.lit(None).cast(spark_type(f.type)) for f in held.fields}
    one = next((f for f in held.fields if f.source == VALUE_COLUMN), None)
    written = Field(PAYLOAD, Primitive(Kind.STRING), as_json=True) if one is None else one
    record = json_decoder(Struct((replace(written, name=PAYLOAD, source=PAYLOAD),)))
    return _rows(record, lambda payload: [(payload if f is one else nulls[f.name]).alias(f.name) for f in held.fields])


def _rows(of_record: Decoder, columns: Callable[[Column], list[Column]]) -> Decoder:
    """Return the decoder with one more step: the row is made of the payload."""

    def row(value: Column, *steps: Column) -> Column:
        record = steps[-1]
        is_row = F.when(record[PAYLOAD].isNotNull(), record[DECODED])
        return F.struct(*columns(record[PAYLOAD]), is_row.alias(DECODED))

    thorough = _rows(of_record.thorough, columns) if of_record.thorough is not None else None
    return Decoder((*of_record.steps, row), thorough)


def _meant(of_held: Decoder, held: Struct, target: Struct) -> Decoder:
    """Return the decoder with one more step: values as they are meant, and no row if one of them has no meaning."""
    types = Struct((*held.fields, _MARK)), Struct((*target.fields, _MARK))

    def row(value: Column, *steps: Column) -> Column:
        read = steps[-1]
        checks = [F.coalesce(read[DECODED], F.lit(False)), *all_meant(read, *types)]
        return F.when(reduce(Column.__and__, checks), conform(read, *types))

    thorough = _meant(of_held.thorough, held, target) if of_held.thorough is not None else None
    return Decoder((*of_held.steps, row), thorough)
