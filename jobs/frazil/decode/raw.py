"""Formats without a frame, which have one column: text, bytes, and JSON that no schema describes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.decoder import Step
from frazil.decode.decoding import DECODED
from frazil.decode.json.enclosing import NAME
from frazil.decode.spark_types import spark_type
from frazil.schemas.types import Field


def text(column: str = "value") -> Step:
    """Return the decoder of UTF-8 text as one column."""

    def body(value: Column) -> Column:
        words = value.cast("string")
        return F.struct(words.alias(column), F.when(F.is_valid_utf8(words), F.lit(True)).alias(DECODED))

    return body


def raw(column: str = "value") -> Step:
    """Return the decoder of bytes as one column."""
    return lambda value: F.struct(value.alias(column), F.when(value.isNotNull(), F.lit(True)).alias(DECODED))


def among(step: Step, name: str, columns: Sequence[Field]) -> Step:
    """Return the decoder of one column as a decoder of all `columns`, of which the others are null."""

    def body(value: Column) -> Column:
        row = step(value)
        nulls = {c.name: F.lit(None).cast(spark_type(c.type)) for c in columns if c.name != name}
        return F.struct(*(nulls.get(c.name, row[name]).alias(c.name) for c in columns), row[DECODED].alias(DECODED))

    return step if len(columns) == 1 else body


def json_text(column: str = "value") -> Step:
    """Return the decoder of schemaless JSON as one column of validated text.

    Spark stops reading after a document. So `[BODY,"N"]` is read, whose second element is that name, which no body has, exactly if
    the body is one document.
    """

    def body(value: Column) -> Column:
        words = value.cast("string")
        read = F.try_parse_json(F.concat(F.lit("["), words, F.lit(f',"{NAME}"]')))
        is_json = F.is_valid_utf8(words) & (F.try_variant_get(read, "$[1]", "string") == NAME)
        return F.struct(words.alias(column), F.when(is_json, F.lit(True)).alias(DECODED))

    return body
