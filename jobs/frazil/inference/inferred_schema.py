"""A sampled type as a JSON Schema and its file, an Avro schema, or the columns of a declaration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from frazil.declaration.checks.constraints import shown
from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.documents.from_json import parsed
from frazil.errors import InvalidInput, UnreadableSchema
from frazil.inference.sample import JSON_TEXT, Place, Sample
from frazil.schemas.json.documents import parse
from frazil.schemas.json.json_schema import row_type

_TYPES = re.compile(r'\[\n\s*("[a-z]+"),\n\s*("[a-z]+")\n\s*\]')
_DO = "Correct the file, or name another: --out"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_AVRO = {"integer": "long", "number": "double"}
_COLUMNS = {**_AVRO, "date-time": "timestamptz", JSON_TEXT: "string"}


def record_name(topic: str, suffix: str = "") -> str:
    """Return the name of a topic's records: `Orders` of `orders`, `ShopOrders` of `shop.orders`."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", topic) if word]
    name = "".join(word[0].upper() + word[1:] for word in words) + suffix
    return name if _NAME.fullmatch(name) else f"Topic{name}"


def json_schema(of: Place, title: str) -> dict[str, Any]:
    """Return the schema of records. Each field may be null or missing; fields of which no value shows the type are omitted."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": title, **_json(of), "type": "object"}


def _json(of: Place) -> dict[str, Any]:
    if of.kind == JSON_TEXT:
        return {}
    made: dict[str, Any] = {"type": [of.kind, "null"]}
    if of.format:
        made["format"] = of.format
    if of.items is not None:
        made["items"] = _json(of.items)
    if of.kind == "object":
        made["properties"] = {name: _json(place) for name, place in of.fields.items() if place.type}
    return made


def avro_schema(of: Place, name: str) -> str:
    """Return the Avro schema of records. Raises `InvalidInput` if a field has a name that Avro does not allow."""
    return json.dumps(_avro(of, name))


def _avro(of: Place, name: str) -> Any:
    """Return the type without null. A place without any value is a string."""
    if of.items is not None:
        items = _avro(of.items, f"{name}_item")
        return {"type": "array", "items": ["null", items] if of.items.nulls else items}
    if of.kind != "object":
        return _AVRO.get(of.kind, of.kind or "string")
    fields: list[dict[str, Any]] = []
    for field, inner in of.fields.items():
        if not _NAME.fullmatch(field):
            do = "Rename the field, or give --format json_schema; nothing was produced"
            raise InvalidInput(f"Avro allows no field {shown(field)}", where=inner.path, do=do)
        kind = _avro(inner, f"{name}_{field}")
        is_nullable = not inner.kind or inner.values < inner.objects
        default = {"type": ["null", kind], "default": None} if is_nullable else {"type": kind}
        fields.append({"name": field, **default})
    return {"type": "record", "name": name, "fields": fields}


def columns(of: Place) -> tuple[str, ...]:
    """Return the columns of records in the notation of a declaration, such as `id long`."""
    return tuple(
        f"{_quoted(name)} {'json' if place.kind == JSON_TEXT else _column(place)}"
        for name, place in of.fields.items()
        if name and place.type
    )


def _column(of: Place) -> str:
    """Return the type of a place. A part of a column cannot be JSON text, so it is a string."""
    if of.items is not None:
        return f"list<{_column(of.items)}>"
    if of.kind == "object":
        inside = (f"{_quoted(name)}: {_column(one)}" for name, one in of.fields.items() if name and one.type)
        return f"struct<{', '.join(inside)}>"
    return _COLUMNS.get(of.type, of.type)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else "`{}`".format(name.replace("`", "``"))


def proposed(sample: Sample, topic: str, existing: bytes | None, file: str) -> tuple[str, dict[str, str]]:
    """Return the text of a schema file, and the fields that it adds to an existing one, with their types.

    Raises `InvalidInput` if no field has a value, or if a declaration would refuse the file.
    """
    made = json_schema(sample.found, record_name(topic))
    if not made.get("properties"):
        do = "Sample more of them: --records, or give --file"
        raise InvalidInput(f"no field of {sample.records:,} records has a value", where=f"topic {topic}", do=do)
    if existing is None:
        return _text(made, file), {}
    try:
        schema = parsed(existing.removeprefix(b"\xef\xbb\xbf"), file)
    except InvalidDeclaration as invalid:
        raise InvalidInput(invalid.problems[0].what, where=file, do=_DO) from None
    if not isinstance(schema, dict) or not isinstance(schema.get("properties"), dict):
        raise InvalidInput("it is no JSON Schema of an object with properties", where=file, do=_DO)
    types = {place.path: place.type for place in sample.fields}
    added = {path: types[path] for path in _add(schema["properties"], made["properties"], "")}
    return _text(schema, file), added


def _add(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[str]:
    """Add new properties to those of the file, which stay as they are."""
    for name, schema in new.items():
        known = old.setdefault(name, schema)
        inside = known.get("properties") if isinstance(known, dict) else None
        if known is schema:
            yield f"{path}{name}"
        elif isinstance(inside, dict):
            yield from _add(inside, schema.get("properties", {}), f"{path}{name}.")


def _text(schema: dict[str, Any], file: str) -> str:
    """Return the text of the file: indented, as people edit it, and the types of a place on one line."""
    text = _TYPES.sub(r"[\1, \2]", json.dumps(schema, indent=2, ensure_ascii=False)) + "\n"
    try:
        row_type(parse(text, {}))
    except UnreadableSchema as error:
        raise InvalidInput(error.what, where=file, do=error.do) from None
    return text
