"""The columns that a table of current state has beside those of its rows: the order of a row, and when it was deleted."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.options import Deletion
from frazil.declaration.write_modes import Upsert, WriteMode
from frazil.decode.decoding import CHANGED_AT, ROW, is_delete
from frazil.decode.row_key import RowKey
from frazil.decode.row_order import row_order
from frazil.decode.spark_types import spark_type
from frazil.errors import InvalidInput
from frazil.lake.deletes.folding import Rules
from frazil.schemas.metadata import DELETED_AT, OF_STATES, ORDER
from frazil.schemas.schema_changes import Change, changes
from frazil.schemas.types import Field, Struct

_DOC = "order of the row among the records of its key"


def rules(write: WriteMode, *, keys_move: bool = False, fills: bool = False, about: tuple[str, ...] = ()) -> Rules:
    """Return how the changes of a batch take effect.

    `keys_move` says that records of a key may be in several partitions, `fills` that some leave values out; `about` is that of
    `Rules`.
    """
    if not isinstance(write, Upsert):
        return Rules()
    ordered, soft = bool(write.order_by), write.on_tombstone is Deletion.SOFT_DELETE
    return Rules(ordered=ordered, soft=soft, moved=keys_move and not ordered, fills=fills, about=about)


def state_fields(write: WriteMode, row: Struct) -> tuple[Field, ...]:
    """Return the columns of a table with rows of this type. Raises `InvalidInput` if the row has a column of such a name."""
    if not isinstance(write, Upsert):
        return ()
    for field in row.fields:
        if field.name in OF_STATES:
            raise InvalidInput(
                f"the column {field.name} is Frazil's own in tables of current state",
                where=f"column {field.name}",
                do="Rename the field, or choose write=Append()",
            )
    fields = []
    if (order := row_order(write.order_by, row)) is not None:
        fields.append(Field(ORDER, order.type, doc=_DOC))
    if write.on_tombstone is Deletion.SOFT_DELETE:
        fields.append(DELETED_AT)
    return tuple(fields)


def without_state_fields(table: Struct) -> Struct:
    """Return a table of current state as far as its rows decide on it."""
    return Struct(tuple(field for field in table.fields if field.name not in OF_STATES))


def state_changes(write: WriteMode, table: Struct, row: Struct) -> tuple[Change, ...]:
    """Return how these columns of an existing table follow: soft deletes may be declared later, and the order may widen."""
    wanted = Struct(state_fields(write, row))
    there = Struct(tuple(field for field in table.fields if field.name in OF_STATES))
    return tuple(change for change in changes(there, wanted) if wanted.fields)


def state_values(table: Struct, key: RowKey) -> Iterator[Column]:
    """Yield what a record gives these columns of the table.

    A record that deletes its row has the time of its change in the source, if that is known; else it gets its own when folded.
    """
    columns = {field.name: field.type for field in table.fields}
    if key.order is not None:
        yield key.order.value(key.values()).cast(spark_type(columns[ORDER])).alias(ORDER)
    if DELETED_AT.name in columns:
        at = F.when(is_delete(has_changes=True), F.col(ROW)[CHANGED_AT]) if key.has_changes else F.lit(None)
        yield at.cast(spark_type(DELETED_AT.type)).alias(DELETED_AT.name)
