"""Avro bodies that fill their bytes: without a frame nothing else says that a declared schema wrote them.

Spark's `from_avro` reads over what follows a body. Here each body is read as the first of two fields: the second one is a mark,
which is put behind the bytes, and is found again only if the body ends where the bytes do.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from frazil.decode.avro.avro_decoder import row_step
from frazil.decode.decoder import Decoder
from frazil.schemas.avro import OPTIONS, Reader
from frazil.schemas.avro.schema_fingerprint import HEAD_BYTES, MAGIC
from frazil.schemas.types import Struct
from frazil.schemas.wire_format import ID_MAGIC, PREFIX_BYTES

END = bytes.fromhex("b9de3d5f8b3a4fbd5a2a33bdfb26d6c5")
"""The mark. No end of it is its beginning, so bytes between a body and the mark are seen, however few."""
_ALL = 2_147_483_647


@lru_cache(maxsize=256)
def body_decoder(reader: Reader, target: Struct) -> Decoder:
    """Decode bytes that are one body of a writer schema, and nothing more, into `target`."""
    schemas = _with_mark(reader.writer), _with_mark(reader.reader)

    def parse(value: Column) -> Column:
        return _read(value, *schemas)

    def body(value: Column, parsed: Column) -> Column:
        return F.when(_is_complete(value, parsed), parsed["body"])

    return _with_row(Decoder((parse, body), is_framed=lambda value: _is_framed(value, *schemas)), reader, target)


@lru_cache(maxsize=256)
def plain_decoder(reader: Reader, target: Struct, heads: tuple[bytes, ...]) -> Decoder:
    """Decode such bytes where they may also be framed, which makes them no rows.

    Some frames can be read as the beginning of a body. So bytes are framed, too, if what follows a registry's frame, or that of
    single-object encoding, is a body by itself, or if they begin with one of the `heads`: those of the declared schemas.
    """
    schemas = _with_mark(reader.writer), _with_mark(reader.reader)

    def parse(value: Column) -> Column:
        return _read(value, *schemas)

    def behind(value: Column, parsed: Column) -> Column:
        rest = F.when(begins_with_small_id(value), _behind_frame(value))
        rest = rest.when(begins_as_single_object(value), F.substring(value, F.lit(HEAD_BYTES + 1), F.lit(_ALL)))
        return _read(rest, *schemas)

    def body(value: Column, parsed: Column, behind: Column) -> Column:
        is_framed = F.coalesce(_is_complete(value, behind), F.lit(False))
        is_framed |= F.substring(value, 1, HEAD_BYTES).isin([bytearray(head) for head in heads])
        return F.when(_is_complete(value, parsed) & ~is_framed, parsed["body"])

    decoder = Decoder((parse, behind, body), is_framed=lambda value: _is_framed(value, *schemas))
    return _with_row(decoder, reader, target)


def begins_as_registered(value: Column) -> Column:
    """Return whether bytes begin with what may be a registry's frame: byte 0 and a schema id."""
    return (F.length(value) >= PREFIX_BYTES) & (F.substring(value, 1, 1) == F.lit(bytearray([ID_MAGIC])))


def begins_with_small_id(value: Column) -> Column:
    """Return whether that is so and the id has at most 24 bits and is not 0, as registries count them.

    Many bodies begin with 0, such as change events without `before`, and to read each of them twice would take twice the time.
    """
    none = F.substring(value, 2, PREFIX_BYTES - 1) == F.lit(bytearray(PREFIX_BYTES - 1))
    return begins_as_registered(value) & (F.substring(value, 2, 1) == F.lit(bytearray([0]))) & ~none


def begins_as_single_object(value: Column) -> Column:
    """Return whether bytes begin with what may be the mark of single-object encoding and a fingerprint."""
    return (F.length(value) >= HEAD_BYTES) & (F.substring(value, 1, len(MAGIC)) == F.lit(bytearray(MAGIC)))


def _is_framed(value: Column, writer: str, reader: str) -> Column:
    """Return whether bytes are a registry's frame and a body behind it; a body that is broken may begin as a frame, too."""
    rest = F.when(begins_with_small_id(value), _behind_frame(value))
    return F.coalesce(_is_complete(value, _read(rest, writer, reader)), F.lit(False))


def _behind_frame(value: Column) -> Column:
    return F.substring(value, F.lit(PREFIX_BYTES + 1), F.lit(_ALL))


def _read(value: Column, writer: str, reader: str) -> Column:
    return from_avro(F.concat(value, F.lit(bytearray(END))), writer, {**OPTIONS, "avroSchema": reader})


def _is_complete(value: Column, parsed: Column) -> Column:
    mark = F.lit(bytearray(END))
    return (parsed["end"] == mark) & ~F.contains(value, mark)


def _with_row(body: Decoder, reader: Reader, target: Struct) -> Decoder:
    make = row_step(reader, target)
    return body if make is None else replace(body, steps=(*body.steps, lambda value, *steps: make(steps[-1])))


def _with_mark(schema: str) -> str:
    """Return the schema of records of this schema, with the mark behind them."""
    end = {"type": "fixed", "name": "plain.end", "size": len(END)}
    fields = [{"name": "body", "type": json.loads(schema)}, {"name": "end", "type": end}]
    return json.dumps({"type": "record", "name": "plain.t", "fields": fields})
