"""JSON documents at random, and what Python's exact reading of each says that its row is, by the rules of docs/schemas.md."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import re
import struct
from decimal import Decimal as Dec
from decimal import localcontext
from random import Random
from typing import Any

REJECTED = "rejected"
_DECIMAL = {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.parameters": {"scale": "2"}}
TYPES: tuple[dict[str, Any], ...] = (
    {"type": "boolean"},
    {"type": "integer"},
    {"type": "integer", "connect.type": "int32"},
    {"type": "number"},
    {"type": "number", "connect.type": "float32"},
    {"type": "string"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "contentEncoding": "base64"},
    _DECIMAL,
)
ANYTHING: dict[str, Any] = {}
NUMBERS = (
    "0", "-0", "1", "-1", "7", "1.0", "-0.0", "1.5", "1e3", "2.50E1", "1e7", "5e-1", "0.1", "12.34", "12.345", "1e400", "-1e400",
    "1e39", "3e38", "1e-400", "2147483647", "2147483648", "9007199254740993", "9223372036854775807", "9223372036854775808",
    "12345678901234567890123456789012345678", "1.2345678901234567e-05", "100.00", "-9.007199254740992e15", "900719925474099e1", "1e16",
    "9007199254741e3", "10e-1", "1.5E-400", "3e9", "9223372036854775807.0", "1e308",
    "9223372036854775808.0", "2147483648.0", "-4" + "0" * 38, "1" + "0" * 309, "1" + "0" * 250 + "e60",
)  # fmt: skip
STRINGS = (
    '""', '"a"', '"?"', '"é😀"', r'"\ud83d\ude00"', r'"\ud800"', r'"\udc00x"', r'"\\ud800"', r'"\u0000"', '"1"', '"1.0,2.0"', '"NaN"',
    '"2024-02-29"', '"2023-02-29"', '"0000-01-01"', '"9999-12-31"', '"2024-02-29T10:11:12Z"', '"2024-02-29t10:11:12.1234567z"',
    '"2024-02-29T10:11:60Z"', '"9999-12-31T23:59:59-01:00"', '"2024-02-29 10:11:12+0530"', '"2024-02-29T24:00:00Z"', '"aGk="', '"%"',
    r'"x\uDFFFy"', r'"\ude00\ud83d"', r'"\ud83d\ud83d\ude00"', r'"\\ud83d\ude00"', r'"\\\\ud83d\ude00"', r'"\ud83d\\\ude00"', '"a\nb"',
    '"2024-2-9"', '"10000-01-01"', '"0001-01-01"', '"10000-01-01T12:00:00Z"', '"0001-01-01T00:00:00+01:00"', '"2024-02-29T10:11:12"',
    '"2024-02-29T10:11:12.123456789+05:30"', '"2024-02-30T10:11:12Z"', '"2024-02-29T10:11:12Z "', '"2024-02-29T10:11:12.5-0130"', '"now"',
    '"2024-02-29T10:11:12 Europe/Berlin"',
)  # fmt: skip
OTHERS = ("null", "true", "false", "{}", "[]", '{"a": 1}', "[1.5]", "nul", "01", "1.", "NaN", "'a'")
_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:?\d\d)", re.ASCII)
_HALF = re.compile("[\ud800-\udfff]")
_LONG_WITH_EXPONENT = re.compile(r"(?:\d{16,}|\d[\d.]{16,})[eE]|\d{39,}|\d[\d.]{39,}")
_PAST_A_DOUBLE = re.compile(r"[eE]\+?\d{3}|\d{200}")
_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")


class Anything:
    """A text that the rules leave open: what is no string in a column of strings."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)


class Cases:
    """One schema of an object, and documents of it."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self.schema = self._object(0, (*TYPES, ANYTHING) if dice.random() < 0.4 else TYPES)
        self.text = json.dumps(self.schema)
        self._has_json = json.dumps(ANYTHING) in self.text

    def bodies(self, many: int) -> list[bytes]:
        return [self._spoilt(self._document(self.schema)).encode() for _ in range(many)]

    def official(self, body: bytes) -> Any:
        """The row; `REJECTED` if the document is no valid one."""
        try:
            value = json.loads(
                body, parse_int=Number, parse_float=Number, parse_constant=self._constant, object_pairs_hook=Pairs
            )
            return REJECTED if value is None else _landed(self.schema, value)
        except (Rejected, ValueError, RecursionError):
            return REJECTED

    def _constant(self, text: str) -> Constant:
        if self._has_json:
            raise Rejected
        return Constant(text)

    def may_reject(self, body: bytes) -> bool:
        """Whether docs/schemas.md leaves open if the record lands, for something that may stand anywhere in the document."""
        if self.official(body) == REJECTED:
            return True
        text = body.decode()
        is_half = _HALF_ESCAPED.search(text) and (self._has_json or "?" in text)
        is_past = _PAST_A_DOUBLE.search(text) and self._has_json
        return bool(is_half or is_past or _LONG_WITH_EXPONENT.search(text) or _has_a_name_twice(text))

    def _object(self, depth: int, types: tuple[dict[str, Any], ...]) -> dict[str, Any]:
        properties: dict[str, Any] = {}
        for n in range(self._dice.randrange(1, 5)):
            kind: dict[str, Any] = self._dice.choice(types)
            roll = self._dice.random()
            if roll < 0.15 and kind:
                kind = {"type": "array", "items": kind}
            elif roll < 0.25 and kind:
                kind = {"type": "object", "additionalProperties": kind}
            elif roll < 0.4 and depth < 2:
                kind = self._object(depth + 1, types)
                if self._dice.random() < 0.4:
                    kind = {"type": "array", "items": kind}
            properties[f"p{n}"] = kind
        return {"type": "object", "properties": properties}

    def _document(self, kind: dict[str, Any]) -> str:
        dice = self._dice
        if dice.random() < 0.06:
            return dice.choice((*NUMBERS, *STRINGS, *OTHERS))
        if "properties" in kind:
            space = dice.choice(("", " "))
            pairs = [f'"{n}":{space}{self._document(k)}' for n, k in kind["properties"].items() if dice.random() < 0.8]
            if dice.random() < 0.1:
                pairs.append('"unknown": [1, {"x": "y"}]')
            return "{" + f",{space}".join(pairs) + "}"
        if "additionalProperties" in kind:
            inner = kind["additionalProperties"]
            return "{" + ",".join(f'"k{n}":{self._document(inner)}' for n in range(dice.randrange(3))) + "}"
        if "items" in kind:
            return "[" + ",".join(self._document(kind["items"]) for _ in range(dice.randrange(4))) + "]"
        match kind:
            case {"type": "boolean"}:
                return dice.choice(("true", "false", "null"))
            case {"type": "integer" | "number"}:
                return dice.choice(NUMBERS)
            case {"type": "string"}:
                return dice.choice(STRINGS)
        return dice.choice((*NUMBERS, *STRINGS, *OTHERS[:7]))

    def _spoilt(self, text: str) -> str:
        dice = self._dice
        if dice.random() < 0.8:
            return text
        at = dice.randrange(len(text) + 1)
        return text[:at] + dice.choice(("", ",", "}", '"', "\\", "1", "]")) + text[at + dice.randrange(2) :]


class Rejected(Exception):
    """A value that no column of its kind holds."""


class Number(str):
    """A number as it is written."""


class Constant(str):
    """NaN or an infinity, which is no JSON: beside a column of JSON text it rejects its record."""


class Pairs(list[tuple[str, Any]]):
    """An object's members, in order."""


def _has_a_name_twice(text: str) -> bool:
    sizes: list[tuple[int, int]] = []
    json.loads(text, object_pairs_hook=lambda pairs: sizes.append((len(pairs), len(dict(pairs)))))
    return any(pairs > names for pairs, names in sizes)


def _landed(kind: dict[str, Any], value: Any) -> Any:
    if not kind:
        return None if value is None else _json(value)
    if value is None:
        return None
    if "properties" in kind:
        found = dict(_members(value))
        return {name: _landed(of, found.get(name)) for name, of in kind["properties"].items()}
    if "additionalProperties" in kind:
        members = _members(value)
        if len({name for name, _ in members}) < len(members):
            raise Rejected
        return {name: _landed(kind["additionalProperties"], inner) for name, inner in members}
    if "items" in kind:
        if not isinstance(value, list) or isinstance(value, Pairs):
            raise Rejected
        return [_landed(kind["items"], inner) for inner in value]
    match kind["type"]:
        case "boolean" if isinstance(value, bool):
            return value
        case "integer" if isinstance(value, Number):
            return _integer(value, 31 if kind.get("connect.type") == "int32" else 63)
        case "number" if kind is _DECIMAL or "title" in kind:
            return _decimal(value)
        case "number":
            return _double(value, is_float=kind.get("connect.type") == "float32")
        case "string":
            return _string(kind, value)
    raise Rejected


def _members(value: Any) -> Pairs:
    if not isinstance(value, Pairs):
        raise Rejected
    return value


def _integer(text: str, bits: int) -> int:
    exact = Dec(text)
    if exact != exact.to_integral_value() or not -(2**bits) <= exact < 2**bits:
        raise Rejected
    if "e" in text.lower() and abs(exact) > 2**53:
        raise Rejected
    return int(exact)


def _decimal(value: Any) -> Dec:
    if not isinstance(value, Number) or isinstance(value, Constant):
        raise Rejected
    exact = Dec(value)
    with localcontext() as context:
        context.prec = 400
        if exact.adjusted() > 35 or exact != round(exact, 2):
            raise Rejected
        return round(exact, 2)


def _double(value: Any, *, is_float: bool) -> str:
    if isinstance(value, Constant) or (not isinstance(value, Number) and value in ("NaN", "Infinity", "-Infinity")):
        return repr(float(value))
    if not isinstance(value, Number):
        raise Rejected
    value = "0" if value == "-0" else value
    try:
        near = struct.unpack("<f", struct.pack("<f", float(value)))[0] if is_float else float(value)
    except OverflowError:
        raise Rejected from None
    if near in (float("inf"), float("-inf")):
        raise Rejected
    return repr(near)


def _string(kind: dict[str, Any], value: Any) -> Any:
    is_plain = "format" not in kind and "contentEncoding" not in kind
    if not isinstance(value, str) or isinstance(value, Number | Constant):
        if is_plain:
            return Anything()
        raise Rejected
    if _HALF.search(value):
        raise Rejected
    if "contentEncoding" in kind:
        try:
            return base64.b64decode("".join(c for c in value if c > " "), validate=True)
        except binascii.Error:
            raise Rejected from None
    if kind.get("format") == "date":
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            raise Rejected
        return dt.date.fromisoformat(value)
    if kind.get("format") == "date-time":
        return _instant(value)
    return value


def _instant(text: str) -> dt.datetime:
    found = _INSTANT.fullmatch(text)
    if not found:
        raise Rejected
    *parts, fraction, zone = found.groups()
    offset = 0 if zone in "Zz" else int(zone[0] + "1") * (int(zone[1:3]) * 60 + int(zone[-2:]))
    micros = int(((fraction or ".0")[1:] + "000000")[:6])
    try:
        return dt.datetime(*map(int, parts), micros) - dt.timedelta(minutes=offset)
    except OverflowError:
        raise Rejected from None


def _json(value: Any) -> Any:
    """The value of JSON text: numbers exactly where they have no exponent, as the nearest double where they have one."""
    match value:
        case Pairs():
            if len({name for name, _ in value}) < len(value):
                raise Rejected
            return {name: _json(inner) for name, inner in value}
        case list():
            return [_json(inner) for inner in value]
        case Number():
            if "e" in value.lower():
                if abs(float(value)) == float("inf"):
                    raise Rejected
                return Dec(repr(float(value)))
            return Dec(value)
        case str() if _HALF.search(value):
            raise Rejected
    return value


def parsed(text: str) -> Any:
    """JSON text that has landed, as `official` has it."""
    return json.loads(text, parse_int=Dec, parse_float=Dec)
