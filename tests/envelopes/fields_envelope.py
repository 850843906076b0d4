"""An envelope of the tests' own: flat records with fields for the operation, the key and the order beside those of the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.envelopes.envelope import Change, Operation
from frazil.schemas.types import Field, Kind, Primitive, Struct

_OPERATIONS: Mapping[str, Operation] = {
    "insert": Operation.WRITE,
    "update": Operation.WRITE,
    "delete": Operation.DELETE,
    "truncate": Operation.TRUNCATE,
    "ping": Operation.NOTHING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What a declaration of it says: the names of the fields; `order` may be none."""

    operation: str
    key: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    kind: ClassVar[str] = "fields"
    operation_column: ClassVar[bool] = False
    source_column: ClassVar[bool] = False
    has_before: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class FieldsEvents:
    """Its records, which all have the declared fields."""

    declared: Fields

    has_changes: ClassVar[bool] = True

    @property
    def order(self) -> tuple[str, ...]:
        """The columns of the order."""
        return self.declared.order

    def unwrapped(self, record: Struct) -> FieldsRow:
        """Return how records of this type are unwrapped."""
        return FieldsRow(Struct(tuple(f for f in record.fields if f.source != self.declared.operation)), self.declared)

    def record(self, row: Struct) -> Struct:
        """Return the type of records of these rows."""
        return Struct((*row.fields, self._operation))

    @property
    def _operation(self) -> Field:
        return Field(self.declared.operation, Primitive(Kind.STRING))


@dataclass(frozen=True, slots=True)
class FieldsRow:
    """How records of one type are unwrapped."""

    row: Struct
    declared: Fields

    def decoded(self, target: Struct) -> Struct:
        """Return the row and the operation."""
        return Struct((*target.fields, Field(self.declared.operation, Primitive(Kind.STRING), required=True)))

    def change(self, record: Column, target: Struct) -> Change:
        """Return the change that a record is."""
        operation = F.lit(None).cast("string")
        for text, meant in _OPERATIONS.items():
            operation = F.when(record[self.declared.operation] == text, meant.value).otherwise(operation)

        def of(names: tuple[str, ...]) -> dict[str, Column] | None:
            return {field.name: record[field.name] for field in target.fields if field.source in names} or None

        after = {field.name: record[field.name] for field in target.fields}
        return Change(operation=operation, after=after, key=of(self.declared.key), order=of(self.declared.order))
