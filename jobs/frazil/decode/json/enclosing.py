"""The envelope that a JSON body is read in, so that bytes after its document are found: `from_json` stops after the first one.

An object gets one more member, the last one: the body without its closing brace, then `,"N":true}`. The body is one object if the
document that is read has this member. What need not be an object has no room for another member, and is read, at some more cost,
inside `{"N":{"v":[BODY],"N":[]}}`: it is one document if the inner object has exactly those two members, and the list one element.
Only a body that knew the name `N` could end one of them and begin another, and each process draws a new `N`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.decode.decoder import Step

NAME = f"frazil_{secrets.token_hex(8)}"
"""A name that no body has, but by chance."""

CORRUPT = f"{NAME}_corrupt"
"""The column of `Envelope.type` that is null exactly if what `from_json` reads of the text is JSON of that type."""


_DEEPEST = "998"
"""Levels of an object that lands. Jackson has 1,000, and elsewhere the envelope has some of them."""
_CLOSING = bytearray(b"}")
_NOT_BEFORE = [bytearray(before + b"}") for before in (b"{", b" ", b"\t", b"\r", b"\n")]
_WITHOUT_CLOSING = r"(?s)^(.*)\}[ \t\r\n]*\z"
_HAS_NO_MEMBER = r"^[ \t\r\n]*\{[ \t\r\n]*\z"


@dataclass(frozen=True, slots=True)
class Envelope:
    """The text around a body, and the type it is read as. `around` returns the text for a body's bytes; null if there is no body,
    or it is not UTF-8.

    Of what was read with these `options`, `document` is the body's, of type `document_type`. `is_alone` is true if there is nothing
    else, else false or null.
    """

    around: Step
    type: T.StructType
    document_type: T.DataType
    document: Step
    is_alone: Step
    options: Mapping[str, str]


def around_objects(written: T.StructType) -> Envelope:
    """Return the envelope for bodies that must be objects of this type; the document has two more fields, the last ones."""
    mark = f'"{NAME}":true}}'
    members = T.StructType([*written.fields, T.StructField(NAME, T.BooleanType())])
    read_as = T.StructType([*members.fields, T.StructField(CORRUPT, T.StringType())])

    def around(body: Column) -> Column:
        is_plain = F.endswith(body, F.lit(_CLOSING)) & ~F.substring(body, -2, 2).isin(_NOT_BEFORE)
        opened = _text(F.substring(body, F.lit(1), F.length(body) - 1))
        found = F.regexp_extract(_text(body), _WITHOUT_CLOSING, 1)
        comma = F.when(found.rlike(_HAS_NO_MEMBER), "").otherwise(",")
        return F.when(is_plain, F.concat(opened, F.lit(f",{mark}"))).otherwise(F.concat(found, comma, F.lit(mark)))

    return Envelope(around, read_as, read_as, lambda read: read, lambda read: read[NAME], {"maxNestingDepth": _DEEPEST})


def around_anything(written: T.DataType) -> Envelope:
    """Return the envelope for bodies of any type."""
    members = T.MapType(T.StringType(), T.ArrayType(written))

    read_as = T.StructType([T.StructField(NAME, members), T.StructField(CORRUPT, T.StringType())])

    def around(body: Column) -> Column:
        return F.concat(F.lit(f'{{"{NAME}":{{"v":['), _text(body), F.lit(f'],"{NAME}":[]}}}}'))

    def documents(read: Column) -> Column:
        return F.get(F.map_values(read[NAME]), F.lit(0))

    def is_alone(read: Column) -> Column:
        names = F.array(F.lit("v"), F.lit(NAME))
        return (F.map_keys(read[NAME]) == names) & (F.size(documents(read)) == 1)

    return Envelope(around, read_as, written, lambda read: F.get(documents(read), F.lit(0)), is_alone, {})


def _text(body: Column) -> Column:
    return F.try_validate_utf8(body.cast("string"))
