"""Tables whose rows have a key, as upserts and changelogs share them: their own columns, and which rows they refuse."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.decode.decoded_columns import is_delete
from frazil.decode.keys.key_column import key_problem
from frazil.decode.keys.row_order import row_order
from frazil.decode.shape.row_filter import is_filtered
from frazil.errors import IncompatibleSchema, InvalidInput
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.evolution.merge import incompatible
from frazil.schemas.metadata import ORDER
from frazil.schemas.types import Field, Struct
from frazil.write.mode import WriteMode

_DOC = "order of the row among the records of its key"


class KeyedMode(WriteMode):
    """See `WriteMode`. `tables` is the name of such tables in messages."""

    tables: ClassVar[str]

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def deletes(self) -> Column:
        """Return whether a record deletes its row: also one that has a row, and does not match the declared condition."""
        found = is_delete(has_changes=self._pipeline.is_change_data)
        return found if self._pipeline.shape.condition is None else found | is_filtered()

    def dropped(self) -> Column:
        """See `WriteMode`: a record that does not match is a delete."""
        return F.lit(False)

    def columns(self, row: Struct) -> tuple[Field, ...]:
        """Return the column of the order, if one is declared."""
        self.check_columns(row)
        order = row_order(self._pipeline.write.order_columns, row)
        return () if order is None else (Field(ORDER, order.type, doc=_DOC),)

    def check_columns(self, row: Struct) -> None:
        """See `WriteMode`."""
        for field in row.fields:
            if field.name in self.own:
                raise InvalidInput(
                    f"the column {field.name} is Frazil's own in {self.tables}",
                    where=f"column {field.name}",
                    do="Rename the field, or choose write=Append()",
                )

    def unfit(self, row: Struct, key: Collection[str] = (), order: Collection[str] = ()) -> IncompatibleSchema | None:
        """See `WriteMode`."""
        sources = [folded(field.source) for field in row.fields]
        for number, field in enumerate(row.fields):
            where, name = (field.source,), sources[number]
            names = {alias for alias in map(folded, field.aliases) if alias not in sources}
            if name not in sources[:number]:  # else it has another name in the table
                names.add(name)
            if not names.isdisjoint(self.own):
                return incompatible(where, f"the column {field.name} is Frazil's own in tables with a key")
            if field.ids:  # of Protobuf: its number says which column it is, and it has one type
                continue
            is_key = field.source in key if self._pipeline.write.key is None else not names.isdisjoint(key)
            if is_key and (what := key_problem(field)):
                return incompatible(where, f"the column {what}")
            for name in names.intersection(order):
                try:
                    row_order((name,), Struct((replace(field, name=name),)))
                except InvalidInput as problem:
                    return incompatible(where, problem.what)
        return None
