"""Formats without a frame, which have one column: text, bytes, and JSON that no schema describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.formats import Bytes, Format, Json, Text
from frazil.decode.decoded_columns import DECODED
from frazil.decode.decoder import Body, Step, Unframed
from frazil.decode.json.enclosing import NAME
from frazil.decode.json.json_decoder import PlainJson
from frazil.decode.spark_types import spark_type
from frazil.decode.writers.record_type import RecordType
from frazil.decode.writers.writer_schemas import WriterSchemas
from frazil.envelopes.envelope import NO_ENVELOPE, Envelope
from frazil.errors import IncompatibleSchema
from frazil.schemas.evolution.merge import same_field
from frazil.schemas.types import Field, Kind, Primitive, Struct


def text(value: Column) -> tuple[Column, Column]:
    """Return UTF-8 text, and whether the bytes are that."""
    words = value.cast("string")
    return words, F.is_valid_utf8(words)


def raw(value: Column) -> tuple[Column, Column]:
    """Return the bytes, and whether there are any."""
    return value, value.isNotNull()


def json_text(value: Column) -> tuple[Column, Column]:
    """Return the text of schemaless JSON, and whether the bytes are that.

    Spark stops reading after a document. So `[BODY,"N"]` is read, whose second element is that name, which no body has, exactly if
    the body is one document.
    """
    words = value.cast("string")
    read = F.try_parse_json(F.concat(F.lit("["), words, F.lit(f',"{NAME}"]')))
    return words, F.is_valid_utf8(words) & (F.try_variant_get(read, "$[1]", "string") == NAME)


RAW = {
    Json.kind: (Kind.STRING, json_text, PlainJson),
    Text.kind: (Kind.STRING, text, Unframed),
    Bytes.kind: (Kind.BINARY, raw, Unframed),
}
"""The type of the column, what it holds and whether the bytes are that, and the decoder."""


def row_step(of: Format, name: str, columns: Sequence[Field]) -> Step:
    """Return what makes rows of these columns, of which all but the one of this name are null."""

    def row(value: Column) -> Column:
        held, is_valid = RAW[of.kind][1](value)
        made = (held if c.name == name else F.lit(None).cast(spark_type(c.type)) for c in columns)
        parts = (column.alias(c.name) for column, c in zip(made, columns, strict=True))
        return F.struct(*parts, F.when(is_valid, F.lit(True)).alias(DECODED))

    return row


class RawWriters(WriterSchemas):
    """The one writer of a format without schemas."""

    has_columns = False

    def __init__(self, of: Format, envelope: Envelope = NO_ENVELOPE, *, is_key: bool = False) -> None:
        super().__init__(None, envelope, is_key=is_key)
        self._format, value = of, Field("value", Primitive(RAW[of.kind][0]))

        def body(target: Struct, *, is_closed: bool = False) -> Body:
            columns = target.fields  # a table may have more: those of a key, or of another engine
            return Body((row_step(of, (same_field(value, columns) or columns[0]).name, columns),))

        self.types[0] = RecordType(name="", row=Struct((value,)), is_single_value=True, body=body)

    def decoder(self, target: Struct, unfit: Mapping[int, IncompatibleSchema], *, is_closed: bool = False) -> Unframed:
        """Return the decoder of the one column."""
        return RAW[self._format.kind][2](side=self.side(target), body=self.types[0].body(target))
