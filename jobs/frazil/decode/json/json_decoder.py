"""JSON bodies to rows, by one `from_json` in the JVM: a body that does not fit is marked, never half landed.

`from_json` is strict about most types, and lenient in places that would change a value or hide a problem: it stops reading
after the first document, takes numbers and dates for timestamps, rounds decimals, drops the quotes of a string that should
stay JSON, and replaces bytes that are not UTF-8. So the body is read inside an envelope (`enclosing`), and values of
those types are read as text or as a variant and converted here. What it makes of numbers that are too large, and of escapes
that are half a character, is checked in the text (`doubts`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.decode.decoded_columns import without
from frazil.decode.decoder import Body, Unframed
from frazil.decode.frames.framed import Registered
from frazil.decode.frames.wire_format import begins_as_registered
from frazil.decode.json import doubts, integers
from frazil.decode.json.enclosing import CORRUPT, Envelope, around_anything, around_objects
from frazil.decode.json.reading import Reading, has_integers, has_json, has_times, is_ambiguous, is_exact_text, written
from frazil.decode.spark_types import spark_type
from frazil.schemas.declared_columns import UNKNOWN
from frazil.schemas.json.json_schema import VALUE_COLUMN
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Struct

_MEMBERS = "map<string, variant>"
_NOT_KEPT = ""


LONGEST_STRING = 1 << 30
"""Characters of one string value; Jackson's own limit, 20 million, is less than a topic may allow."""

OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
    "allowSingleQuotes": "false",
    "maxStringLen": str(LONGEST_STRING),
}
"""The options of each reading: text that is not JSON, or not of the type, is in the column `CORRUPT`."""


SPACE = r"[ \t\r\n]*"
"""White space of JSON, as a regular expression."""
LONGEST_NULL = 64
"""Bytes at the end of a value that are looked at: no null is longer."""


def _unknown_fields(known: Sequence[str]) -> tuple[Callable[..., Column], Callable[..., Column]]:
    """Return the first two steps of a body that keeps fields whose names are not known.

    They make the document, and the JSON text of these fields: null without any, empty if they cannot be kept unchanged. `from_json`
    ignores what its type does not name. So the names at the top of the document are compared, and only a document with another
    name is read once more, each of its members as a variant. Spark interprets this, so each step is a projection of its own.
    """

    def others(body: Column, document: Column) -> Column:
        names = F.array(*map(F.lit, known)).cast("array<string>")
        # `json_object_keys` is null for NaN and the like, which `from_json` reads.
        lenient = F.map_keys(F.from_json(document, "map<string, string>", OPTIONS))
        has_unknown = F.size(F.array_except(F.coalesce(F.json_object_keys(document), lenient), names)) > 0
        members = F.from_json(doubts.with_long_integers_as_strings(document), _MEMBERS, OPTIONS)
        found = F.to_json(F.map_filter(members, lambda name, _: ~F.array_contains(names, name)))
        return F.when(has_unknown, F.coalesce(F.when(doubts.is_json(document), found), F.lit(_NOT_KEPT)))

    return lambda body: F.try_validate_utf8(body.cast("string")), others


@lru_cache(maxsize=1024)
def json_body(
    target: Struct, *, single_value: bool = False, refuses_null: bool = False, keeps_unknown: bool = False
) -> Body:
    """Return how JSON is converted to the columns of `target`, and `_decoded`: true, or the JSON is not such a row.

    Properties are found by `Field.source`, case-sensitively; what `target` does not name is ignored, what the body does
    not have is null. With `single_value` (see `json_schema.is_single_value`) the document is the column of the source
    `value`, and every other column is null. `_decoded` is false or null, and the other columns mean nothing, if the body is
    null, is not one JSON document in UTF-8, is not an object (unless `single_value`), or has a value of another type.

    With `refuses_null` a single value that is null is of another type.

    With `keeps_unknown` the column `_unknown` has the other properties as JSON text; a body is rejected if one of them is not kept
    as it is.

    Writer schemas do not matter, only the target does: all versions of a subject have one and the same body. Only the thorough
    body takes integers that are written with a fraction of zero or an exponent.
    """
    columns_read = Struct(tuple(f for f in target.fields if not (keeps_unknown and f.name == UNKNOWN)))
    before = _unknown_fields([field.source for field in columns_read.fields]) if keeps_unknown else ()
    reading = Reading(by_source=not is_ambiguous(columns_read))
    document = (
        next((f for f in target.fields if f.source == VALUE_COLUMN), None) if single_value else Field("", columns_read)
    )
    envelope = _envelope(document, single_value=single_value)
    options = {**OPTIONS, **envelope.options}

    def text(body: Column) -> Column:
        around = envelope.around(body)
        return doubts.with_long_integers_as_strings(around) if has_json(document) else around

    def parse(body: Column, text: Column) -> Column:
        return F.when(text.isNotNull(), F.from_json(text, envelope.type, options))

    def again(body: Column, text: Column, first: Column) -> Column:
        return F.when(first[CORRUPT].isNotNull(), integers.read(text, envelope.type, options))

    def settled(body: Column, text: Column, first: Column, second: Column) -> Column:
        return F.when(first[CORRUPT].isNull(), first).otherwise(integers.settled(second, envelope.type, text))

    def raw_of(read: Column) -> Column:
        raw = envelope.document(read)
        if reading.by_source:
            return raw
        return raw.cast(_envelope(document, single_value=single_value, by_source=False).document_type)

    def times(body: Column, *reads: Column) -> Column:
        """Convert times in a projection of their own: Spark repeats an expression that is used several times below a `CASE`."""
        assert document is not None
        return reading.times_of(raw_of(reads[-1]), document)

    last = (times,) if document is not None and has_times(document) else ()

    def row(body: Column, *reads: Column) -> Column:
        text, read = reads[len(before)], reads[-1 - len(last)]
        raw, found = raw_of(read), reads[-1] if last else None
        checks = [read[CORRUPT].isNull() & envelope.is_alone(read)]
        if document is not None:
            checks += reading.checks_of(raw, document, text, found)
            checks += reading.doubts(raw, document, text)
        if single_value:
            if refuses_null:
                checks.append(~is_null(body))
            columns = [
                (reading.value_of(raw, f, found) if f is document else F.lit(None).cast(spark_type(f.type))).alias(
                    f.name
                )
                for f in target.fields
            ]
        else:
            made = {field.name: reading.field(raw, field, found) for field in columns_read.fields}
            if keeps_unknown:
                made[UNKNOWN] = doubts.digits(reads[1]).alias(UNKNOWN)
                checks.append(reads[1].isNull() | (reads[1] != _NOT_KEPT))
            columns = [made[field.name] for field in target.fields]
        decoded = F.coalesce(reduce(Column.__and__, checks), F.lit(False))
        return F.struct(*columns, decoded.alias("_decoded"))

    def after(step: Callable[..., Column]) -> Callable[..., Column]:
        return lambda body, *reads: step(body, *reads[len(before) :])

    thorough = (
        Body((*before, *map(after, (text, parse, again, settled, *last)), row)) if has_integers(document) else None
    )
    return Body((*before, *map(after, (text, parse, *last)), row), thorough)


def _envelope(document: Field | None, *, single_value: bool, by_source: bool = True) -> Envelope:
    if document is None:
        return around_anything(T.VariantType())
    as_variant = document.as_json or is_exact_text(document)
    as_read = written(document.type, as_variant=as_variant, by_source=by_source)
    if single_value:
        return around_anything(as_read)
    assert isinstance(as_read, T.StructType)
    return around_objects(as_read)


def is_null(value: Column, *, frame: str = "") -> Column:
    """Return whether a value, after a frame that matches the expression, is JSON's null.

    Kafka Connect's JSON converters write one where a record has a schema and no value: such is a delete of
    `ExtractNewRecordState`, and in keyed tables of any producer. In append tables it is no value where the schema allows it:
    Confluent's converter writes an optional struct as `oneOf` of null and an object.
    """
    space = SPACE if not frame else ""
    return (F.length(value) <= LONGEST_NULL) & value.cast("string").rlike(f"(?s)^{frame}{space}null{space}$")


def is_framed_null(value: Column) -> Column:
    """Return whether a value is JSON's null, framed or not; the four bytes of a frame are as many characters, or fewer."""
    return is_null(value, frame=r"(\x00.{1,4})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainJson(Unframed):
    """The decoder of JSON whose columns are declared, or that is one column."""

    null = staticmethod(is_null)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainJsonSchema(PlainJson):
    """The decoder of JSON that one declared schema describes."""

    def framed(self) -> Iterable[tuple[Column, Reason]]:
        """Return whether a registry's client wrote the bytes: no JSON begins so."""
        yield begins_as_registered(self.side.bytes), Reason.REGISTRY_FRAME


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredJson(Registered):
    """The decoder of JSON by the registry's schemas. A null after one of the `nullable` frames is no value."""

    nullable: Collection[bytes] = ()

    def framed(self, records: DataFrame) -> DataFrame:
        """Return the records with their frames and bodies, and without a value where it is null and its schema allows that."""
        records = Registered.framed(self, records)
        if not self.nullable:
            return records
        is_none = self.is_one_of(self.nullable) & F.coalesce(is_null(self.side.body), F.lit(False))
        return without(records, self.side.name, is_none)

    def with_frames(self, records: DataFrame) -> DataFrame:
        """Return the records with their frames and bodies, and their values as Kafka holds them."""
        return Registered.framed(self, records)

    def with_deletes(self) -> Self:
        """Return the decoder of values of which a null is none, whatever its schema says."""
        return replace(self, nullable=tuple(self.frames))
