"""The key of a row in a table of current state: its columns, what they hold, and which records have no valid key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.decode.decoding import KEY, ROW
from frazil.decode.keys import KeyLanding
from frazil.decode.spark_types import spark_type
from frazil.errors import InvalidInput
from frazil.schemas.merge import same_field
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Decimal, Field, Kind, Primitive, Struct, Type

KEY_COLUMN = "_kafka_key"
"""The key's column in a table whose record keys are one value, not a record of fields."""
KEY_VERSION = -1
"""The number of the key's fields among the versions of a table's rows; schema ids are not negative."""
_MARK = "_frazil_"
_REFUSED = frozenset({Kind.FLOAT, Kind.DOUBLE})


@dataclass(frozen=True, slots=True)
class RowKey:
    """The columns that identify a row.

    `columns` are the table's, by name. `fields` says which field of the decoded key each one is; `None` is the key itself.
    `shared` are those that the value has, too; a value in which they are null says nothing of the key.
    """

    columns: tuple[Field, ...]
    fields: Mapping[str, str | None]
    shared: frozenset[str] = frozenset()
    landing: KeyLanding | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    def values(self) -> dict[str, Column]:
        """Return what the columns hold, from the record's key: it is there for a record without a value, too."""
        return {column.name: self._of_record(column).cast(spark_type(column.type)) for column in self.columns}

    def reason(self) -> Column:
        """Return why a record has no row in spite of a decoded key and value; null if it has one."""
        found = self.values()
        has_null = reduce(Column.__or__, (value.isNull() for value in found.values()))
        reason = F.when(F.col("key").isNull(), Reason.KEY_MISSING.value).when(has_null, Reason.KEY_NULL.value)
        if self.shared:
            differs = reduce(Column.__or__, (F.col(ROW)[name] != found[name] for name in sorted(self.shared)))
            reason = reason.when(differs, Reason.KEY_MISMATCH.value)
        return reason

    def _of_record(self, column: Field) -> Column:
        if self.landing is None:
            return F.col("key")
        field = self.fields[column.name]
        return F.col(KEY)[field if field is not None else self.landing.target.fields[0].name]


def check_type(column: str, of: Type) -> None:
    """Raise `InvalidInput` if a column of this type cannot be part of a key: two values that look equal may not be."""
    match of:
        case Primitive(kind=kind) if kind not in _REFUSED:
            return
        case Decimal():
            return
    raise InvalidInput(
        f"{column} is of type {of}, which is no key: write modes with a key take integers, text, bytes, booleans, dates, "
        "timestamps and decimals",
        where=f"key column {column}",
        do="Choose write=Append(), or give the topic's records another key",
    )


def row_key(
    target: Struct, values: Struct, key: Type, fields: Struct | None, landing: KeyLanding | None = None
) -> RowKey:
    """Return the key of rows of type `target`.

    `values` is the merged type of the values, `key` that of the record's key, and `fields` the key's fields if it is a record.
    Each of them is a column of the target, in whose order they come: schemas may list fields in any order, and hashes depend on
    it. Raises `InvalidInput` as `check_type` does.
    """
    for field in target.fields:
        if field.name.startswith(_MARK):
            raise InvalidInput(
                f"the column {field.name} begins with {_MARK}, as columns of a batch's own do that never land",
                where=f"column {field.name}",
                do="Rename the field, or choose write=Append()",
            )
    if fields is None:
        check_type(KEY_COLUMN, key)
        return RowKey((Field(KEY_COLUMN, key),), {KEY_COLUMN: None}, landing=landing)
    columns = {field.name: column for field in fields.fields if (column := same_field(field, target.fields))}
    if not columns:
        raise InvalidInput(
            "the record's key has no fields, so all records have one key", where="key", do="Choose write=Append()"
        )
    for column in columns.values():
        if column.as_json:
            raise InvalidInput(
                f"{column.name} is JSON text, which is no key: two texts can be one key",
                where=f"key column {column.name}",
                do="Choose write=Append(), or give the topic's records another key",
            )
        check_type(column.name, column.type)
    shared = {column.name for column in columns.values() if same_field(column, values.fields)}
    # A key's column that may not be renamed keeps the earlier name of its field.
    decoded = landing.target.fields if landing is not None else fields.fields
    named = {field.name: (same_field(field, decoded) or field).name for field in fields.fields}
    sources = {column.name: named[name] for name, column in columns.items()}
    ordered = tuple(column for column in target.fields if column.name in sources)
    return RowKey(ordered, sources, frozenset(shared), landing)
