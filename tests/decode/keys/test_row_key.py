"""What a row's key is: where the row before a change has its columns."""

from __future__ import annotations

from frazil.declaration import Debezium
from frazil.declaration.envelopes import BEFORE_COLUMN
from frazil.decode.keys.row_key import RowKey
from frazil.schemas.evolution.merge import merge
from frazil.schemas.types import Field, Kind, Primitive, Struct

LONG, TEXT = Primitive(Kind.LONG), Primitive(Kind.STRING)


def test_the_row_before_has_names_of_its_own() -> None:
    """In the row the key's fields get their plain names first, in the row before those that the source has first."""
    row = (Field("ID", TEXT), Field("id", LONG), Field("_pos", LONG))
    versions = [(0, Struct((row[1], row[2]))), (1, Struct((*row, Field(BEFORE_COLUMN, Struct(row)))))]
    merged = merge(versions).type
    names = {field.source: field.name for field in merged.fields}
    columns = tuple(field for field in merged.fields if field.source in ("id", "_pos"))
    key = RowKey(columns, {column.name: column.source for column in columns})
    image = next(field.type for field in merged.fields if field.source == BEFORE_COLUMN)
    assert isinstance(image, Struct)
    of_image = {field.source: field.name for field in image.fields}
    assert names["id"] != of_image["id"]
    found = key.in_row_before(merged, Debezium(replica_identity="full"))
    assert found == tuple(sorted((names[source], of_image[source]) for source in ("id", "_pos")))
    assert key.in_row_before(merged, None) == ()
