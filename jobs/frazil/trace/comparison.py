"""Compare the columns of a row with the fields of its record, as another library decodes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any
from uuid import UUID

from frazil.declaration import Pipeline

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Verdict(StrEnum):
    """The result of a comparison. `COMPUTED`: the declared `select` makes the column; `MASKED`: a mask changes it.

    `ABSENT`: the record does not have the field, and the column is null. `DIFFERS`: it is another value.
    """

    SAME = "same"
    COMPUTED = "computed"
    MASKED = "masked"
    ABSENT = "absent"
    DIFFERS = "differs"


@dataclass(frozen=True, slots=True)
class Compared:
    """A column of a row, with its value in the table and in the record."""

    column: str
    verdict: Verdict
    in_table: Any
    in_record: Any = None


def compared(pipeline: Pipeline, row: Mapping[str, Any], fields: Mapping[str, Any]) -> list[Compared]:
    """Return the comparison of each column of the row's values; columns of Frazil begin with `_` and are left out."""
    folded = {name.lower(): value for name, value in fields.items()}
    masked = {path.split(".")[0].lower() for path in pipeline.shape.masks}
    is_selected, found = pipeline.shape.select is not None, []
    for column, value in row.items():
        if column.startswith("_"):
            continue
        name = column.lower()
        if name in masked:
            found.append(Compared(column, Verdict.MASKED, value))
        elif name in folded and is_same(value, folded[name]):
            found.append(Compared(column, Verdict.SAME, value, folded[name]))
        elif is_selected:
            found.append(Compared(column, Verdict.COMPUTED, value, folded.get(name)))
        elif name not in folded and value is None:
            found.append(Compared(column, Verdict.ABSENT, None))
        else:
            found.append(Compared(column, Verdict.DIFFERS, value, folded.get(name)))
    return found


def is_same(in_table: Any, in_record: Any) -> bool:
    """Return whether two values are the same, whatever Python types two libraries have for them."""
    a, b = _plain(in_table), _plain(in_record)
    if isinstance(a, dict) and isinstance(b, dict):
        return all(is_same(a.get(key), b.get(key)) for key in {*a, *b})
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, Decimal | int | float) and isinstance(b, Decimal | int | float):
        return _numbers(a, b)
    if isinstance(a, int | Decimal) and isinstance(b, str):
        return _is_text_of(a, b)
    if isinstance(a, datetime | date | time) or isinstance(b, datetime | date | time):
        return _moment(a) is not None and _moment(a) == _moment(b)
    return type(a) is type(b) and bool(a == b)


def _plain(value: Any) -> Any:
    match value:
        case bool():
            return value
        case UUID():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case Mapping():
            return {str(key): one for key, one in value.items()}
        case list() | tuple():
            pairs = [one for one in value if isinstance(one, tuple) and len(one) == 2]
            return {str(key): one for key, one in pairs} if pairs and len(pairs) == len(value) else list(value)
    return value


def _numbers(a: Decimal | float, b: Decimal | float) -> bool:
    if isinstance(a, bool) is not isinstance(b, bool):
        return False
    if any(isinstance(one, float) and math.isnan(one) for one in (a, b)):
        return all(isinstance(one, float) and math.isnan(one) for one in (a, b))
    return bool(a == b) or (any(isinstance(one, float) for one in (a, b)) and float(a) == float(b))


def _is_text_of(number: Decimal | int, text: str) -> bool:
    try:
        return Decimal(text) == number
    except InvalidOperation:
        return False


def _moment(value: Any) -> int | None:
    """Return a time in microseconds since 1970, or since midnight; None for another value."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    match value:
        case datetime():
            known = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return (known - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (datetime(value.year, value.month, value.day, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
        case time():
            since = timedelta(
                hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
            )
            return since // timedelta(microseconds=1)
    return None
