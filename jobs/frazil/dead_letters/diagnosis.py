"""A diagnosis: decode a rejected record's body once more, to find the byte and the field at which it goes wrong.

It explains; it never decides. Spark's decoder alone decides what lands, and the two may differ in what they accept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from frazil.declaration.checks.nesting import bounded

SHOWN_CHARACTERS = 2_000
VARINT_BYTES = 10  # the longest varint of a 64-bit number
DEEPEST = 999  # levels of JSON: with one more, no record lands


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The result of decoding: a sentence, and where it failed.

    `at` is the byte of the body (what follows the frame), `path` the field, as far as they are known. `decoded` is the
    value as JSON text, cut if it is long, when it could be decoded, and `value` the field's, shorter.
    """

    what: str
    succeeded: bool = False
    at: int | None = None
    path: str = ""
    decoded: str | None = None
    value: str = ""


class Undecodable(Exception):
    """Bytes that are not what is expected at a place: a signal inside an attempt, never shown."""

    def __init__(self, what: str, at: int | None = None, path: str = "", *, value: str = "") -> None:
        self.what, self.at, self.path, self.value = what, at, path, value
        self.document: Any = None  # what was decoded, if something was
        super().__init__(what)


class Reader:
    """The bytes of a body, read one after another. Each method raises `Undecodable` if the body ends too early."""

    def __init__(self, body: bytes) -> None:
        self.body, self.at = body, 0

    def take(self, count: int, path: str) -> bytes:
        """Return the next bytes."""
        begin, left = self.at, len(self.body) - self.at
        if count > left:
            raise Undecodable(f"it ends where {count} bytes are due and {left} are left", begin, path)
        self.at += count
        return self.body[begin : self.at]

    def varint(self, path: str) -> int:
        """Return the next number of base 128, as Avro and Protobuf write it."""
        begin, number = self.at, 0
        for place, byte in enumerate(self.body[begin : begin + VARINT_BYTES]):
            number |= (byte & 0x7F) << (7 * place)
            if not byte & 0x80:
                self.at += place + 1
                return number
        is_cut = len(self.body) - begin < VARINT_BYTES
        what = "it ends inside a number" if is_cut else f"a number of more than {VARINT_BYTES} bytes"
        raise Undecodable(what, begin, path)


def attempt(body: bytes, decode: Callable[[bytes], Any], *, success: str = "it can be decoded") -> Attempt:
    """Decode with a function that raises `Undecodable`. `success` says what it means if it does not."""
    try:
        value = decode(body)
    except Undecodable as problem:
        decoded = None if problem.document is None else _shown(problem.document)
        return Attempt(what=problem.what, at=problem.at, path=problem.path, value=problem.value, decoded=decoded)
    except RecursionError:
        return Attempt(what="it is nested too deeply")
    except Exception as error:  # noqa: BLE001 # a defect of an explanation must not end the run that explains
        return Attempt(what=f"what is wrong is not known, as its explanation failed: {type(error).__name__}")
    return Attempt(what=success, succeeded=True, decoded=_shown(value))


def _shown(value: Any) -> str:
    shown = json.dumps(value, default=str, ensure_ascii=False)
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}…"


def text(body: bytes) -> str:
    """Decode UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as problem:
        byte = body[problem.start]
        raise Undecodable(f"byte 0x{byte:02x} is no UTF-8: {problem.reason}", problem.start) from None


def json_value(body: bytes) -> Any:
    """Decode one JSON value."""
    decoded = text(body)
    try:
        return bounded(json.loads(decoded), DEEPEST)
    except json.JSONDecodeError as problem:
        at = len(decoded[: problem.pos].encode())
        raise Undecodable(f"it is no JSON: {problem.msg}, line {problem.lineno}", at) from None
    except ValueError:  # Python's own limit on the digits of a whole number
        raise Undecodable(f"it has a whole number of more than {sys.get_int_max_str_digits()} digits") from None
