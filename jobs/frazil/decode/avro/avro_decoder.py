"""Avro bodies to rows, by one `from_avro` in the JVM, which resolves the writer's schema to a reader's of our own.

`from_avro` lets through what readers of the table would fail on: text that is not UTF-8, and years past 9999.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.decoded_columns import DECODED
from frazil.decode.decoder import Body
from frazil.decode.frames.framed import Registered
from frazil.decode.values.conform import conform, in_json
from frazil.decode.values.from_avro import from_avro
from frazil.decode.values.leaves import all_in_years, is_utf8, texts
from frazil.decode.values.semantic_types import all_meant
from frazil.schemas.avro import OPTIONS, Reader
from frazil.schemas.types import Field, Kind, Primitive, Struct

_MARK = Field(DECODED, Primitive(Kind.BOOLEAN))


@lru_cache(maxsize=256)
def avro_body(reader: Reader, target: Struct) -> Body:
    """Decode the Avro binary of one writer schema into `target`.

    All versions that are read alike, as those are that differ in comments only, have one body.
    """

    def parse(value: Column) -> Column:
        return from_avro(value, reader.writer, {**OPTIONS, "avroSchema": reader.reader})

    make = row_step(reader, target)
    return Body((parse,)) if make is None else Body((parse, lambda value, decoded: make(decoded)))


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


def is_readable(row: Column, target: Struct) -> Column:
    """Return whether a row was decoded, and every reader of the table can read it; null counts as no."""
    found = texts(row, target)
    checks = [row[DECODED], *([is_utf8(found)] if found else []), *all_in_years(row, target)]
    return reduce(Column.__and__, checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredAvro(Registered):
    """The decoder of Avro by the registry's schemas."""

    def has_row(self, row: Column) -> Column:
        """Return whether the body is a row that can be read."""
        return is_readable(row, self.side.target)
