"""JSON bodies to rows, by one `from_json` in the JVM: a body that does not fit is marked, never half landed.

`from_json` is strict about most types, and lenient in five places that would change a value or hide a problem: it stops
reading after the first document, takes numbers and dates for timestamps, rounds decimals, drops the quotes of a string
that should stay JSON, and replaces bytes that are not UTF-8. So the body is read inside an envelope (`json_envelope`), and
values of those types are read as text or as a variant and converted here.
"""

from __future__ import annotations

from functools import lru_cache, reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.ingest.body import Body
from frazil.ingest.json_envelope import CORRUPT, Envelope, around_anything, around_objects
from frazil.ingest.spark_types import spark_type
from frazil.schemas.json_schema import WHOLE
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

LONGEST_STRING = 1 << 30
"""Characters of one string value; Jackson's own limit, 20 million, is less than a topic may allow."""

_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
    "allowSingleQuotes": "false",
    "maxStringLen": str(LONGEST_STRING),
}
_DAY = r"\d{4}-\d{2}-\d{2}"
_TIME = r"[T ]\d{2}:\d{2}:\d{2}(\.\d+)?"
# RFC 3339, which JSON Schema names, and the offset without a colon, which Java's older libraries write.
_WRITTEN = {
    Kind.DATE: f"^{_DAY}$",
    Kind.TIMESTAMP: f"^{_DAY}{_TIME}$",
    Kind.TIMESTAMPTZ: rf"^{_DAY}{_TIME}(Z|[+-]\d{{2}}:?\d{{2}})$",
}


@lru_cache(maxsize=1024)
def json_body(target: Struct, *, whole: bool = False) -> Body:
    """How JSON becomes the columns of `target`, and `_decoded`: true, or the JSON is not such a row.

    Properties are found by `Field.source`, case-sensitively; what `target` does not name is ignored, what the body does
    not have is null. With `whole` (see `json_schema.is_whole`) the document is the column of the source `value`, and
    every other column is null. `_decoded` is false or null, and the other columns mean nothing, if the body is null, is
    not one JSON document in UTF-8, is not an object (unless `whole`), or has a value of another type.

    Writer schemas do not matter, only the target does: all versions of a subject are one and the same body.
    """
    reading = _Reading(by_source=not _is_ambiguous(target))
    document = next((f for f in target.fields if f.source == WHOLE), None) if whole else Field("", target)
    envelope = _envelope(document, whole=whole)

    def text(body: Column) -> Column:
        return envelope.around(F.try_validate_utf8(body.cast("string")))

    def parse(text: Column) -> Column:
        return F.when(text.isNotNull(), F.from_json(text, envelope.type, _OPTIONS))

    def row(read: Column) -> Column:
        documents = envelope.documents(read)
        if not reading.by_source:
            documents = documents.cast(_envelope(document, whole=whole, by_source=False).listed)
        raw = F.get(documents, F.lit(0))
        checks = [read[CORRUPT].isNull() & envelope.is_alone(read)]
        if document is not None:
            checks += reading.checks(raw, document.type, as_json=document.as_json)
        if whole:
            columns = [
                (reading.value(raw, f.type, as_json=f.as_json) if f is document else _null(f)).alias(f.name)
                for f in target.fields
            ]
        else:
            columns = [reading.field(raw, field) for field in target.fields]
            checks.append(raw.isNotNull())
        decoded = F.coalesce(reduce(Column.__and__, checks), F.lit(False))
        return F.struct(*columns, decoded.alias("_decoded"))

    return Body((text, parse, row))


def _envelope(document: Field | None, *, whole: bool, by_source: bool = True) -> Envelope:
    if document is None:
        return around_anything(T.VariantType())
    written = _written(document.type, as_json=document.as_json, by_source=by_source)
    if whole:
        return around_anything(written)
    assert isinstance(written, T.StructType)
    return around_objects(written)


def _null(field: Field) -> Column:
    return F.lit(None).cast(spark_type(field.type))


class _Reading:
    """From what `from_json` gives to columns; structs have their fields by source, or by name if that is ambiguous."""

    def __init__(self, *, by_source: bool) -> None:
        self.by_source = by_source

    def field(self, struct: Column, field: Field) -> Column:
        """The field as a column of its name."""
        return self.value(self._raw(struct, field), field.type, as_json=field.as_json).alias(field.name)

    def value(self, raw: Column, of: Type, *, as_json: bool = False) -> Column:
        """The column's value; null, or anything, where `checks` fail."""
        if as_json:
            return F.when(~F.is_variant_null(raw), F.to_json(raw))
        if _is_read_as_is(of):
            return raw if not isinstance(of, Struct | ListOf | MapOf) else raw.cast(spark_type(of))
        match of:
            case Primitive():
                return raw.try_cast(spark_type(of))
            case Decimal():
                return F.try_variant_get(raw, "$", f"decimal({of.precision},{of.scale})")
            case ListOf(element):
                return F.transform(raw, lambda item: self.value(item, element))
            case MapOf(_, value):
                return F.transform_values(raw, lambda _, item: self.value(item, value))
            case Struct(fields):
                return F.when(raw.isNotNull(), F.struct(*[self.field(raw, field) for field in fields]))

    def checks(self, raw: Column, of: Type, *, as_json: bool = False) -> list[Column]:
        """What must hold, none of it null, for the value to be what was written."""
        if as_json:
            return []
        match of:
            case Primitive(kind) if kind in _WRITTEN:
                return [raw.isNull() | (raw.rlike(_WRITTEN[kind]) & self.value(raw, of).isNotNull())]
            case Decimal():
                return [raw.isNull() | F.is_variant_null(raw) | F.coalesce(self._is_exact(raw, of), F.lit(False))]
            case ListOf(element):
                return self._every(raw, element)
            case MapOf(_, value):
                keys = F.map_keys(raw)
                once = F.coalesce(F.size(F.array_distinct(keys)) == F.size(keys), F.lit(True))
                return [once, *self._every(F.map_values(raw), value)]
            case Struct(fields):
                return [c for f in fields for c in self.checks(self._raw(raw, f), f.type, as_json=f.as_json)]
            case _:
                return []

    def _raw(self, struct: Column, field: Field) -> Column:
        return struct.getField(field.source if self.by_source else field.name)

    def _every(self, items: Column, of: Type) -> list[Column]:
        if _has_no_checks(of):
            return []
        every = F.forall(items, lambda item: reduce(Column.__and__, self.checks(item, of)))
        return [F.coalesce(every, F.lit(True))]

    def _is_exact(self, raw: Column, of: Decimal) -> Column:
        """Whether the JSON number has no more digits than the decimal; one with an exponent is a variant's double."""
        kind = F.schema_of_variant(raw)
        value = self.value(raw, of)
        scale = F.regexp_extract(kind, r"^DECIMAL\(\d+,(\d+)\)$", 1)
        is_double = (kind == "DOUBLE") & (value.cast("double") == F.try_variant_get(raw, "$", "double"))
        is_decimal = kind.startswith("DECIMAL") & (scale.try_cast("int") <= of.scale)
        return value.isNotNull() & ((kind == "BIGINT") | is_decimal | is_double)


def _written(of: Type, *, as_json: bool = False, by_source: bool = True) -> T.DataType:
    """The type to read as: a variant or a string where `from_json` would be lenient."""
    if as_json:
        return T.VariantType()
    match of:
        case Primitive(kind):
            return T.StringType() if kind in _WRITTEN else spark_type(of)
        case Decimal():
            return T.VariantType()
        case ListOf(element):
            return T.ArrayType(_written(element, by_source=by_source))
        case MapOf(key, value):
            return T.MapType(_written(key), _written(value, by_source=by_source))
        case Struct(fields):
            return T.StructType(
                [
                    T.StructField(
                        f.source if by_source else f.name, _written(f.type, as_json=f.as_json, by_source=by_source)
                    )
                    for f in fields
                ]
            )


def _is_read_as_is(of: Type) -> bool:
    """Whether what `from_json` reads is the value, but for the names of fields."""
    match of:
        case Primitive(kind):
            return kind not in _WRITTEN
        case Decimal():
            return False
        case ListOf(element):
            return _is_read_as_is(element)
        case MapOf(_, value):
            return _is_read_as_is(value)
        case Struct(fields):
            return all(not f.as_json and _is_read_as_is(f.type) for f in fields)


def _has_no_checks(of: Type) -> bool:
    match of:
        case Primitive(kind):
            return kind not in _WRITTEN
        case ListOf(element):
            return _has_no_checks(element)
        case Struct(fields):
            return all(f.as_json or _has_no_checks(f.type) for f in fields)
        case _:
            return False


def _is_ambiguous(of: Type) -> bool:
    """Whether a struct has sources that differ in case only: Spark finds fields without regard to case."""
    match of:
        case ListOf(element):
            return _is_ambiguous(element)
        case MapOf(_, value):
            return _is_ambiguous(value)
        case Struct(fields):
            folded = {f.source.upper().lower() for f in fields}
            return len(folded) < len(fields) or any(_is_ambiguous(f.type) for f in fields)
        case _:
            return False
