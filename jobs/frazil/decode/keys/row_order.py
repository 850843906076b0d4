"""The order of the records of one key in an upsert table: what it is made of, and which records have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.decoded_columns import ROW
from frazil.decode.spark_types import spark_type
from frazil.errors import InvalidInput
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.types import Decimal, Field, Kind, Primitive, Struct, Type

TIMESTAMP = "_kafka_timestamp"
"""The one metadata column that records are ordered by."""
_REFUSED = frozenset({Kind.FLOAT, Kind.DOUBLE, Kind.BOOLEAN})


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order of records: `fields` by their declared names, and the `columns` of the row that they are, renamed ones too."""

    fields: tuple[Field, ...]
    columns: Mapping[str, str]

    @property
    def type(self) -> Type:
        """The type of the table's column: that of the only field, or a struct of several. It is as wide as the columns are."""
        return self.fields[0].type if len(self.fields) == 1 else Struct(self.fields)

    def value(self, key: Mapping[str, Column]) -> Column:
        """Return the order of a decoded record; `key` has the columns of the row's key."""
        values = self._values(key)
        if len(self.fields) == 1:
            return values[0]
        return F.struct(*(value.alias(field.name) for value, field in zip(values, self.fields, strict=True)))

    def is_missing(self, key: Mapping[str, Column]) -> Column:
        """Return whether a decoded record lacks a field of its order."""
        return reduce(Column.__or__, (value.isNull() for value in self._values(key)))

    def _values(self, key: Mapping[str, Column]) -> list[Column]:
        return [self._of_record(self.columns[f.name], key).cast(spark_type(f.type)) for f in self.fields]

    def _of_record(self, column: str, key: Mapping[str, Column]) -> Column:
        if column == TIMESTAMP:
            return F.col("timestamp")
        return key[column] if column in key else F.col(ROW)[column]


def row_order(names: Sequence[str], target: Struct) -> RowOrder | None:
    """Return the order of rows of type `target` by these columns; None without names.

    Raises `InvalidInput` if one is no column of the row, or of a type whose values have no total order.
    """
    fields, columns = [], {}
    for name in names:
        column = Field(TIMESTAMP, Primitive(Kind.TIMESTAMPTZ)) if name == TIMESTAMP else _column(name, target)
        if column.has_own_scale:
            raise InvalidInput(
                f"{name} holds numbers that each have a scale of their own, whose bytes have another order",
                where=f"order column {name}",
                do="Name another column in Upsert(order_by=…)",
            )
        match column.type:
            case Primitive(kind=kind) if kind not in _REFUSED and not column.as_json:
                pass
            case Decimal():
                pass
            case of:
                raise InvalidInput(
                    f"{name} is {'JSON text' if column.as_json else f'of type {of}'}, which orders no records: order_by takes "
                    "integers, text, bytes, dates, timestamps and decimals",
                    where=f"order column {name}",
                    do="Name another column in Upsert(order_by=…)",
                )
        fields.append(Field(name, column.type))
        columns[name] = column.name
    return RowOrder(tuple(fields), columns) if fields else None


def _column(name: str, target: Struct) -> Field:
    """Return the column of this name, or that had it before a schema renamed it."""
    found = next((field for field in target.fields if field.name == name), None)
    found = found or next((field for field in target.fields if name in map(folded, field.aliases)), None)
    if found is not None:
        return found
    there = [field.name for field in target.fields]
    near = get_close_matches(name, there, n=1)
    raise InvalidInput(
        f"{name} is not a column of the row; there are {', '.join(sorted(there))}",
        where=f"order column {name}",
        do=f"Did you mean {near[0]}?" if near else "Name a column of the row, or _kafka_timestamp",
    )
