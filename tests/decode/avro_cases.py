"""Avro schemas and records at random, and what fastavro says that each body's row is."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
from decimal import Decimal as Dec
from random import Random
from typing import Any

import fastavro
from fastavro.schema import parse_schema

from tests.support.bodies import spoilt

REJECTED = "rejected"
PLAIN = ("boolean", "int", "long", "float", "double", "string", "bytes")
LOGICAL: tuple[Any, ...] = (
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "long", "logicalType": "timestamp-nanos"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3},
    {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2},
)
_DAYS = (-719_162, 2_932_896)
_MICROS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)
_EPOCH = dt.datetime(1970, 1, 1)


class Cases:
    """One record schema, and bodies of it."""

    def __init__(self, dice: Random) -> None:
        self._dice, self._names = dice, 0
        self.schema = self._record(0)
        self.text = json.dumps(self.schema)
        self._parsed = parse_schema(_bare(json.loads(self.text)))

    def bodies(self, many: int) -> list[tuple[bytes, bool]]:
        """Bodies, and whether each is valid."""
        found = []
        for _ in range(many):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, self._parsed, self._value(self.schema))
            body = out.getvalue()
            is_valid = self._dice.random() < 0.6
            found.append((body if is_valid else spoilt(self._dice, body), is_valid))
        return found

    def official(self, body: bytes) -> Any:
        """The row that fastavro's value is, `REJECTED` if it has none or docs/schemas.md says so; raises `Unclear`."""
        return self._official(io.BytesIO(body))

    def official_whole(self, body: bytes) -> Any:
        """The same of a body that must fill its bytes. A row is `Unclear` whose bytes may also be a registry's frame and a body."""
        source = io.BytesIO(body)
        row = self._official(source)
        if row != REJECTED and body[:1] == b"\0" and len(body) > 4:
            behind = io.BytesIO(body[5:])
            if self._official(behind, unicode_errors="replace") != REJECTED and not behind.read():
                raise Unclear
        return REJECTED if source.read() else row

    def _official(self, source: io.BytesIO, unicode_errors: str = "strict") -> Any:
        try:
            value = fastavro.schemaless_reader(
                source, self._parsed, return_record_name=True, handle_unicode_errors=unicode_errors
            )
        except Unclear:
            raise
        except Exception:  # noqa: BLE001 - fastavro raises whatever it meets
            if _LEAST_LONG in source.getvalue():
                raise Unclear from None
            return REJECTED
        if _LEAST_LONG in source.getvalue() and ('"array"' in self.text or '"map"' in self.text):
            raise Unclear
        try:
            return _landed(self.schema, value)
        except OutOfRange:
            return REJECTED

    def _record(self, depth: int) -> dict[str, Any]:
        fields = [{"name": f"f{n}", "type": self._type(depth + 1)} for n in range(self._dice.randrange(1, 5))]
        return {"type": "record", "name": self._name("R"), "fields": fields}

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def _type(self, depth: int) -> Any:
        dice = self._dice
        roll = dice.random()
        if roll < 0.35 or depth > 3:
            return dice.choice(PLAIN)
        if roll < 0.55:
            return dice.choice(LOGICAL)
        if roll < 0.62:
            return {"type": "enum", "name": self._name("E"), "symbols": ["A", "B", "C"]}
        if roll < 0.67:
            return {"type": "fixed", "name": self._name("F"), "size": dice.randrange(1, 5)}
        if roll < 0.77:
            return {"type": "array", "items": self._type(depth + 1)}
        if roll < 0.85:
            return {"type": "map", "values": self._type(depth + 1)}
        if roll < 0.92:
            return self._record(depth)
        return ["null", dice.choice((*PLAIN, *LOGICAL))]

    def _value(self, kind: Any) -> Any:
        dice = self._dice
        match kind:
            case [_, one]:
                return None if dice.random() < 0.3 else self._value(one)
            case {"type": "record", "fields": fields}:
                return {f["name"]: self._value(f["type"]) for f in fields}
            case {"type": "array", "items": items}:
                return [self._value(items) for _ in range(dice.randrange(4))]
            case {"type": "map", "values": values}:
                return {f"k{n}é": self._value(values) for n in range(dice.randrange(3))}
            case {"type": "enum", "symbols": symbols}:
                return dice.choice(symbols)
            case {"type": "fixed", "size": size}:
                return dice.randbytes(size)
            case {"logicalType": "decimal"}:
                return dice.choice((0, 1, -1, 10**19, 10**20, -(10**38), 10**38, dice.randrange(10**15))).to_bytes(
                    20, "big", signed=True
                )
            case {"logicalType": "date"}:
                return dice.choice((0, -1, *_DAYS, _DAYS[1] + 1, _DAYS[0] - 1, dice.randrange(-(10**5), 10**5)))
            case {"logicalType": "timestamp-millis"}:
                return dice.choice((0, -1, _MICROS[0] // 1000, _MICROS[1] // 1000, _MICROS[1] // 1000 + 1, 2**62))
            case {"logicalType": str() as name} if "timestamp" in name:
                return dice.choice((0, -1, *_MICROS, _MICROS[1] + 1, _MICROS[0] - 1, 2**62))
            case {"type": base}:
                return self._value(base)
            case "boolean":
                return dice.random() < 0.5
            case "int":
                return dice.choice((0, -1, 2**31 - 1, -(2**31)))
            case "long":
                return dice.choice((0, -1, 2**63 - 1, -(2**63)))
            case "float" | "double":
                return dice.choice((0.0, -0.0, 1.5, math.nan, math.inf, -math.inf))
            case "string":
                return dice.choice(("", "a", "é😀", "\0", "\ufffd"))
        return dice.randbytes(dice.randrange(4))


class OutOfRange(Exception):
    """A value that Avro allows and no column holds; docs/schemas.md says that it is rejected."""


class Unclear(Exception):
    """What no writer writes: an `int` of more than 32 bits, of which Java takes the lower ones and fastavro all; a block of -2^63
    elements, which Java takes for the last one, and fastavro refuses or reads on.
    """


_LEAST_LONG = b"\xff" * 9 + b"\x01"
"""The `long` -2^63 as Avro writes it."""


def _bare(kind: Any) -> Any:
    """The schema without logical types: fastavro's conversions of them are not exact."""
    match kind:
        case dict():
            return {key: _bare(inner) for key, inner in kind.items() if key != "logicalType"}
        case list():
            return [_bare(inner) for inner in kind]
    return kind


def _landed(kind: Any, value: Any) -> Any:
    match kind:
        case [_, one]:
            return None if value is None else _landed(one, value)
        case {"type": "record", "fields": fields}:
            return {f["name"]: _landed(f["type"], value[f["name"]]) for f in fields}
        case {"type": "array", "items": items}:
            return [_landed(items, inner) for inner in value]
        case {"type": "map", "values": values}:
            return {key: _landed(values, inner) for key, inner in value.items()}
        case {"logicalType": "decimal", "precision": precision, "scale": scale}:
            number = int.from_bytes(value, "big", signed=True)
            if not value or abs(number) >= 10 ** min(precision, 38):
                raise OutOfRange
            return Dec(f"{number}e-{scale}")
        case {"logicalType": "date"}:
            if not _DAYS[0] <= _int(value) <= _DAYS[1]:
                raise OutOfRange
            return dt.date(1970, 1, 1) + dt.timedelta(days=value)
        case {"logicalType": str() as name} if "timestamp" in name and "nanos" not in name:
            micros = value * (1000 if "millis" in name else 1)
            if not _MICROS[0] <= micros <= _MICROS[1]:
                raise OutOfRange
            return _EPOCH + dt.timedelta(microseconds=micros)
        case {"type": "int"} | "int":
            return _int(value)
        case "float" | "double":
            return repr(value)
    return value


def _int(value: int) -> int:
    if not -(2**31) <= value < 2**31:
        raise Unclear
    return value
