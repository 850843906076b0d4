"""Avro bodies that fill their bytes: without a frame nothing else says that a declared schema wrote them.

Spark's `from_avro` reads over what follows a body. Here each body is read as the first of two fields: the second one is a mark,
which is put after the bytes, and is found again only if the body ends where the bytes do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.decode.avro.avro_decoder import is_readable, row_step
from frazil.decode.decoder import Body, Decoder, Headerless, Step
from frazil.decode.frames.framed import Framed
from frazil.decode.frames.wire_format import begins_with_small_id
from frazil.decode.tombstones import tombstone
from frazil.decode.values.from_avro import from_avro
from frazil.schemas.avro import OPTIONS, Reader
from frazil.schemas.avro.schema_fingerprint import HEAD_BYTES, MAGIC
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct
from frazil.schemas.wire_format import PREFIX_BYTES

END = bytes.fromhex("b9de3d5f8b3a4fbd5a2a33bdfb26d6c5")
"""The mark. No end of it is its beginning, so bytes between a body and the mark are seen, however few."""
_ALL = 2_147_483_647


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainBody(Body):
    """A body that fills its bytes. `is_framed` says of other bytes that they are a registry's frame and such a body."""

    is_framed: Step


@lru_cache(maxsize=256)
def plain_body(reader: Reader, target: Struct, heads: tuple[bytes, ...] | None) -> PlainBody:
    """Decode bytes that are one body of a writer schema, and nothing more, into `target`.

    With `heads`, those of the declared schemas, the bytes may also be framed, which makes them no rows. Some frames can be read as
    the beginning of a body. So bytes are framed, too, if what follows a registry's frame, or that of single-object encoding, is a
    body by itself, or if they begin with one of the `heads`. None says that no frame is there.
    """
    schemas = _with_mark(reader.writer), _with_mark(reader.reader)

    def parse(value: Column) -> Column:
        return _read(value, *schemas)

    def after_frame(value: Column, parsed: Column) -> Column:
        rest = F.when(begins_with_small_id(value), _after_frame(value))
        rest = rest.when(begins_as_single_object(value), F.substring(value, F.lit(HEAD_BYTES + 1), F.lit(_ALL)))
        return _read(rest, *schemas)

    def body(value: Column, parsed: Column, *after: Column) -> Column:
        is_body = _is_complete(value, parsed)
        for of_frame in after:
            is_framed = F.coalesce(_is_complete(value, of_frame), F.lit(False))
            is_body &= ~(is_framed | F.substring(value, 1, HEAD_BYTES).isin([bytearray(head) for head in heads or ()]))
        return F.when(is_body, parsed["body"])

    steps = (parse, body) if heads is None else (parse, after_frame, body)
    made = PlainBody(steps=steps, is_framed=lambda value: _is_framed(value, *schemas))
    make = row_step(reader, target)
    return made if make is None else made.then(lambda value, *steps: make(steps[-1]))


def begins_as_single_object(value: Column) -> Column:
    """Return whether bytes begin with what may be the mark of single-object encoding and a fingerprint."""
    return (F.length(value) >= HEAD_BYTES) & (F.substring(value, 1, len(MAGIC)) == F.lit(bytearray(MAGIC)))


def _is_framed(value: Column, writer: str, reader: str) -> Column:
    """Return whether bytes are a registry's frame and a body after it; a body that is broken may begin as a frame, too."""
    rest = F.when(begins_with_small_id(value), _after_frame(value))
    return F.coalesce(_is_complete(value, _read(rest, writer, reader)), F.lit(False))


def _after_frame(value: Column) -> Column:
    return F.substring(value, F.lit(PREFIX_BYTES + 1), F.lit(_ALL))


def _read(value: Column, writer: str, reader: str) -> Column:
    return from_avro(F.concat(value, F.lit(bytearray(END))), writer, {**OPTIONS, "avroSchema": reader})


def _is_complete(value: Column, parsed: Column) -> Column:
    mark = F.lit(bytearray(END))
    return (parsed["end"] == mark) & ~F.contains(value, mark)


def _with_mark(schema: str) -> str:
    """Return the schema of records of this schema, with the mark after them."""
    end = {"type": "fixed", "name": "plain.end", "size": len(END)}
    fields = [{"name": "body", "type": json.loads(schema)}, {"name": "end", "type": end}]
    return json.dumps({"type": "record", "name": "plain.t", "fields": fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAvro(Headerless):
    """The decoder of bodies of one declared schema."""

    def has_row(self, row: Column) -> Column:
        """Return whether the body is a row that can be read."""
        return is_readable(row, self.side.target)

    def framed(self) -> Iterable[tuple[Column, Reason]]:
        """Return whether a registry's client wrote the bytes, or one of single-object encoding."""
        is_registered = is_framed(self.side.bytes, [self.body]) | self.side.header.isNotNull()
        yield is_registered, Reason.REGISTRY_FRAME
        yield begins_as_single_object(self.side.bytes), Reason.SINGLE_OBJECT


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleObjectAvro(Framed):
    """The decoder of single-object encoding: a frame is its mark and the fingerprint of a declared schema."""

    def framed(self, records: DataFrame) -> DataFrame:
        """Return the records with the frames, and the bodies after them."""
        value = self.side.bytes
        frame = F.when(begins_as_single_object(value), F.substring(value, 1, HEAD_BYTES))
        records = records.withColumn(self.side.part("frame"), frame)
        return records.withColumn(self.side.part("body"), F.substring(value, F.lit(HEAD_BYTES + 1), F.lit(_ALL)))

    def has_row(self, row: Column) -> Column:
        """Return whether the body is a row that can be read."""
        return is_readable(row, self.side.target)

    def reason(self) -> Column:
        """Return whether the frame is missing, of another schema, or the body is invalid."""
        has_frame, is_known = self.side.frame.isNotNull(), self.is_one_of(self.frames.keys())
        reason = tombstone(self.side.bytes)
        is_registered = is_framed(self.side.bytes, self.bodies.values())
        reason = reason.when(~has_frame & is_registered, Reason.REGISTRY_FRAME.value)
        reason = reason.when(~has_frame, Reason.NO_FINGERPRINT.value).when(self.verdict.isNotNull(), self.verdict)
        return reason.when(~is_known, Reason.UNKNOWN_FINGERPRINT.value).otherwise(Reason.UNDECODABLE.value)

    open_frames = Decoder.open_frames  # none: each fingerprint is declared, or unknown for good


def is_framed(value: Column, bodies: Iterable[Body]) -> Column:
    """Return whether bytes are a registry's frame and one of these bodies."""
    tests = [body.is_framed(value) for body in bodies if isinstance(body, PlainBody)]
    return reduce(Column.__or__, tests, F.lit(False))
