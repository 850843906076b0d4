"""An inferred type as the text of a schema: in Avro, or as a JSON Schema."""

from __future__ import annotations

import json
import re
from typing import Any

from frazil.declaration.checks.constraints import shown
from frazil.errors import InvalidInput
from frazil.inference.inferred_type import Inferred

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
JSON_TYPES = {"": "string", "long": "integer", "double": "number", "record": "object"}
DRAFT = "http://json-schema.org/draft-07/schema#"


def record_name(topic: str, suffix: str = "") -> str:
    """Return the name of a topic's records: `Orders` of `orders`, `ShopOrders` of `shop.orders`."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", topic) if word]
    name = "".join(word[0].upper() + word[1:] for word in words) + suffix
    return name if _NAME.fullmatch(name) else f"Topic{name}"


def avro_schema(of: Inferred, name: str) -> str:
    """Return an Avro schema. Raises `InvalidInput` if a field has a name that Avro does not allow."""
    return json.dumps(_avro(of, name))


def json_schema(of: Inferred, title: str) -> str:
    """Return a JSON Schema."""
    return json.dumps({"$schema": DRAFT, "title": title, **_json(of)})


def _avro(of: Inferred, name: str) -> Any:
    """Return the type without null. A place without any value is a string."""
    if of.kind == "array" and of.items is not None:
        items = _avro(of.items, f"{name}_item")
        return {"type": "array", "items": ["null", items] if of.items.nulls else items}
    if of.kind != "record":
        return of.kind or "string"
    fields: list[dict[str, Any]] = []
    for field, inner in of.fields.items():
        if not _NAME.fullmatch(field):
            raise InvalidInput(
                f"Avro allows no field {shown(field)}",
                where=inner.path,
                do="Rename the field, or give --format json_schema; nothing was produced",
            )
        kind = _avro(inner, f"{name}_{field}")
        null = inner.nulls or inner.count < of.objects or not inner.kind
        fields.append(
            {"name": field, "type": ["null", kind], "default": None} if null else {"name": field, "type": kind}
        )
    return {"type": "record", "name": name, "fields": fields}


def _json(of: Inferred) -> dict[str, Any]:
    kind = JSON_TYPES.get(of.kind, of.kind)
    made: dict[str, Any] = {"type": [kind, "null"] if of.nulls or not of.kind else kind}
    if of.kind == "array" and of.items is not None:
        made["items"] = _json(of.items)
    if of.kind == "record":
        made["properties"] = {field: _json(inner) for field, inner in of.fields.items()}
        if required := [field for field, inner in of.fields.items() if inner.count == of.objects]:
            made["required"] = required
    return made


_TIMES = {"date-time": "timestamptz", "date": "date"}


def sampled_schema(of: Inferred, title: str) -> dict[str, Any] | None:
    """Return the schema of records; None if no field of them has a value."""
    schema = place_schema(of)
    return None if schema is None else {"$schema": DRAFT, "title": title, **schema, "type": "object"}


def place_schema(of: Inferred) -> dict[str, Any] | None:
    """Return the schema of the values at a place; None if there are none, or if nothing says what its members are."""
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
    columns = ((_quoted(name), _column_type(field)) for name, field in of.fields.items() if name)
    return tuple(f"{name} {kind}" for name, kind in columns if kind)


def _column_type(of: Inferred, *, is_inside: bool = False) -> str:
    """Return the type of a place; empty if no value shows it. A part of a column cannot be JSON text, so it is a string."""
    if of.kept_as == "array":
        items = _column_type(of.items, is_inside=True) if of.items is not None else ""
        return f"list<{items}>" if items else ""
    if of.kept_as == "record" and not of.has_data_as_names:
        fields = {name: _column_type(field, is_inside=True) for name, field in of.fields.items() if name}
        members = ", ".join(f"{_quoted(name)}: {kind}" for name, kind in fields.items() if kind)
        return f"struct<{members}>" if members else ""
    if of.kept_as in ("json", "record"):
        return "string" if is_inside else "json"
    return _TIMES[of.time] if of.time is not None else of.kept_as


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else "`{}`".format(name.replace("`", "``"))
