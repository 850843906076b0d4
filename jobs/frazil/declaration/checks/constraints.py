"""Rules for values beyond their type, shared by the constructor, the reader of documents and the editor's JSON Schema.

A rule is part of a field's type hint: `keep_snapshots: Annotated[int, "What it means.", at_least(1)] = 100`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from frazil.declaration.checks.problems import InvalidDeclaration, Problem, Refusal

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
"""The bounds of Java's int and long: whole numbers end up in Kafka's, Spark's and Iceberg's hands."""


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """`refusal` returns why a value of the right type is refused, or None; `keywords` are for JSON Schema."""

    refusal: Callable[[Any], Refusal | None]
    keywords: Mapping[str, Any] = field(default_factory=dict)


class Private:
    """Marks a field whose value no message may show: it may hold a password that was written where a name belongs."""


PRIVATE = Private()


class Alone:
    """Marks a field of several texts that is also given one text alone, without a tuple."""


ALONE = Alone()


def shown(value: object) -> str:
    """Return the value as a message shows it: its repr, cut to a readable length."""
    try:
        text = repr(value)
    except ValueError:  # of an integer with more digits than Python writes
        return "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"


def below(path: str, name: object) -> str:
    """Return the path of a part of an object; a name that is no plain word is quoted, so that the path stays one readable line."""
    text = str(name)
    if not re.fullmatch(r"[\w$.-]{1,80}", text):
        return f"{path}[{shown(text)}]"
    return f"{path}.{text}"


def between(lowest: int, highest: int) -> Rule:
    """Require a whole number from `lowest` to `highest`, both included."""

    def refusal(value: int) -> Refusal | None:
        if lowest <= value <= highest:
            return None
        return Refusal(f"{shown(value)} is out of bounds", f"Write a whole number from {lowest} to {highest}")

    return Rule(refusal, {"minimum": lowest, "maximum": highest})


def at_least(lowest: int) -> Rule:
    """Require a whole number from `lowest` to the maximum of Java's long."""
    return between(lowest, LONG_MAX)


def one_of(*allowed: int) -> Rule:
    """Require one of a few whole numbers."""

    def refusal(value: int) -> Refusal | None:
        choices = " or ".join(map(str, allowed))
        return None if value in allowed else Refusal(f"{shown(value)} is not supported", f"Write {choices}")

    return Rule(refusal, {"enum": list(allowed)})


def matching(pattern: str, what: str, do: str, *, is_shown: bool = True) -> Rule:
    """Require text that matches `pattern` completely; `what` completes "'…' is not …"."""
    compiled = re.compile(pattern)

    def refusal(value: str) -> Refusal | None:
        if compiled.fullmatch(value):
            return None
        return Refusal(f"{shown(value) if is_shown else 'this'} is not {what}", do)

    return Rule(refusal, {"pattern": f"^(?:{pattern})$"})


def notation(parse: Callable[[str], object]) -> Rule:
    """Require text that `parse` accepts; for other text it raises `InvalidDeclaration`."""

    def refusal(value: str) -> Refusal | None:
        try:
            parse(value)
        except InvalidDeclaration as invalid:
            return Refusal(invalid.problems[0].what, invalid.problems[0].do)
        return None

    return Rule(refusal)


def _web_address(value: str) -> Refusal | None:
    do = "Write it like https://host:port/path"
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return Refusal("this is not a web address", do)
    if parts.username is not None or parts.password is not None:
        return Refusal("the address carries credentials", "Name them as secrets in the fields made for them")
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0 or re.search(r"\s", value):
        return Refusal("this is not a web address", do)
    if parts.query or parts.fragment:
        return Refusal("the address carries a query or a fragment", do)
    return None


WEB_ADDRESS = Rule(_web_address, {"pattern": "^https?://[^@?#\\s]+$"})
ABSOLUTE_PATH = matching(
    "/.*", "an absolute path", "Write the complete path, from /: a job has another working directory"
)
NOT_EMPTY = matching(r"[\s\S]*\S[\s\S]*", "a value", "Write one, or omit the field if it is optional")


def unknown(name: object, known: Any, what: str = "field") -> Refusal:
    """Return why an unknown name is refused, and the nearest known name."""
    text = str(name)
    folded = {each.lower(): each for each in known}
    near = get_close_matches(text.lower(), folded, n=1)
    said = "" if text.isascii() else f"; {text!a} has letters beyond a-z that look like others"
    do = (
        f"Did you mean {folded[near[0]]}?"
        if near
        else f"Remove it; the {what}s are {', '.join(known)}"
        if known
        else "Remove it"
    )
    return Refusal(f"there is no such {what}{said}", do)


_SECONDS = {"minute": 60, "hour": 3_600, "day": 86_400}
_TEXT = re.compile(r"([1-9][0-9]{0,6}) (minute|hour|day)s?", re.ASCII)
LONGEST_DAYS = 36_500


def seconds_of(text: str) -> int:
    """Return the seconds of a duration. Raises `InvalidDeclaration` if the text is none, or more than a hundred years."""
    found = _TEXT.fullmatch(text)
    if found is None:
        do = "Write a number of minutes, hours or days, such as 7 days"
        raise InvalidDeclaration([Problem("", f"{shown(text)} is no duration", do)])
    seconds = int(found[1]) * _SECONDS[found[2]]
    if seconds > LONGEST_DAYS * _SECONDS["day"]:
        raise InvalidDeclaration([Problem("", f"{shown(text)} is out of bounds", f"Write {LONGEST_DAYS} days at most")])
    return seconds
