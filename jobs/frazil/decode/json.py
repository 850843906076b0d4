"""JSON bodies to rows, by one `from_json` in the JVM: a body that does not fit is marked, never half landed.

`from_json` is strict about most types, and lenient in places that would change a value or hide a problem: it stops reading
after the first document, takes numbers and dates for timestamps, rounds decimals, drops the quotes of a string that should
stay JSON, and replaces bytes that are not UTF-8. So the body is read inside an envelope (`json_envelope`), and values of
those types are read as text or as a variant and converted here. What it makes of numbers that are too large, and of escapes
that are half a character, is looked at again in the text (`json_doubts`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.decode import json_doubts, json_integers
from frazil.decode.decoder import Decoder
from frazil.decode.json_decimals import decimal, is_exact, is_text
from frazil.decode.json_envelope import CORRUPT, Envelope, around_anything, around_objects
from frazil.decode.json_types import (
    PAST_MICROSECONDS,
    Has,
    has_no_checks,
    is_ambiguous,
    is_exact_text,
    is_read_as_is,
    written,
)
from frazil.decode.json_unknown import UnknownFields
from frazil.decode.leaves import Leaves, leaves
from frazil.decode.spark_types import spark_type
from frazil.decode.years import in_years
from frazil.schemas.json_schema import VALUE_COLUMN
from frazil.schemas.json_times import WRITTEN
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type
from frazil.schemas.unknown_fields import UNKNOWN

LONGEST_STRING = 1 << 30
"""Characters of one string value; Jackson's own limit, 20 million, is less than a topic may allow."""

_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
    "allowSingleQuotes": "false",
    "maxStringLen": str(LONGEST_STRING),
}


_TIMES = (Primitive(Kind.TIMESTAMP), Primitive(Kind.TIMESTAMPTZ))


@lru_cache(maxsize=1024)
def json_decoder(target: Struct, *, single_value: bool = False, keeps_unknown: bool = False) -> Decoder:
    """Return how JSON is converted to the columns of `target`, and `_decoded`: true, or the JSON is not such a row.

    Properties are found by `Field.source`, case-sensitively; what `target` does not name is ignored, what the body does
    not have is null. With `single_value` (see `json_schema.is_single_value`) the document is the column of the source
    `value`, and every other column is null. `_decoded` is false or null, and the other columns mean nothing, if the body is
    null, is not one JSON document in UTF-8, is not an object (unless `single_value`), or has a value of another type.

    With `keeps_unknown` the column `_unknown` has the other properties as JSON text; a body is rejected if one of them is not kept
    as it is.

    Writer schemas do not matter, only the target does: all versions of a subject have one and the same body. Only the thorough
    body takes integers that are written with a fraction of zero or an exponent.
    """
    columns_read = Struct(tuple(f for f in target.fields if not (keeps_unknown and f.name == UNKNOWN)))
    unknown = UnknownFields([field.source for field in columns_read.fields], _OPTIONS)
    reading = _Reading(by_source=not is_ambiguous(columns_read))
    document = (
        next((f for f in target.fields if f.source == VALUE_COLUMN), None) if single_value else Field("", columns_read)
    )
    envelope = _envelope(document, single_value=single_value)
    has, options = Has.of(document), {**_OPTIONS, **envelope.options}

    def text(body: Column) -> Column:
        around = envelope.around(body)
        return json_doubts.with_long_integers_as_strings(around) if has.json else around

    def parse(body: Column, text: Column) -> Column:
        return F.when(text.isNotNull(), F.from_json(text, envelope.type, options))

    def again(body: Column, text: Column, first: Column) -> Column:
        return F.when(first[CORRUPT].isNotNull(), json_integers.read(text, envelope.type, options))

    def settled(body: Column, text: Column, first: Column, second: Column) -> Column:
        return F.when(first[CORRUPT].isNull(), first).otherwise(json_integers.settled(second, envelope.type, text))

    def row(body: Column, *reads: Column) -> Column:
        text, read = reads[2 if keeps_unknown else 0], reads[-1]
        raw = envelope.document(read)
        if not reading.by_source:
            raw = raw.cast(_envelope(document, single_value=single_value, by_source=False).document_type)
        checks = [read[CORRUPT].isNull() & envelope.is_alone(read)]
        if document is not None:
            checks += reading.checks_of(raw, document, text)
            checks += reading.doubts(raw, document, text)
        if single_value:
            columns = [(reading.value_of(raw, f) if f is document else _null(f)).alias(f.name) for f in target.fields]
        else:
            made = {field.name: reading.field(raw, field) for field in columns_read.fields}
            if keeps_unknown:
                made[UNKNOWN] = unknown.text(reads[1]).alias(UNKNOWN)
                checks.append(unknown.is_kept(reads[1]))
            columns = [made[field.name] for field in target.fields]
        decoded = F.coalesce(reduce(Column.__and__, checks), F.lit(False))
        return F.struct(*columns, decoded.alias("_decoded"))

    before = unknown.before if keeps_unknown else tuple[Callable[..., Column], ...]
    thorough = Decoder((*before((text, parse, again, settled)), row)) if has.integers else None
    return Decoder((*before((text, parse)), row), thorough)


def _envelope(document: Field | None, *, single_value: bool, by_source: bool = True) -> Envelope:
    if document is None:
        return around_anything(T.VariantType())
    as_variant = document.as_json or is_exact_text(document)
    as_read = written(document.type, as_variant=as_variant, by_source=by_source)
    if single_value:
        return around_anything(as_read)
    assert isinstance(as_read, T.StructType)
    return around_objects(as_read)


def _null(field: Field) -> Column:
    return F.lit(None).cast(spark_type(field.type))


class _Reading:
    """From what `from_json` gives to columns; structs have their fields by source, or by name if that is ambiguous."""

    def __init__(self, *, by_source: bool) -> None:
        self.by_source = by_source

    def field(self, struct: Column, field: Field) -> Column:
        """Return the field as a column of its name."""
        return self.value_of(self._raw(struct, field), field).alias(field.name)

    def value_of(self, raw: Column, field: Field) -> Column:
        """Return the field's value; null, or anything, where `checks_of` fail."""
        if field.as_json:
            return F.when(~F.is_variant_null(raw), json_doubts.digits(F.to_json(raw)))
        if is_exact_text(field):
            return F.try_variant_get(raw, "$", "string")
        return self.value(raw, field.type)

    def value(self, raw: Column, of: Type) -> Column:
        """Return a value of this type; null, or anything, where `checks` fail."""
        if is_read_as_is(of):
            return raw if not isinstance(of, Struct | ListOf | MapOf) else raw.cast(spark_type(of))
        match of:
            case Primitive(Kind.TIMESTAMP | Kind.TIMESTAMPTZ):  # Spark knows `T` and `Z` in upper case only
                return F.upper(raw).try_cast(spark_type(of))
            case Primitive():
                return raw.try_cast(spark_type(of))
            case Decimal():
                return decimal(raw, of)
            case ListOf(element):
                return F.transform(raw, lambda item: self.value(item, element))
            case MapOf(_, value):
                return F.transform_values(raw, lambda _, item: self.value(item, value))
            case Struct(fields):
                return F.when(raw.isNotNull(), F.struct(*[self.field(raw, field) for field in fields]))

    def checks_of(self, raw: Column, field: Field, text: Column) -> list[Column]:
        """Return what must hold, none of it null, for the field's value to be what was written in the document `text`."""
        if field.as_json:
            return []
        if is_exact_text(field):
            return [raw.isNull() | F.is_variant_null(raw) | is_text(raw)]
        checks = self.checks(raw, field.type, text)
        if field.is_exact and field.type in _TIMES:
            checks.append(F.coalesce(~raw.rlike(PAST_MICROSECONDS), F.lit(True)))
        return checks

    def checks(self, raw: Column, of: Type, text: Column) -> list[Column]:
        """Return what must hold, none of it null, for a value of this type to be what was written."""
        match of:
            case Primitive(kind) if kind in WRITTEN:
                value = self.value(raw, of)
                is_value = value.isNotNull()
                if kind is Kind.TIMESTAMPTZ:  # by its offset it can leave the years that four digits write
                    is_value = F.coalesce(in_years(value, kind), F.lit(False))
                return [raw.isNull() | (raw.rlike(WRITTEN[kind]) & is_value)]
            case Decimal():
                return [raw.isNull() | F.is_variant_null(raw) | F.coalesce(is_exact(raw, of, text), F.lit(False))]
            case ListOf(element):
                return self._every(raw, element, text)
            case MapOf(_, value):
                keys = F.map_keys(raw)
                once = F.coalesce(F.size(F.array_distinct(keys)) == F.size(keys), F.lit(True))
                return [once, *self._every(F.map_values(raw), value, text)]
            case Struct(fields):
                return [c for f in fields for c in self.checks_of(self._raw(raw, f), f, text)]
            case _:
                return []

    def doubts(self, raw: Column, document: Field, text: Column) -> list[Column]:
        """Return what must hold, none of it null, if no value in the document was changed unnoticed."""
        has, as_read = Has.of(document), self._as_read(document.type)
        is_variant = document.as_json or is_exact_text(document)
        floats, doubles, strings = (
            Leaves() if is_variant else leaves(raw, as_read, {kind}) for kind in (Kind.FLOAT, Kind.DOUBLE, Kind.STRING)
        )
        strings = Leaves((*strings.ones, *self._exact_texts(raw, document)), strings.arrays)
        checks = json_doubts.is_finite(floats, doubles, text)
        if has.json:
            checks.append(json_doubts.is_json(text))
            if strings:
                checks.append(json_doubts.has_no_digits(strings, text))
        elif strings:
            checks.append(json_doubts.is_text(strings, text))
        return checks

    def _as_read(self, of: Type) -> Type:
        """Return the type with the names that `from_json` was given, without what is read as a variant."""
        match of:
            case ListOf(element):
                return ListOf(self._as_read(element))
            case MapOf(key, value):
                return MapOf(key, self._as_read(value))
            case Struct(fields):
                plain = (f for f in fields if not f.as_json and not is_exact_text(f))
                return Struct(
                    tuple(Field(f.source if self.by_source else f.name, self._as_read(f.type)) for f in plain)
                )
            case _:
                return of

    def _exact_texts(self, raw: Column, field: Field) -> list[Column]:
        """Return the strings of a key; those of an event are in structs."""
        if is_exact_text(field):
            return [self.value_of(raw, field)]
        inner = field.type.fields if isinstance(field.type, Struct) and not field.as_json else ()
        return [text for f in inner for text in self._exact_texts(self._raw(raw, f), f)]

    def _raw(self, struct: Column, field: Field) -> Column:
        return struct.getField(field.source if self.by_source else field.name)

    def _every(self, items: Column, of: Type, text: Column) -> list[Column]:
        if has_no_checks(of):
            return []
        every = F.forall(items, lambda item: reduce(Column.__and__, self.checks(item, of, text)))
        return [F.coalesce(every, F.lit(True))]
