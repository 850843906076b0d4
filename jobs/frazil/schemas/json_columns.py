"""The type of columns that hold JSON. Decoders make JSON text, and a table may have variants in its place."""

from __future__ import annotations

from dataclasses import replace

from frazil.schemas.evolution.field_ids import made_of, origins
from frazil.schemas.types import Field, Kind, Primitive, Struct, Type, inside, with_inside

VARIANT = Primitive(Kind.VARIANT)
_TEXT = Primitive(Kind.STRING)


def with_variants(row: Struct) -> Struct:
    """Return the row type with variants in place of JSON text, at all levels."""
    return _structs(row, VARIANT)


def with_texts(row: Struct) -> Struct:
    """Return the row type with JSON text in place of variants, at all levels."""
    return _structs(row, _TEXT)


def has_variants(of: Type) -> bool:
    """Return whether the type is a variant, or has one at any level."""
    return of == VARIANT or any(map(has_variants, inside(of)))


def variant_columns(row: Struct) -> tuple[str, ...]:
    """Return the names of the columns that are variants; those of fields in structs have dots."""
    found: list[str] = []
    for field in row.fields:
        if field.type == VARIANT:
            found.append(field.name)
        elif isinstance(field.type, Struct):
            found += [f"{field.name}.{name}" for name in variant_columns(field.type)]
    return tuple(found)


def _structs(row: Struct, json: Primitive) -> Struct:
    return Struct(tuple(_field(field, json) for field in row.fields), origins=row.origins)


def _field(field: Field, json: Primitive) -> Field:
    if field.as_json or field.type == VARIANT:
        return replace(field, type=made_of(json, *origins(field.type)), as_json=True)
    return replace(field, type=_type(field.type, json))


def _type(of: Type, json: Primitive) -> Type:
    return _structs(of, json) if isinstance(of, Struct) else with_inside(of, lambda inner: _type(inner, json))
