"""Avro bodies to rows, by one `from_avro` in the JVM, which resolves the writer's schema to a reader's of our own."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from frazil.decode.decoder import Decoder
from frazil.decode.decoding import DECODED
from frazil.decode.values.conform import conform, in_json
from frazil.decode.values.leaves import is_utf8, texts
from frazil.decode.values.semantic_types import all_meant
from frazil.schemas.avro import OPTIONS, Reader
from frazil.schemas.types import Field, Kind, Primitive, Struct

_MARK = Field(DECODED, Primitive(Kind.BOOLEAN))


def avro_decoder(reader: Reader, target: Struct) -> Decoder:
    """Decode the Avro binary of one writer schema into `target`."""

    def parse(value: Column) -> Column:
        return from_avro(value, reader.writer, {**OPTIONS, "avroSchema": reader.reader})

    make = row_step(reader, target)
    return Decoder((parse,)) if make is None else Decoder((parse, lambda value, decoded: make(decoded)))


def row_step(reader: Reader, target: Struct) -> Callable[[Column], Column] | None:
    """Return what makes the row of a decoded record; None if that is the row."""
    if reader.conforms:
        return None
    types = Struct((*reader.yields.fields, _MARK)), Struct((*target.fields, _MARK))

    def row(decoded: Column) -> Column:
        row = conform(decoded, *types)
        found = texts(decoded, in_json(reader.yields))  # of which `to_json` makes UTF-8, whatever it is
        checks = [*([is_utf8(found)] if found else []), *all_meant(decoded, *types)]
        return F.when(reduce(Column.__and__, checks), row) if checks else row

    return row
