"""Types of Kafka Connect and Debezium that no decoder reads by itself: from what holds a value to what it means, if anything."""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.spark_types import spark_type
from frazil.decode.values.from_avro import from_avro
from frazil.decode.values.leaves import DAYS, MICROSECONDS, in_years
from frazil.schemas.connect.connect_types import LARGEST, Held, Notation, Number, meaning
from frazil.schemas.json.written_times import PAST_MICROSECONDS, WRITTEN
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct, Type

_MOST_BYTES = 63
"""Bytes of a number; 16 hold 38 digits, and more may repeat the sign."""
_SCALES = (-1_000, 20_000)
"""Scales of a number; PostgreSQL has up to 16,383 digits after the point (https://www.postgresql.org/docs/current/datatype-numeric.html)."""


def meant(value: Column, held: Type, of: Type) -> Column | None:
    """Return what a value of type `held` means as a value of type `of`, null if it means nothing; None if it is no such type."""
    match held, of:
        case Held(notation=Notation.UNSCALED, zeros=zeros), Decimal():
            return scaled(value, of, zeros)
        case Held(notation=notation), _:
            return _noted(value, notation, of)
        case Decimal(), Decimal() if held.precision > of.precision:
            return value.try_cast(spark_type(of))
        case Number(), Primitive(Kind.STRING):
            return _number(unscaled(value["value"], 0), value["scale"])
        case Primitive(Kind.STRING), Primitive(Kind.TIMESTAMPTZ):
            return _instant(value)
        case Primitive(Kind.LONG), Primitive(Kind.TIMESTAMP):
            return _of_nanoseconds(value)
        case Primitive(Kind.LONG), Primitive(Kind.INT):
            return value.try_cast(spark_type(of))
        case Struct(), Primitive(Kind.STRING):
            return _number(value["value"], value["scale"])
    return None


def all_meant(value: Column, held: Type, of: Type) -> list[Column]:
    """Return whether all such values inside a value mean something, as columns none of which is null."""
    if (made := meant(value, held, of)) is not None:
        return [value.isNull() | made.isNotNull()]
    match held, of:
        case Struct(found), Struct(wanted):
            pairs = zip(found, wanted, strict=True)
            there = [(value[f.name], f.type, _wanted(f, w)) for f, w in pairs if f.name]
            exact = [is_whole for one, kind, w in there if w.is_exact for is_whole in _whole(one, kind, w.type)]
            return [*exact, *(c for one, kind, w in there for c in all_meant(one, kind, w.type))]
        case ListOf(old), ListOf(new):
            return _every(value, old, new)
        case MapOf(_, old), MapOf(_, new):
            return _every(F.map_values(value), old, new)
    return []


def _whole(value: Column, held: Type, of: Type) -> list[Column]:
    """Return whether a value means a time of no more digits than microseconds have, as columns none of which is null."""
    match held, of:
        case Held(notation=Notation.DAYS | Notation.MILLISECONDS | Notation.MICROSECONDS | Notation.UNSCALED), _:
            return []
        case (Held(notation=Notation.NANOSECONDS), _) | (Primitive(Kind.LONG), Primitive(Kind.TIMESTAMP)):
            return [value.isNull() | (F.pmod(value, F.lit(1000)) == 0)]
        case (Held(notation=Notation.ISO), _) | (Primitive(Kind.STRING), Primitive(Kind.TIMESTAMPTZ)):
            return [value.isNull() | ~value.rlike(PAST_MICROSECONDS)]
    return []


def _every(items: Column, held: Type, of: Type) -> list[Column]:
    if not _has(held, of):
        return []

    def is_meant(item: Column) -> Column:
        first, *others = all_meant(item, held, of)
        for other in others:
            first &= other
        return first

    return [F.coalesce(F.forall(items, is_meant), F.lit(True))]


def _wanted(found: Field, wanted: Field) -> Field:
    """Return what a field is to be; what becomes JSON text has what its parts mean."""
    return replace(wanted, type=meaning(found.type)) if found.as_json else wanted


def _has(held: Type, of: Type) -> bool:
    match held, of:
        case Struct(found), Struct(wanted):
            return any(_has(f.type, _wanted(f, w).type) for f, w in zip(found, wanted, strict=True) if f.name)
        case (ListOf(old), ListOf(new)) | (MapOf(_, old), MapOf(_, new)):
            return _has(old, new)
        case _:
            return meant(F.lit(None), held, of) is not None


def _instant(text: Column) -> Column:
    """Return the instant of an ISO text with an offset; `infinity`, and what is not in the years 1 to 9999, is none."""
    made = F.upper(text).try_cast(spark_type(Primitive(Kind.TIMESTAMPTZ)))
    return F.when(text.rlike(WRITTEN[Kind.TIMESTAMPTZ]) & in_years(made, Kind.TIMESTAMPTZ), made)


def _of_nanoseconds(number: Column) -> Column:
    """Return the time of so many nanoseconds since 1970, cut to microseconds."""
    is_cut = (number < 0) & (F.pmod(number, F.lit(1000)) != 0)  # division goes towards zero
    micros = F.call_function("div", number, F.lit(1000)) - F.when(is_cut, 1).otherwise(0)
    return F.timestamp_micros(micros).cast("timestamp_ntz")


def _noted(value: Column, notation: Notation, of: Type) -> Column:
    """Return what a value means that is written so; times of nanoseconds have 64 bits, so they are in no other years."""
    match notation:
        case Notation.DAYS:
            return F.when(value.between(*DAYS), F.date_from_unix_date(value))
        case Notation.MILLISECONDS | Notation.MICROSECONDS:
            micros = value if notation is Notation.MICROSECONDS else F.try_multiply(value, F.lit(1000))
            return F.when(micros.between(*MICROSECONDS), F.timestamp_micros(micros).cast(spark_type(of)))
        case Notation.NANOSECONDS:
            return _of_nanoseconds(value)
        case Notation.ISO:
            return _instant(value)
        case Notation.UNSCALED:
            raise AssertionError("the type of bytes with a decimal is a decimal")


def scaled(octets: Column, of: Decimal, zeros: int = 0) -> Column:
    """Return the decimal of this type that bytes are, with so many zeros after their digits; null if the type does not hold it."""
    if not zeros:
        return unscaled(octets, of.scale).try_cast(spark_type(of))
    return F.concat(unscaled(octets, 0).cast("string"), F.lit("0" * zeros)).try_cast(spark_type(of))


def unscaled(octets: Column, scale: int) -> Column:
    """Return the decimal of 38 digits that bytes are in two's complement; none if it has more digits.

    Avro has it so, after the length in bytes: one byte, twice the number.
    """
    schema = json.dumps({"type": "bytes", "logicalType": "decimal", "precision": LARGEST, "scale": scale})
    count = F.length(octets)
    head = F.substring(F.lit(bytearray(2 * n for n in range(_MOST_BYTES + 1))), count + 1, F.lit(1))
    is_short = count.between(1, _MOST_BYTES)
    return F.when(is_short, from_avro(F.concat(head, octets), schema, {"mode": "PERMISSIVE"}))


def _number(whole: Column, scale: Column) -> Column:
    """Return the digits of a number with its own scale, as PostgreSQL writes them: no exponent, all zeros after the point."""
    digits = F.abs(whole).cast("string")
    sign = F.when(whole < 0, "-").otherwise("")
    padded = F.lpad(digits, F.greatest(F.length(digits), scale + 1), "0")
    point = F.length(padded) - scale
    fraction = F.concat(F.substr(padded, F.lit(1), point), F.lit("."), F.substr(padded, point + 1))
    zeros = F.when(whole == 0, F.lit("")).otherwise(F.repeat(F.lit("0"), -scale))
    text = F.when(scale > 0, fraction).otherwise(F.concat(digits, zeros))
    return F.when(scale.between(*_SCALES), F.concat(sign, text))
