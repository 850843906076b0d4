"""The column of the fields that a record of JSON has beside its declared columns."""

from __future__ import annotations

from frazil.schemas.types import Field, Kind, Primitive, Struct

UNKNOWN = "_unknown"
"""Its name. A property of this name is one of the unknown fields."""
_FIELD = Field(
    UNKNOWN, Primitive(Kind.STRING), doc="the fields of the record that are no column, as JSON", as_json=True
)


def with_unknown(row: Struct, *, keeps: bool) -> Struct:
    """Return the row type, with the column of unknown fields at its end if they are kept."""
    return Struct((*row.fields, _FIELD), origins=row.origins) if keeps else row
