"""Which scalar types hold which others without loss, and which a column may become (https://iceberg.apache.org/spec/#schema-evolution)."""

from __future__ import annotations

from frazil.schemas.types import Decimal, Kind, Primitive

Scalar = Primitive | Decimal

_HOLDS = {(Kind.LONG, Kind.INT), (Kind.DOUBLE, Kind.FLOAT), (Kind.DOUBLE, Kind.INT)}
_BECOMES = {(Kind.INT, Kind.LONG), (Kind.FLOAT, Kind.DOUBLE)}


def holds(column: Scalar, value: Scalar) -> bool:
    """Return whether each value of the second type is one of the first, so that it lands in such a column unchanged."""
    match column, value:
        case Decimal(p, s), Decimal(q, t):
            return s == t and q <= p
        case Primitive(a), Primitive(b):
            return a is b or (a, b) in _HOLDS
    return False


def becomes(column: Scalar, new: Scalar) -> bool:
    """Return whether Iceberg widens a column of the first type to the second (format v2)."""
    match column, new:
        case Decimal(p, s), Decimal(q, t):
            return s == t and q > p
        case Primitive(a), Primitive(b):
            return (a, b) in _BECOMES
    return False
