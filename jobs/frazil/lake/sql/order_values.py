"""Values of an order as a person writes them, by the types of its columns. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from decimal import InvalidOperation

from frazil.errors import InvalidInput
from frazil.lake.sql.sql_engine import Value
from frazil.schemas.types import Decimal, Field, Kind, Primitive, Type

_WHERE = "--at-order"
_MOST_DIGITS = 38
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?")
_WHOLE = re.compile(r"[+-]?\d{1,19}")
_FORMS = {
    Kind.INT: "a whole number",
    Kind.LONG: "a whole number",
    Kind.BINARY: "hexadecimal digits",
    Kind.DATE: "a date like 2026-03-01",
    Kind.TIMESTAMP: "a time without time zone, like 2026-03-01T12:30:00",
    Kind.TIMESTAMPTZ: "a time with its offset, like 2026-03-01T12:30:00Z",
}


def order_values(texts: Sequence[str], columns: Sequence[Field], table: str) -> tuple[Value, ...]:
    """Return the values of an order, or of its first columns. `table` is named by errors.

    Raises `InvalidInput` if the table has no order, or a text is no value of its column: null is none.
    """
    if not columns:
        raise InvalidInput(
            "the table has no order: offsets order the changes of a key",
            where=f"{_WHERE}, table {table}",
            do="Give offsets with --at, or take the rows of the view __history that were valid at a time",
        )
    if len(texts) > len(columns):
        raise InvalidInput(
            f"the order has {len(columns)} columns, and {len(texts)} values are given",
            where=f"{_WHERE}, table {table}",
            do=f"Give {_WHERE} once for each of {', '.join(column.name for column in columns)}, or for the first ones",
        )
    return tuple(_value(text, column) for text, column in zip(texts, columns, strict=False))


def _value(text: str, column: Field) -> Value:
    try:
        found = _parsed(text, column.type)
    except (ValueError, OverflowError, InvalidOperation):
        found = None
    if found is None:
        form = _FORMS.get(column.type.kind, "a value") if isinstance(column.type, Primitive) else "a decimal number"
        raise InvalidInput(f"{text!r} is no {column.type}", where=f"{_WHERE}, column {column.name}", do=f"Write {form}")
    return found


def _parsed(text: str, of: Type) -> Value | None:
    """Return the value that a text is; None, or a `ValueError`, if it is none."""
    match of:
        case Primitive(Kind.STRING):
            return text
        case Primitive(Kind.INT | Kind.LONG) if _WHOLE.fullmatch(text):
            number = int(text)
            return number if -(2**63) <= number < 2**63 else None
        case Primitive(Kind.BINARY):
            return bytes.fromhex(text)
        case Primitive(Kind.DATE):
            return date.fromisoformat(text)
        case Primitive(Kind.TIMESTAMP | Kind.TIMESTAMPTZ as kind) if _TIME.fullmatch(text):
            moment = datetime.fromisoformat(text)
            if (moment.tzinfo is not None) != (kind is Kind.TIMESTAMPTZ):
                return None
            return moment.astimezone(UTC) if moment.tzinfo is not None else moment
        case Decimal():
            exact = Number(text)
            is_small = exact.is_finite() and abs(exact.adjusted()) < _MOST_DIGITS
            return exact if is_small and len(f"{exact.copy_abs():f}".replace(".", "")) <= _MOST_DIGITS else None
    return None
