"""JSON values as an Avro schema wants them, or why they do not fit it; and their bytes.

Logical types take what people write: ISO 8601 for dates, times and timestamps, numbers or texts for decimals. Bytes are the
text that Avro's own JSON has for them, a character a byte. Members of unions are written bare, without the name of their type.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

from frazil.declaration.checks.constraints import shown
from frazil.errors import InvalidInput, UnreadableSchema
from frazil.inference.inferred_type import LARGEST_EXACT
from frazil.schemas import avro

_BITS = {"int": 31, "long": 63}
_TEXTS: Mapping[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
    "timestamp-millis": datetime.fromisoformat,
    "timestamp-micros": datetime.fromisoformat,
    "local-timestamp-millis": datetime.fromisoformat,
    "local-timestamp-micros": datetime.fromisoformat,
}


class DoesNotFitError(Exception):
    """A value is not of its type; the text says where and why."""


class AvroValues:
    """Encodes values of one schema. Raises `InvalidInput` if the schema is invalid."""

    def __init__(self, text: str, file: str) -> None:
        import fastavro
        from fastavro.schema import SchemaParseException, UnknownType

        self._named: dict[str, Any] = {}
        try:
            avro.parse(text)
            self._schema = fastavro.parse_schema(json.loads(text), named_schemas=self._named)
        except UnreadableSchema as error:
            raise InvalidInput(
                error.what, where=f"{file}: {error.where}" if error.where else file, do=error.do
            ) from None
        except (SchemaParseException, UnknownType, ValueError) as error:
            raise InvalidInput(f"this is no Avro schema: {error}", where=file, do="Correct the schema") from None
        self._write = fastavro.schemaless_writer

    def encoded(self, value: Any) -> bytes:
        """Return the body of a value. Raises `DoesNotFitError`."""
        fitted = self._fitted(value, self._schema, "")
        body = io.BytesIO()
        try:
            self._write(body, self._schema, fitted)
        except (ValueError, TypeError, OverflowError) as error:  # of a logical type, such as a date before year 1
            raise DoesNotFitError(str(error)) from None
        return body.getvalue()

    def _fitted(self, value: Any, of: Any, path: str) -> Any:
        if isinstance(of, list):
            return self._member(value, of, path)
        if isinstance(of, str) and of in self._named:
            of = self._named[of]
        if isinstance(of, str):
            of = {"type": of}
        kind, logical = of["type"], of.get("logicalType", "")
        if isinstance(kind, dict | list):
            return self._fitted(value, kind, path)
        if kind in self._named and kind not in ("record", "enum", "fixed"):
            return self._fitted(value, self._named[kind], path)
        if logical == "decimal":
            return _decimal(value, of, path)
        if isinstance(value, str) and logical in _TEXTS:
            return _from_text(value, logical, path)
        match kind, value:
            case ("null", None) | ("boolean", bool()) | ("string", str()):
                return _text(value, path) if kind == "string" else value
            case ("int" | "long", int()) if (
                not isinstance(value, bool) and -(2 ** _BITS[kind]) <= value < 2 ** _BITS[kind]
            ):
                return value
            case ("float" | "double", int() | Decimal()) if not isinstance(value, bool):
                return _double(value, path)
            case ("bytes" | "fixed", str()):
                return _bytes(value, of.get("size"), path)
            case ("enum", str()) if value in of["symbols"]:
                return value
            case ("array", list()):
                return [self._fitted(item, of["items"], f"{path}[{index}]") for index, item in enumerate(value)]
            case ("map", dict()):
                return {
                    _text(key, path): self._fitted(item, of["values"], f"{path}.{key}") for key, item in value.items()
                }
            case ("record" | "error", dict()):
                return self._record(value, of, path)
        symbols = f" of {', '.join(of['symbols'])}" if kind == "enum" else ""
        raise DoesNotFitError(f"{_named(path)} is no {kind}{symbols}: {_shown(value)}")

    def _member(self, value: Any, union: list[Any], path: str) -> Any:
        """Return the value as the first member of a union that it fits, with the member's name if it has one."""
        why: list[str] = []
        for member in union:
            try:
                fitted = self._fitted(value, member, path)
            except DoesNotFitError as error:
                if member != "null":
                    why.append(str(error))
                continue
            kind = member.get("type") if isinstance(member, dict) else member
            name = member["name"] if kind in ("record", "enum", "fixed") else kind
            return (name, fitted) if name in self._named else fitted
        raise DoesNotFitError("; ".join(dict.fromkeys(why)) or f"{_named(path)} is not null: {_shown(value)}")

    def _record(self, value: dict[str, Any], of: Mapping[str, Any], path: str) -> dict[str, Any]:
        fields = {field["name"]: field for field in of["fields"]}
        if unknown := [name for name in value if name not in fields]:
            raise DoesNotFitError(f"{_named(path)} has a field {shown(unknown[0])}, which the schema does not have")
        made: dict[str, Any] = {}
        for name, field in fields.items():
            inner = f"{path}.{name}" if path else name
            if name in value:
                made[name] = self._fitted(value[name], field["type"], inner)
            elif "default" not in field:
                if not (isinstance(field["type"], list) and "null" in field["type"]):
                    raise DoesNotFitError(f"{_named(inner)} is missing")
                made[name] = None
        return made


def _double(value: int | Decimal, path: str) -> float:
    try:
        made = float(value)
    except OverflowError:
        made = float("inf")
    if made in (float("inf"), float("-inf")) or (
        isinstance(value, int) and abs(value) > LARGEST_EXACT and int(made) != value
    ):
        raise DoesNotFitError(f"{_named(path)} is a number that no double holds: {_shown(value)}")
    return made


def _decimal(value: Any, of: Mapping[str, Any], path: str) -> Decimal:
    try:
        number = Decimal(value) if isinstance(value, int | str | Decimal) and not isinstance(value, bool) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        raise DoesNotFitError(f"{_named(path)} is no decimal: {_shown(value)}")
    _, digits, exponent = number.as_tuple()
    scale = of.get("scale", 0)
    is_long = bool(number) and isinstance(exponent, int) and len(digits) + exponent > of["precision"] - scale
    if not isinstance(exponent, int) or -exponent > scale or is_long:
        raise DoesNotFitError(f"{_named(path)} is no decimal({of['precision']}, {scale}): {_shown(value)}")
    return number


def _from_text(value: str, logical: str, path: str) -> Any:
    try:
        made = _TEXTS[logical](value)
    except ValueError:
        raise DoesNotFitError(f"{_named(path)} is no {logical} in ISO 8601: {_shown(value)}") from None
    if isinstance(made, datetime) and (made.tzinfo is None) != logical.startswith("local-"):
        needs = "no UTC offset" if logical.startswith("local-") else "a UTC offset, like Z"
        raise DoesNotFitError(f"{_named(path)} needs {needs}: {_shown(value)}")
    return made


def _text(value: str, path: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise DoesNotFitError(f"{_named(path)} has half a surrogate pair, which UTF-8 does not have")
    return value


def _bytes(value: str, size: int | None, path: str) -> bytes:
    try:
        made = value.encode("latin-1")
    except UnicodeEncodeError:
        raise DoesNotFitError(f"{_named(path)} has a character above U+00FF, so it is no bytes") from None
    if size is not None and len(made) != size:
        raise DoesNotFitError(f"{_named(path)} has {len(made)} bytes, not {size}")
    return made


def _named(path: str) -> str:
    return f"the field {path.removeprefix('.')}" if path else "the record"


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Decimal) else shown(value)
