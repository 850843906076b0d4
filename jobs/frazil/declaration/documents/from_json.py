"""JSON as a declaration: nothing is guessed, nothing is coerced, and every problem is found at once, with its path."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar, get_args

from frazil.declaration.checks.constraints import below, shown, unknown
from frazil.declaration.checks.nesting import bounded
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.checks.validation import Hint, field_problems, hints, root_of, taken_apart, value_problems

_LONGEST_NUMBER = len("-9223372036854775808")


def parsed(text: bytes, name: str) -> Any:
    """Return the JSON value of the text; raises `InvalidDeclaration` about `name` if it is not JSON, or ambiguous."""
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [key for key, _ in pairs]
        if len(set(names)) < len(names):
            twice.extend(key for key in dict.fromkeys(names) if names.count(key) > 1)
        return dict(pairs)

    try:
        value = bounded(
            json.loads(
                text.decode("utf-8"), object_pairs_hook=unique, parse_constant=_refuse_constant, parse_int=_short
            )
        )
    except UnicodeDecodeError as error:
        raise _invalid(name, f"byte {error.start} is not UTF-8", "Save it as UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _invalid(name, f"this is not JSON: {error.msg} at {place}", "Correct it there") from None
    except RecursionError:
        raise _invalid(
            name, "the JSON is nested too deep", "No document of Frazil's is: look at what wrote it"
        ) from None
    except ValueError as error:
        raise _invalid(name, str(error), "Write a number that fits in 64 bits") from None
    if twice:
        raise InvalidDeclaration(
            Problem(name, f"the field {shown(key)} appears twice in one object", "Keep one of them") for key in twice
        )
    return value


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _short(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _invalid(name: str, what: str, do: str) -> InvalidDeclaration:
    return InvalidDeclaration([Problem(name, what, do)])


T = TypeVar("T")

VERSION = 1
"""The version of all documents but that of pipelines."""

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_UNREAD: Any = object()


def members(source: bytes | Mapping[str, Any], name: str, wanted: int = VERSION) -> Mapping[str, Any]:
    """Return the members of a document of a version, without `version` and `$schema`; `name` is the document's in messages.

    Raises `InvalidDeclaration` if it is no JSON object or of another version, whose other members may mean anything.
    """
    document = parsed(source, name) if isinstance(source, bytes) else source
    if not isinstance(document, Mapping):
        raise InvalidDeclaration([Problem(name, f"this is {_named(document)}", "Write a JSON object")])
    version = document.get("version")
    if type(version) is not int or version != wanted:
        what = "the field is missing"
        if "version" in document:
            what = f"{_as_json(version)} is not a version that this release reads ({wanted})"
        do = f"Write {wanted}, or use the release that wrote the document or a newer one"
        raise InvalidDeclaration([Problem("version", what, do)])
    schema = document.get("$schema", "")
    if not isinstance(schema, str) or any("\ud800" <= c <= "\udfff" for c in schema):  # half a character
        raise InvalidDeclaration([Problem("$schema", "this is no text", "Write the schema's address, or remove it")])
    return {key: value for key, value in document.items() if key not in {"version", "$schema"}}


def from_json(cls: type[T], value: Any, path: str) -> T:
    """Return the dataclass that the JSON object describes; raises `InvalidDeclaration` with all problems below `path`."""
    reading = _Reading()
    read: T = reading.instance(cls, value, path)
    if reading.problems:
        raise InvalidDeclaration(reading.problems)
    return read


@dataclass(slots=True)
class _Reading:
    """One walk through a document. What cannot be read is `_UNREAD`, its reasons added to `problems`."""

    problems: list[Problem] = field(default_factory=list)

    def value(self, hint: Any, value: Any, path: str) -> Any:
        """Return the Python value of a JSON value of this hint."""
        apart = taken_apart(hint)
        if value is None and apart.is_optional:
            return None
        if apart.is_choice:
            return self.choice(apart, value, path)
        if is_dataclass(apart.type):
            return self.instance(apart.type, value, path)
        if apart.origin is tuple and isinstance(value, list):
            item = get_args(apart.type)[0]
            parts = {f"{path}[{i}]": self.value(item, part, f"{path}[{i}]") for i, part in enumerate(value)}
            return self.completed(item, parts, tuple(parts.values()))
        if apart.origin is Mapping and isinstance(value, Mapping):
            return self.mapping(apart, value, path)
        if apart.is_enum and value in list(apart.type):
            return apart.type(value)
        if apart.type is datetime and isinstance(value, str):
            instant = _instant(value)
            return instant or self.refuse(
                path, f"{shown(value)} is not an instant", "Write it like 2026-01-31T12:00:00Z"
            )
        if apart.type in (int, bool, str) and type(value) is apart.type:
            return value
        is_shown = not apart.is_private and not isinstance(value, list | Mapping)
        what = f"{_as_json(value)} is {_named(value)}" if is_shown else f"this is {_named(value)}"
        if isinstance(value, str) and apart.is_enum:
            what = f"{shown(value)} is not one of its values"
        return self.refuse(path, what, f"Write {_wanted(apart)}")

    def instance(self, cls: Any, value: Any, path: str, *, is_tagged: bool = False) -> Any:
        """Return the dataclass of a JSON object. Each field is checked even if others are missing or cannot be read."""
        known = hints(cls)
        if not isinstance(value, Mapping):
            return self.refuse(path, f"this is {_named(value)}", f"Write an object of the fields {', '.join(known)}")
        for key in value:
            if key not in known and not (is_tagged and key == "type"):
                self.refuse(_below(path, key), *unknown(key, known))
        read: dict[str, Any] = {}
        for declared in fields(cls):
            name, place = declared.name, _below(path, declared.name)
            if name in value:
                read[name] = self.value(known[name], value[name], place)
            elif declared.default is MISSING and declared.default_factory is MISSING:
                read[name] = self.refuse(place, "the field is missing", f"Write {_wanted(taken_apart(known[name]))}")
        readable = {name: part for name, part in read.items() if part is not _UNREAD}
        if len(readable) < len(read):
            return self.refuse_all(field_problems(cls, readable, root_of(cls))[0], cls, path)
        try:
            return cls(**read)
        except InvalidDeclaration as invalid:
            return self.refuse_all(invalid.problems, cls, path)

    def choice(self, apart: Hint, value: Any, path: str) -> Any:
        """Return one of several dataclasses, by the object's `type`."""
        kinds = {kind.kind: kind for kind in apart.types}
        choices = f"one of {', '.join(kinds)}" if kinds else "null"
        if not isinstance(value, Mapping):
            do = f"Write an object with a type: {', '.join(kinds)}" if kinds else "Write null"
            return self.refuse(path, f"this is {_named(value)}", do)
        kind = value.get("type")
        if "type" not in value:
            return self.refuse(_below(path, "type"), "the field is missing", f"Write {choices}")
        if not isinstance(kind, str) or kind not in kinds:
            do = f"Write {choices}, or use the release that wrote the document or a newer one"
            return self.refuse(_below(path, "type"), f"{_as_json(kind)} is not one of its values in this release", do)
        return self.instance(kinds[kind], value, path, is_tagged=True)

    def mapping(self, apart: Hint, value: Mapping[Any, Any], path: str) -> Any:
        """Return a mapping of text or whole numbers, which JSON writes as text, to values."""
        key_hint, item = get_args(apart.type)
        is_numbered = taken_apart(key_hint).type is int
        parts: dict[str, Any] = {}
        read: dict[Any, Any] = {}
        for key, part in value.items():
            place = f"{path}[{shown(key)}]"
            parts[place] = self.value(item, part, place)
            if not isinstance(key, str):
                parts[place] = self.refuse(place, f"the key is {_named(key)}", "Write text")
            elif is_numbered and not re.fullmatch(r"0|[1-9][0-9]{0,18}", key, re.ASCII):
                parts[place] = self.refuse(place, "the key is not a whole number", 'Write it like "0"')
            else:
                read[int(key) if is_numbered else key] = parts[place]
        return self.completed(item, parts, read)

    def completed(self, hint: Any, parts: Mapping[str, Any], container: Any) -> Any:
        """Return the container if all its parts could be read; else check the readable parts here, for the last time."""
        if not any(part is _UNREAD for part in parts.values()):
            return container
        for place, part in parts.items():
            if part is not _UNREAD:
                self.problems += value_problems(hint, part, place)
        return _UNREAD

    def refuse(self, path: str, what: str, do: str) -> Any:
        """Note a problem."""
        self.problems.append(Problem(path, what, do))
        return _UNREAD

    def refuse_all(self, problems: Any, cls: Any, path: str) -> Any:
        """Note the problems of an object that did not know its place."""
        self.problems += [problem.moved(f"{root_of(cls)}.", f"{path}." if path else "") for problem in problems]
        return _UNREAD


def _instant(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if _INSTANT.fullmatch(text) else None
    except ValueError:
        return None


def _below(path: str, name: Any) -> str:
    return below(path, name).removeprefix("" if path else ".")


def _as_json(value: Any) -> str:
    constants = {True: "true", False: "false", None: "null"}
    return constants[value] if value is None or isinstance(value, bool) else shown(value)


def _named(value: Any) -> str:
    names: dict[Any, str] = {type(None): "nothing", bool: "a boolean", str: "text", int: "a number", list: "a list"}
    names |= {dict: "an object", float: "a number with a point"}
    return names.get(type(value), f"of type {type(value).__name__}")


def _wanted(apart: Hint) -> str:
    names: dict[Any, str] = {str: "text", int: "a whole number", bool: "true or false", datetime: "an instant"}
    if apart.is_choice or is_dataclass(apart.type) or apart.origin is Mapping:
        return "an object"
    if apart.is_enum:
        return f"one of {', '.join(apart.type)}"
    return "a list" if apart.origin is tuple else names[apart.type]
