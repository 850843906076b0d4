"""Tables whose rows have a key, as upserts and changelogs share them: their own columns, and which rows they refuse."""

from __future__ import annotations

from frazil.declaration import Pipeline
from frazil.decode.keys.row_order import row_order
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.evolution.merge import incompatible
from frazil.schemas.metadata import ORDER
from frazil.schemas.types import Field, Struct

_DOC = "order of the row among the records of its key"


def order_fields(pipeline: Pipeline, row: Struct) -> list[Field]:
    """Return the column of the order, if one is declared."""
    order = row_order(pipeline.write.order_columns, row)
    return [] if order is None else [Field(ORDER, order.type, doc=_DOC)]


def check_columns(own: tuple[str, ...], row: Struct, tables: str) -> None:
    """Raise `InvalidInput` if a row has a column of a name that is taken in such tables."""
    for field in row.fields:
        if field.name in own:
            raise InvalidInput(
                f"the column {field.name} is Frazil's own in {tables}",
                where=f"column {field.name}",
                do="Rename the field, or choose write=Append()",
            )


def unfit(pipeline: Pipeline, own: tuple[str, ...], row: Struct) -> IncompatibleSchema | None:
    """Return why rows of this version are of no table with a key; None if they are."""
    by = (*(pipeline.write.key or ()), *pipeline.write.order_columns)
    for field in row.fields:
        name = folded(field.source)
        if name in own:
            return incompatible((field.source,), f"the column {name} is Frazil's own in tables with a key")
        if name in by and field.has_own_scale:
            return incompatible((field.source,), "numbers that each have a scale of their own are no key and no order")
    return None
