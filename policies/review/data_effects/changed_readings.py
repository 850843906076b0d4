"""Values that a changed schema file reads otherwise in bytes of the old one, though columns may stay as they are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from frazil.declaration import JsonSchema, Protobuf, SchemaFile
from frazil.schema_files.declared_rows import row_of
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.protobuf import FieldKind, MessageField, ProtobufSchema
from frazil.schemas.types import ListOf, MapOf, Struct, Type

_MEANING = ("logicalType", "precision", "scale")
"""Members of an Avro schema that say what a value means. Its fingerprint lacks them."""
_CONNECT_MEANING = ("connect.name", "title")
"""Those of Debezium's schemas, in Avro and in JSON Schema. Elsewhere they are names for people."""
_WIDER = frozenset(
    {
        (FieldKind.INT32, FieldKind.INT64),
        (FieldKind.UINT32, FieldKind.UINT64),
        (FieldKind.UINT32, FieldKind.INT64),
        (FieldKind.SINT32, FieldKind.SINT64),
        (FieldKind.STRING, FieldKind.BYTES),
    }
)
"""Kinds whose bytes the other one reads as the same value (https://protobuf.dev/programming-guides/proto3/#updating)."""
_MOST = 3


def changed_readings(
    old: SchemaFile, new: SchemaFile, messages: Sequence[str | None], *, connect_types: bool = False
) -> str:
    """Return which values of the old schema the new one reads otherwise; nothing if there are none.

    `messages` are the full names of the Protobuf messages, before and after. With `connect_types`, Kafka Connect's names of types
    count, as they do in change data. Raises `UnreadableSchema`, and `ValueError` for text
    that is no JSON.
    """
    if old.format != new.format:
        return ""
    if new.format == Protobuf.kind:
        found = list(_protobuf(old, new, messages))
    else:
        says = (*_MEANING, *(_CONNECT_MEANING if connect_types else ()))
        before, after = (dict(_meanings(json.loads(file.content), "", says)) for file in (old, new))
        shared = (path for path in before if path in after and before[path] != after[path])
        found = [f"{path or 'the schema'} ({_text(before[path])} becomes {_text(after[path])})" for path in shared]
        if new.format == JsonSchema.kind:
            found += _renamed(row_of(old, None), row_of(new, None), "")
    return ", ".join(found[:_MOST]) + (f" and {len(found) - _MOST} more" if len(found) > _MOST else "")


def _meanings(tree: Any, path: str, says: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path of each schema of a file, by names of fields, and what the members `says` say of its values."""
    match tree:
        case dict():
            yield path, {name: tree[name] for name in says if isinstance(tree.get(name), str | int)}
            for name, inside in tree.items():
                if isinstance(inside, dict | list):
                    yield from _meanings(inside, f"{path}.{name}" if path else name, says)
        case list():
            for position, inside in enumerate(tree):
                name = inside.get("name", position) if isinstance(inside, dict) else position
                yield from _meanings(inside, f"{path}.{name}", says)


def _renamed(before: Type, after: Type, path: str) -> Iterator[str]:
    """Yield the properties of JSON that have another name in the new schema, and the same column."""
    match before, after:
        case Struct(), Struct():
            there = {folded(field.source): field for field in after.fields}
            kept = {field.source for field in after.fields}
            for field in before.fields:
                now = there.get(folded(field.source))
                if now is not None and field.source not in kept:
                    yield f"{path}{field.source} (the schema has {now.source} instead, so it is null)"
                elif now is not None:
                    yield from _renamed(field.type, now.type, f"{path}{field.source}.")
        case ListOf(element), ListOf(other):
            yield from _renamed(element, other, f"{path}element.")
        case MapOf(_, value), MapOf(_, other):
            yield from _renamed(value, other, f"{path}value.")


def _text(meaning: dict[str, Any]) -> str:
    return " ".join(str(value) for value in meaning.values()) or "none"


def _protobuf(old: SchemaFile, new: SchemaFile, messages: Sequence[str | None]) -> Iterator[str]:
    from frazil.schema_files.descriptors import message_schema

    names = [str(name) for name in messages]
    before, after = (message_schema(file.data, name) for file, name in zip((old, new), names, strict=True))
    waiting, seen = [(names[0], names[1])], set[tuple[str, str]]()
    while waiting:
        pair = waiting.pop()
        if pair in seen or pair[0] not in before.messages or pair[1] not in after.messages:
            continue
        seen.add(pair)
        there = {field.number: field for field in after.messages[pair[1]].fields}
        kept = {field.name for field in before.messages[pair[0]].fields}
        for field in before.messages[pair[0]].fields:
            now = there.get(field.number)
            if now is None:
                moved = next((other for other in there.values() if other.name == field.name), None)
                if moved is not None:
                    yield f"{pair[0]}.{field.name} (number {field.number} becomes {moved.number})"
            elif field.repeated is not now.repeated or not _is_same(field, now, kept):
                yield f"{pair[0]}, number {field.number} ({_shown(field)} becomes {_shown(now)})"
            elif _enum_changes(before, field, after, now):
                yield f"{pair[0]}.{field.name} (a number of its enum has another name)"
            elif field.type_name in before.messages:
                waiting.append((field.type_name, now.type_name))


def _is_same(old: MessageField, new: MessageField, names: Collection[str]) -> bool:
    """Return whether a number has the field that it had, perhaps renamed. A field with another name and type is another one."""
    if old.name == new.name:
        return old.kind is new.kind or (old.kind, new.kind) in _WIDER
    return new.name not in names and (old.kind, old.type_name) == (new.kind, new.type_name)


def _shown(field: MessageField) -> str:
    return f"{'repeated ' if field.repeated else ''}{field.kind} {field.name}"


def _enum_changes(before: ProtobufSchema, old: MessageField, after: ProtobufSchema, new: MessageField) -> bool:
    """Return whether a number of the old enum has another name now; a further number is no change."""
    names, earlier = (
        dict(schema.enums.get(name, {})) for schema, name in ((after, new.type_name), (before, old.type_name))
    )
    return any(names.get(number, name) != name for number, name in earlier.items())
