"""A schema file and a sample, merged: what is new in the sample is added, types widen, and nothing is removed or narrowed."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from frazil.inference.inferred_schema import JSON_TYPES, place_schema
from frazil.inference.inferred_type import Inferred

_BY_HAND = frozenset(
    {
        *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "enum", "const"),
        *("patternProperties", "prefixItems", "contentEncoding", "connect.type", "connect.parameters"),
    }
)
"""Members of a schema that say more than a type; what has one is kept as it is."""


class Effect(StrEnum):
    """The effect of the merge on a place: `WIDENED` takes more values, `UNSEEN` is in the file alone, `KEPT` is not compared."""

    ADDED = "added"
    WIDENED = "widened"
    UNSEEN = "not seen"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Change:
    """The effect on a place of the file: its path, and why or from what to what."""

    effect: Effect
    path: str
    what: str

    @property
    def is_change(self) -> bool:
        """True if the file differs by it."""
        return self.effect in (Effect.ADDED, Effect.WIDENED)


def merged(file: dict[str, Any], of: Inferred) -> tuple[dict[str, Any], tuple[Change, ...]]:
    """Return the schema of records in the file, extended by what the sample has, and what was done."""
    schema = deepcopy(file)
    return schema, tuple(_merge(schema, of))


def _merge(schema: dict[str, Any], of: Inferred) -> Iterator[Change]:
    """Extend the schema of a place, in place."""
    types = _types(schema)
    if not of.kept_as:
        if of.nulls:
            yield from _nullable(schema, types, of)
        return
    if not types and not _BY_HAND & schema.keys():
        return  # any value: JSON text
    if _BY_HAND & schema.keys() or len(types) != 1:
        yield Change(Effect.KEPT, of.path, "the file describes more than a type")
        return
    yield from _nullable(schema, types, of) if of.nulls else ()
    (old,) = types
    new = JSON_TYPES.get(of.kept_as, of.kept_as)
    numbers = {old, new} == {"integer", "number"}
    is_too_large = old == "number" and new == "integer" and of.large is not None
    if old == new == "object":
        yield from _objects(schema, of)
    elif old == new == "array":
        if isinstance(schema.get("items"), dict) and of.items is not None:
            yield from _merge(schema["items"], of.items)
    elif old == "string":
        written = schema.get("format")
        if written in ("date", "date-time") and of.time != written:
            del schema["format"]
            yield Change(Effect.WIDENED, of.path, f"{written} becomes text")
        if new == "json":
            yield Change(Effect.KEPT, of.path, "text has numbers as doubles, and more digits were seen")
    elif numbers and not is_too_large:
        if old == "integer":
            _set_type(schema, "number")
            yield Change(Effect.WIDENED, of.path, "integer becomes number")
    elif old != new or is_too_large:
        for name in ("properties", "required", "items", "additionalProperties", "format"):
            schema.pop(name, None)
        if new == "json":
            del schema["type"]
            yield Change(Effect.WIDENED, of.path, f"{old} becomes JSON text, for numbers that no double holds")
            return
        _set_type(schema, "string")
        yield Change(Effect.WIDENED, of.path, f"{old} becomes text, as {new} was seen")


def _objects(schema: dict[str, Any], of: Inferred) -> Iterator[Change]:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        yield Change(Effect.KEPT, of.path, "the file names no properties")
        return
    required = schema.get("required")
    for name, field in of.fields.items():
        if isinstance(properties.get(name), dict):
            yield from _merge(properties[name], field)
            if isinstance(required, list) and name in required and field.count < of.objects:
                required.remove(name)
                yield Change(Effect.WIDENED, field.path, "required becomes optional")
        elif name in properties:
            yield Change(Effect.KEPT, field.path, "the file describes more than a type")
        elif not of.has_data_as_names and (added := place_schema(field)) is not None:
            properties[name] = added
            yield Change(Effect.ADDED, field.path, shown_type(added))
    for name in [name for name in properties if name not in of.fields]:
        path = f"{of.path}.{name}" if of.path else name
        yield Change(Effect.UNSEEN, path, "stays in the file")


def _nullable(schema: dict[str, Any], types: tuple[str, ...], of: Inferred) -> Iterator[Change]:
    stated = schema.get("type")
    if not types or _BY_HAND & schema.keys() or (isinstance(stated, list) and "null" in stated):
        return
    schema["type"] = [*types, "null"]
    yield Change(Effect.WIDENED, of.path, "may be null")


def _types(schema: dict[str, Any]) -> tuple[str, ...]:
    """Return the types that a schema names, without null."""
    stated = schema.get("type")
    names = stated if isinstance(stated, list) else [stated]
    return tuple(name for name in names if isinstance(name, str) and name != "null")


def _set_type(schema: dict[str, Any], name: str) -> None:
    schema["type"] = [name, "null"] if isinstance(schema["type"], list) else name


def shown_type(schema: dict[str, Any]) -> str:
    """Return the type of a sampled place, for people: `integer`, `date-time`, `array of string`."""
    kind = next(iter(_types(schema)), "JSON text")
    if kind == "array":
        return f"array of {shown_type(schema['items'])}"
    if kind == "object" and "properties" not in schema:
        return "object, as JSON text"
    return str(schema.get("format", kind))
