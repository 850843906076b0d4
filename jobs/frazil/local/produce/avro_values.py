"""JSON values as an Avro schema wants them, or why they do not fit it; and their bytes.

Logical types take what people write: ISO 8601 for dates, times and timestamps, numbers or texts for decimals. Bytes are the
text that Avro's own JSON has for them, a character a byte. Members of unions are written bare, without the name of their type.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

from frazil.declaration.checks.constraints import shown
from frazil.errors import InvalidInput, UnreadableSchema
from frazil.schemas import avro

_TEXTS: Mapping[str, Callable[[str], Any]] = {"date": date.fromisoformat, "time": time.fromisoformat} | {
    "timestamp": datetime.fromisoformat,
    "local-timestamp": datetime.fromisoformat,
}


class DoesNotFitError(Exception):
    """A value is not of its type; the text says where and why."""


class AvroValues:
    """Encodes values of one schema. Raises `InvalidInput` if the schema is invalid."""

    def __init__(self, text: str, file: str) -> None:
        import fastavro
        from fastavro.schema import SchemaParseException, UnknownType
        from fastavro.validation import validate

        self._named: dict[str, Any] = {}
        try:
            self.name = str(getattr(avro.parse(text).root, "name", ""))
            self._schema = fastavro.parse_schema(json.loads(text), named_schemas=self._named)
        except (UnreadableSchema, SchemaParseException, UnknownType, ValueError) as error:
            raise InvalidInput(f"this is no Avro schema: {error}", where=file, do="Correct the schema") from None
        self._write, self._is_valid = fastavro.schemaless_writer, validate

    def encoded(self, value: Any) -> bytes:
        """Return the body of a value. Raises `DoesNotFitError`."""
        body = io.BytesIO()
        self._write(body, self._schema, self._fitted(value, self._schema, ""))
        return body.getvalue()

    def _fitted(self, value: Any, of: Any, path: str) -> Any:
        """Return a value as fastavro takes it."""
        if isinstance(of, list):
            return self._member(value, of, path)
        while not isinstance(of, dict) or (isinstance(of["type"], dict | list) or of["type"] in self._named):
            kind = of if isinstance(of, str) else of["type"]
            if isinstance(kind, list):
                return self._member(value, kind, path)
            of = kind if isinstance(kind, dict) else self._named.get(kind, {"type": kind})
        match of["type"], value:
            case ("array", list()):
                return [self._fitted(item, of["items"], f"{path}[{index}]") for index, item in enumerate(value)]
            case ("map", dict()):
                return {key: self._fitted(item, of["values"], f"{path}.{key}") for key, item in value.items()}
            case ("record", dict()):
                return self._record(value, of, path)
        try:
            made = _converted(value, of)
            if self._is_valid(made, of, raise_errors=False):
                return made
            why = ""
        except (ValueError, TypeError, ArithmeticError) as error:
            why = f" ({error})" if type(error) is ValueError else ""
        kind = str(of.get("logicalType", of["type"])) + (f" of {', '.join(of['symbols'])}" if "symbols" in of else "")
        value = value if isinstance(value, Decimal) else shown(value)
        raise DoesNotFitError(f"{_place(path)} is no {kind}: {value}{why}")

    def _member(self, value: Any, union: list[Any], path: str) -> Any:
        """Return the value as the first member of a union that it fits. fastavro then finds the member."""
        why: list[str] = []
        for member in union:
            try:
                return self._fitted(value, member, path)
            except DoesNotFitError as error:
                if member != "null" or len(union) == 1:
                    why.append(str(error))
        raise DoesNotFitError("; ".join(dict.fromkeys(why)))

    def _record(self, value: dict[str, Any], of: Mapping[str, Any], path: str) -> dict[str, Any]:
        fields = {field["name"]: field for field in of["fields"]}
        if unknown := [name for name in value if name not in fields]:
            raise DoesNotFitError(f"{_place(path)} has a field {shown(unknown[0])}, which the schema does not have")
        made: dict[str, Any] = {}
        for name, field in fields.items():
            inner = f"{path}.{name}" if path else name
            if name in value or "default" not in field:
                made[name] = self._fitted(value.get(name), field["type"], inner)
        return made


def _converted(value: Any, of: Mapping[str, Any]) -> Any:
    """Return a scalar as Python has it. Raises `ValueError`, `TypeError` or `ArithmeticError` if it has no such value."""
    kind, logical = of["type"], of.get("logicalType", "")
    if logical == "decimal" and not isinstance(value, bool):
        exact = Context(prec=of["precision"], traps=[Inexact, InvalidOperation])
        return Decimal(value).quantize(Decimal(1).scaleb(-of.get("scale", 0)), context=exact)
    if isinstance(value, str) and (read := _TEXTS.get(logical.removesuffix("-millis").removesuffix("-micros"))):
        made = read(value)
        if isinstance(made, datetime) and (made.tzinfo is None) != logical.startswith("local-"):
            raise ValueError("it has a UTC offset" if made.tzinfo else "it needs a UTC offset, like Z")
        return made
    if isinstance(value, str) and kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    if kind in ("float", "double") and isinstance(value, int | Decimal) and not isinstance(value, bool):
        made = float(value)
        if made in (float("inf"), float("-inf")) or (isinstance(value, int) and int(made) != value):
            raise ValueError("no double holds it")
        return made
    return value


def _place(path: str) -> str:
    return f"the field {path}" if path else "the record"
