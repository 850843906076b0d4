"""The columns of the values that a declaration names as the key, and the fields of the record's key that they are."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from frazil.errors import InvalidInput
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.evolution.merge import same_field
from frazil.schemas.types import Field, Struct

KEY_VERSION = -1
"""The number of the key's fields among the versions of a table's rows; schema ids are not negative."""


def named(names: Sequence[str], values: Struct) -> tuple[Field, ...]:
    """Return the fields of the values' merged type that are the columns of these names, or were before a rename.

    Raises `InvalidInput` if no version has a column.
    """
    there = {folded(name): field for field in values.fields for name in (*field.aliases, field.source)}
    there |= {field.name: field for field in values.fields}
    missing = [name for name in names if name not in there]
    if missing:
        columns = [field.name for field in values.fields]
        near = [close for name in missing for close in get_close_matches(name, columns, n=1)]
        raise InvalidInput(
            f"no version of the value has {', '.join(missing)}; its columns are {', '.join(sorted(columns))}",
            where="write.key",
            do=f"Did you mean {', '.join(near)}?"
            if near
            else "Name columns of the value, or the record_name of a Protobuf value",
        )
    return tuple(dict.fromkeys(there[name] for name in names))


def fields_of_key(columns: Sequence[Field], fields: Struct | None) -> dict[str, Field]:
    """Return column -> the field of the record's key that it is; none if one of these columns is no field of it."""
    found = {column.name: same_field(column, fields.fields) for column in columns} if fields is not None else {}
    held = {name: field for name, field in found.items() if field is not None}
    return held if len(held) == len(columns) else {}


def key_version(names: Sequence[str], values: Struct, fields: Struct | None) -> Struct:
    """Return the types that the record's key has for these columns, as one more version of the values; none without fields.

    It widens the columns to what the record's key holds, and changes neither names nor comments.
    """
    columns = named(names, values)
    found = fields_of_key(columns, fields)
    return Struct(tuple(Field(c.name, found[c.name].type, source=c.source) for c in columns if c.name in found))
