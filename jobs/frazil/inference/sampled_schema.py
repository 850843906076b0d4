"""The JSON Schema, or the declared columns, of a sample: what its records showed, and nothing that a sample cannot prove.

Each value may be null and each field missing. A place without any value has no type yet, so it is left out: a column can be
added later, and its type cannot be changed.
"""

from __future__ import annotations

import re
from typing import Any

from frazil.inference.inferred_schema import DRAFT, JSON_TYPES
from frazil.inference.inferred_type import Inferred

_TIMES = {"date-time": "timestamptz", "date": "date"}


def sampled_schema(of: Inferred, title: str) -> dict[str, Any] | None:
    """Return the schema of records; None if no field of them has a value."""
    schema = place_schema(of)
    return None if schema is None else {"$schema": DRAFT, "title": title, **schema, "type": "object"}


def place_schema(of: Inferred) -> dict[str, Any] | None:
    """Return the schema of the values at a place; None if there is none, or if nothing says what its members are."""
    made: dict[str, Any] = {"type": [JSON_TYPES.get(of.kept_as, of.kept_as), "null"]}
    if not of.kept_as:
        return None
    if of.kept_as == "json":
        return {}
    if of.time is not None:
        made["format"] = of.time
    if of.kept_as == "array":
        items = place_schema(of.items) if of.items is not None else None
        return None if items is None else {**made, "items": items}
    if of.kept_as == "record" and not of.has_data_as_names:
        fields = {name: place_schema(field) for name, field in of.fields.items()}
        properties = {name: schema for name, schema in fields.items() if schema is not None}
        return {**made, "properties": properties} if properties else None
    return made


def sampled_columns(of: Inferred) -> tuple[str, ...]:
    """Return the columns of records in the notation of a declaration, such as `id long`; none if no field has a value."""
    if of.kept_as != "record":
        return ()
    columns = ((_quoted(name), _column_type(field)) for name, field in of.fields.items())
    return tuple(f"{name} {kind}" for name, kind in columns if kind)


def _column_type(of: Inferred, *, is_inside: bool = False) -> str:
    """Return the type of a place; empty if no value shows it. A part of a column cannot be JSON text, so it is a string."""
    if of.kept_as == "array":
        items = _column_type(of.items, is_inside=True) if of.items is not None else ""
        return f"list<{items}>" if items else ""
    if of.kept_as == "record" and not of.has_data_as_names:
        fields = {name: _column_type(field, is_inside=True) for name, field in of.fields.items()}
        members = ", ".join(f"{_quoted(name)}: {kind}" for name, kind in fields.items() if kind)
        return f"struct<{members}>" if members else ""
    if of.kept_as in ("json", "record"):
        return "string" if is_inside else "json"
    return _TIMES[of.time] if of.time is not None else of.kept_as


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else "`{}`".format(name.replace("`", "``"))
