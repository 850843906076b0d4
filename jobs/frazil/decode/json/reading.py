"""From JSON to columns: the types that `from_json` is given, what it reads, and the checks that each value is what was written.

A string or a variant is read wherever `from_json` would be lenient. It makes a string of whatever is in place of one: `1` and
`"1"`, two keys, would be one. So a string of a key is a variant, too.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.decode.json import doubts, integers
from frazil.decode.spark_types import spark_type
from frazil.decode.values.leaves import Leaves, in_years, leaves
from frazil.decode.values.semantic_types import scaled
from frazil.schemas.connect.connect_types import NumberOrBytes
from frazil.schemas.json.written_times import PAST_MICROSECONDS, WRITTEN
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type, inside, with_inside


def has_json(document: Field | None) -> bool:
    """Return whether a document of this type has JSON text somewhere."""
    return document is not None and (document.as_json or any(map(has_json, _fields(document.type))))


def has_integers(document: Field | None) -> bool:
    """Return whether a document of this type has integers somewhere."""
    if document is None or document.as_json:
        return False
    of = document.type
    is_integer = isinstance(of, Primitive) and of.kind in (Kind.INT, Kind.LONG)
    return is_integer or any(map(has_integers, _fields(of)))


def _fields(of: Type) -> tuple[Field, ...]:
    return of.fields if isinstance(of, Struct) else tuple(Field("", inner) for inner in inside(of))


def is_exact_text(field: Field) -> bool:
    """Return whether the field is a string of a key; a text that means a time is one, too."""
    return field.is_exact and isinstance(field.type, Primitive) and field.type.kind is Kind.STRING


def written(of: Type, *, as_variant: bool = False, by_source: bool = True) -> T.DataType:
    """Return the type to read as: a variant or a string where `from_json` would be lenient."""
    if as_variant:
        return T.VariantType()
    match of:
        case Primitive(kind):
            return T.StringType() if kind in WRITTEN else spark_type(of)
        case Decimal():
            return T.VariantType()
        case ListOf(element):
            return T.ArrayType(written(element, by_source=by_source))
        case MapOf(key, value):
            return T.MapType(written(key), written(value, by_source=by_source))
        case Struct(fields):
            return T.StructType(
                [
                    T.StructField(
                        f.source if by_source else f.name,
                        written(f.type, as_variant=f.as_json or is_exact_text(f), by_source=by_source),
                    )
                    for f in fields
                ]
            )


def is_read_as_is(of: Type) -> bool:
    """Return whether what `from_json` reads is the value, but for the names of fields."""
    match of:
        case Primitive(kind):
            return kind not in WRITTEN
        case Decimal():
            return False
        case Struct(fields):
            return all(not f.as_json and not is_exact_text(f) and is_read_as_is(f.type) for f in fields)
        case _:
            return all(map(is_read_as_is, inside(of)))


def has_no_checks(of: Type) -> bool:
    """Return whether a value that `from_json` has read needs no check at any depth."""
    match of:
        case Primitive(kind):
            return kind not in WRITTEN
        case ListOf(element):
            return has_no_checks(element)
        case Struct(fields):
            return all(f.as_json or (not is_exact_text(f) and has_no_checks(f.type)) for f in fields)
        case _:
            return False


def has_times(field: Field) -> bool:
    """Return whether the field is a date or a time, or a struct that has one somewhere, lists and maps apart."""
    if field.as_json:
        return False
    match field.type:
        case Primitive(kind):
            return kind in WRITTEN
        case Struct(fields):
            return any(map(has_times, fields))
        case _:
            return False


def is_ambiguous(of: Type) -> bool:
    """Return whether a struct has sources that differ in case only: Spark finds fields without regard to case."""
    fields = of.fields if isinstance(of, Struct) else ()
    folded = {field.source.upper().lower() for field in fields}
    return len(folded) < len(fields) or any(map(is_ambiguous, inside(of)))


def decimal(raw: Column, of: Decimal) -> Column:
    """Return the decimal of a variant; null if the type does not hold it.

    A double is read by its first 15 digits: Java writes more of some numbers before version 19 (JDK-4511638), 6.9538796555701798E17
    for 6.95387965557018E17.
    """
    kind = f"decimal({of.precision},{of.scale})"
    digits = F.format_string("%.14e", F.try_variant_get(raw, "$", "double"))
    number = F.when(is_double(raw), digits.try_cast(kind)).otherwise(F.try_variant_get(raw, "$", kind))
    if not isinstance(of, NumberOrBytes):
        return number
    octets = F.try_to_binary(F.try_variant_get(raw, "$", "string"), F.lit("base64"))
    return F.when(is_text(raw), scaled(octets, of, of.zeros)).otherwise(number)


def is_exact(raw: Column, of: Decimal, text: Column) -> Column:
    """Return whether the variant's number, in the document `text`, has no more digits than the decimal; or whether it is its bytes.

    A number with an exponent is a variant's double.
    """
    kind, value = F.schema_of_variant(raw), decimal(raw, of)
    scale = F.regexp_extract(kind, r"^DECIMAL\(\d+,(\d+)\)$", 1)
    is_same = value.cast("double") == F.try_variant_get(raw, "$", "double")
    is_exact_double = is_double(raw) & is_same & integers.keeps_digits(raw, text)
    is_decimal = kind.startswith("DECIMAL") & (scale.try_cast("int") <= of.scale)
    is_number = (kind == "BIGINT") | is_decimal | is_exact_double
    return value.isNotNull() & (is_number | is_text(raw) if isinstance(of, NumberOrBytes) else is_number)


def is_double(raw: Column) -> Column:
    """Return whether a variant is a number with an exponent, or one that no decimal holds."""
    return F.schema_of_variant(raw) == "DOUBLE"


def is_text(raw: Column) -> Column:
    """Return whether a variant is a string."""
    return F.schema_of_variant(raw) == "STRING"


_TIMES = (Primitive(Kind.TIMESTAMP), Primitive(Kind.TIMESTAMPTZ))


class Reading:
    """From what `from_json` gives to columns; structs have their fields by source, or by name if that is ambiguous.

    `times` is what `times_of` made of the same struct or field, where that is not in a list or map: a time is then converted once.
    """

    def __init__(self, *, by_source: bool) -> None:
        self.by_source = by_source

    def times_of(self, raw: Column, field: Field) -> Column:
        """Return the times of a field that `has_times`: a time, or structs of times. Those in lists and maps are omitted."""
        if not isinstance(field.type, Struct):
            return self.value(raw, field.type)
        inner = (f for f in field.type.fields if has_times(f))
        return F.struct(*[self.times_of(self._raw(raw, f), f).alias(f.name) for f in inner])

    def field(self, struct: Column, field: Field, times: Column | None) -> Column:
        """Return the field as a column of its name."""
        return self.value_of(self._raw(struct, field), field, _inner(times, field)).alias(field.name)

    def value_of(self, raw: Column, field: Field, times: Column | None) -> Column:
        """Return the field's value; null, or anything, where `checks_of` fail."""
        if field.as_json:
            return F.when(~F.is_variant_null(raw), doubts.digits(F.to_json(raw)))
        if is_exact_text(field):
            return F.try_variant_get(raw, "$", "string")
        return self.value(raw, field.type, times)

    def value(self, raw: Column, of: Type, times: Column | None = None) -> Column:
        """Return a value of this type; null, or anything, where `checks` fail."""
        if is_read_as_is(of):
            return raw if not isinstance(of, Struct | ListOf | MapOf) else raw.cast(spark_type(of))
        match of:
            case Primitive() if times is not None:
                return times
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
                return F.when(raw.isNotNull(), F.struct(*[self.field(raw, field, times) for field in fields]))

    def checks_of(self, raw: Column, field: Field, text: Column, times: Column | None) -> list[Column]:
        """Return what must hold, none of it null, for the field's value to be what was written in the document `text`."""
        if field.as_json:
            return []
        if is_exact_text(field):
            return [raw.isNull() | F.is_variant_null(raw) | is_text(raw)]
        checks = self.checks(raw, field.type, text, times)
        if field.is_exact and field.type in _TIMES:
            checks.append(F.coalesce(~raw.rlike(PAST_MICROSECONDS), F.lit(True)))
        return checks

    def checks(self, raw: Column, of: Type, text: Column, times: Column | None = None) -> list[Column]:
        """Return what must hold, none of it null, for a value of this type to be what was written."""
        match of:
            case Primitive(kind) if kind in WRITTEN:
                value = self.value(raw, of, times)
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
                return [c for f in fields for c in self.checks_of(self._raw(raw, f), f, text, _inner(times, f))]
            case _:
                return []

    def doubts(self, raw: Column, document: Field, text: Column) -> list[Column]:
        """Return what must hold, none of it null, if no value in the document was changed unnoticed."""
        as_read = self._as_read(document.type)
        is_variant = document.as_json or is_exact_text(document)
        floats, doubles, strings = (
            Leaves() if is_variant else leaves(raw, as_read, {kind}) for kind in (Kind.FLOAT, Kind.DOUBLE, Kind.STRING)
        )
        strings = Leaves((*strings.ones, *self._exact_texts(raw, document)), strings.arrays)
        checks = doubts.is_finite(floats, doubles, text)
        if has_json(document):
            checks.append(doubts.is_json(text))
            if strings:
                checks.append(doubts.has_no_digits(strings, text))
        elif strings:
            checks.append(doubts.is_text(strings, text))
        return checks

    def _as_read(self, of: Type) -> Type:
        """Return the type with the names that `from_json` was given, without what is read as a variant."""
        if not isinstance(of, Struct):
            return with_inside(of, self._as_read)
        plain = (f for f in of.fields if not f.as_json and not is_exact_text(f))
        return Struct(tuple(Field(f.source if self.by_source else f.name, self._as_read(f.type)) for f in plain))

    def _exact_texts(self, raw: Column, field: Field) -> list[Column]:
        """Return the strings of a key; those of an event are in structs."""
        if is_exact_text(field):
            return [self.value_of(raw, field, None)]
        inner = field.type.fields if isinstance(field.type, Struct) and not field.as_json else ()
        return [text for f in inner for text in self._exact_texts(self._raw(raw, f), f)]

    def _raw(self, struct: Column, field: Field) -> Column:
        return struct.getField(field.source if self.by_source else field.name)

    def _every(self, items: Column, of: Type, text: Column) -> list[Column]:
        if has_no_checks(of):
            return []
        every = F.forall(items, lambda item: reduce(Column.__and__, self.checks(item, of, text)))
        return [F.coalesce(every, F.lit(True))]


def _inner(times: Column | None, field: Field) -> Column | None:
    return times.getField(field.name) if times is not None and has_times(field) else None
