"""Types that Kafka Connect and Debezium name, as JSON holds them: what the value is in JSON, and what it means.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-data-types and
https://github.com/apache/kafka/tree/4.1.1/connect/api/src/main/java/org/apache/kafka/connect/data
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from frazil.schemas.types import Decimal, Field, Kind, Primitive, Struct, Type, along, with_inside


class Notation(StrEnum):
    """The notation of a value that means something else than its JSON type.

    `DAYS`, `MILLISECONDS`, `MICROSECONDS` and `NANOSECONDS`: a number of them since 1970. `ISO`: text with an offset. `UNSCALED`:
    the bytes of a decimal without its point, in two's complement, the highest one first.
    """

    DAYS = "days"
    MILLISECONDS = "milliseconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    ISO = "iso"
    UNSCALED = "unscaled"


@dataclass(frozen=True, slots=True)
class Held(Primitive):
    """A primitive, `kind`, that means another value; an `UNSCALED` one has so many `zeros` after its digits."""

    notation: Notation
    means: Primitive | Decimal
    zeros: int = 0


@dataclass(frozen=True, slots=True)
class Number(Struct):
    """The object of a number with a scale of its own: `scale`, and `value`, which is unscaled. It means its digits as text."""


@dataclass(frozen=True, slots=True)
class NumberOrBytes(Decimal):
    """A decimal that JSON holds as a number or as its unscaled bytes in base64; the schema does not say which.

    It is how Kafka Connect's JsonConverter writes one: `decimal.format` decides, and another value of it may follow. `zeros` is
    that of `Held`.
    """

    zeros: int = 0


NUMBER = Number((Field("scale", Primitive(Kind.INT)), Field("value", Primitive(Kind.BINARY))))
VARIABLE_SCALE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
DECIMAL = "org.apache.kafka.connect.data.Decimal"
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
LARGEST = 38
"""Digits of the largest decimal in Spark and Iceberg."""


def _held(kind: Kind, notation: Notation, means: Kind) -> Held:
    return Held(kind, notation, Primitive(means))


NAMED: Mapping[str, Held] = {
    "io.debezium.time.Date": _held(Kind.INT, Notation.DAYS, Kind.DATE),
    "io.debezium.time.Timestamp": _held(Kind.LONG, Notation.MILLISECONDS, Kind.TIMESTAMP),
    "io.debezium.time.MicroTimestamp": _held(Kind.LONG, Notation.MICROSECONDS, Kind.TIMESTAMP),
    "io.debezium.time.NanoTimestamp": _held(Kind.LONG, Notation.NANOSECONDS, Kind.TIMESTAMP),
    "io.debezium.time.ZonedTimestamp": _held(Kind.STRING, Notation.ISO, Kind.TIMESTAMPTZ),
    "org.apache.kafka.connect.data.Date": _held(Kind.INT, Notation.DAYS, Kind.DATE),
    "org.apache.kafka.connect.data.Timestamp": _held(Kind.LONG, Notation.MILLISECONDS, Kind.TIMESTAMPTZ),
}
"""The meaning of a primitive with this name. Other names change nothing."""


UNITS: Mapping[str, tuple[Kind, str]] = {
    "org.apache.kafka.connect.data.Time": (Kind.INT, "milliseconds"),
    "io.debezium.time.Time": (Kind.INT, "milliseconds"),
    "io.debezium.time.MicroTime": (Kind.LONG, "microseconds"),
    "io.debezium.time.NanoTime": (Kind.LONG, "nanoseconds"),
    "io.debezium.time.MicroDuration": (Kind.LONG, "microseconds"),
    "io.debezium.time.NanoDuration": (Kind.LONG, "nanoseconds"),
    **{name: (held.kind, held.notation.value) for name, held in NAMED.items() if held.kind is not Kind.STRING},
}
"""The unit of a number with this name, where the number itself lands. Debezium chooses it by the precision of a column."""


def named(name: object, of: Type) -> Held | None:
    """Return what a value of type `of` means that has this name; None if it means itself."""
    found = NAMED.get(name) if isinstance(name, str) else None
    return found if found is not None and of == Primitive(found.kind) else None


def with_unit(name: object, of: Type) -> Type:
    """Return the type of a number with the unit that its name has, if it has one."""
    kind, unit = UNITS.get(name, (None, "")) if isinstance(name, str) else (None, "")
    return replace(of, unit=unit) if isinstance(of, Primitive) and of.kind is kind else of


def connect_decimal(parameters: Any) -> Held:
    """Return the decimal in bytes that the parameters of Connect's `Decimal` describe.

    Raises `ValueError` as `decimal_column` does.
    """
    given = parameters if isinstance(parameters, dict) else {}
    return in_bytes(*decimal_column(given.get("connect.decimal.precision"), given.get("scale", "missing")))


def in_bytes(means: Decimal, zeros: int) -> Held:
    """Return the bytes that hold the digits of such a decimal."""
    return Held(Kind.BINARY, Notation.UNSCALED, means, zeros)


def decimal_column(precision: object, scale: object) -> tuple[Decimal, int]:
    """Return the column of decimals of so many digits, `scale` of them after the point, and the zeros after their digits.

    Without a precision, and with one below 1 or over 38, it has 38 digits: no column holds more. It has room for all digits after
    the point (Oracle's `NUMBER(3, 5)`), and for the zeros that a negative scale means. Larger values are rejected when they are
    decoded. Raises `ValueError` if no column has the scale.
    """
    digits, after = (_INTEGER.fullmatch(str(number)) for number in (0 if precision is None else precision, scale))
    for name, number, found in (("precision", precision, digits), ("scale", scale, after)):
        if found is None:
            raise ValueError(f"a decimal of {name} {str(number)[:40]}, and that is not an integer of at most 9 digits")
    assert digits is not None
    assert after is not None
    size, places = int(digits[0]), int(after[0])
    if not -LARGEST < places <= LARGEST:
        raise ValueError(f"a decimal of scale {places}, and no column has more than {LARGEST} digits")
    size = size if 0 < size <= LARGEST else LARGEST
    return Decimal(min(max(size, places, size - places), LARGEST), max(places, 0)), max(-places, 0)


def meaning(of: Type) -> Type:
    """Return the type with what its parts mean."""
    match of:
        case Held():
            return of.means
        case NumberOrBytes(precision, scale):
            return Decimal(precision, scale)
        case Number():
            return Primitive(Kind.STRING)
        case Struct():
            return row_meaning(of)
        case _:
            return with_inside(of, meaning)


def row_meaning(of: Struct) -> Struct:
    """Return the struct with what its fields mean."""
    fields = (
        replace(f, type=meaning(f.type), has_own_scale=f.has_own_scale or isinstance(f.type, Number)) for f in of.fields
    )
    return replace(of, fields=tuple(fields))


def held(target: Struct, written: Struct) -> Struct:
    """Return `target` with its values as records hold them that are `written` so. Fields are found by their sources."""
    there = {field.source: field for field in written.fields}
    return Struct(
        tuple(
            replace(field, type=_as_held(field.type, there[field.source].type))
            if field.source in there and not field.as_json
            else field
            for field in target.fields
        )
    )


def _as_held(target: Type, written: Type) -> Type:
    match target, written:
        case Decimal(_, scale), Held(means=Decimal() as means) if means.scale == scale:
            return written
        case Decimal(precision, scale), NumberOrBytes(scale=own, zeros=zeros) if own == scale:
            return NumberOrBytes(precision, scale, zeros)
        case Primitive(), Held(means=means) if target == means:
            return written
        case _, Number():
            return written if target == Primitive(Kind.STRING) else target
        case Struct(), Struct():
            return held(target, written)
        case _:
            return along(target, written, _as_held)


def only(target: Struct, written: Struct, absent: Callable[[int], str]) -> Struct:
    """Return `target` in which fields that are not `written` have the sources that `absent` numbers, which no record has."""
    there = {field.source: field.type for field in written.fields}
    return Struct(
        tuple(
            replace(field, type=_only(field.type, there[field.source], absent))
            if field.source in there
            else replace(field, source=absent(number))
            for number, field in enumerate(target.fields)
        )
    )


def _only(target: Type, written: Type, absent: Callable[[int], str]) -> Type:
    if isinstance(target, Struct) and isinstance(written, Struct):
        return only(target, written, absent)
    return along(target, written, lambda inner, of: _only(inner, of, absent))


def as_text(of: Struct) -> Struct:
    """Return the struct in which JSON text is text."""
    return Struct(tuple(replace(field, type=_texts(field.type), as_json=False) for field in of.fields))


def _texts(of: Type) -> Type:
    match of:
        case Number():
            return of
        case Struct():
            return as_text(of)
        case _:
            return with_inside(of, _texts)
