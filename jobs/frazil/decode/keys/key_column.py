"""The column `_kafka_key` of a topic whose keys are more than bytes: its type, its changes, its decoding.

A key that is a record is a struct of its fields, any other key a value of its type. The oldest version decides between struct
and value once: what a later version of the other shape wrote does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.clients.registry.client import Registry
from frazil.declaration.options import MetadataColumns
from frazil.declaration.topic import Topic
from frazil.decode.decoded_columns import DECODED, KEY
from frazil.decode.decoder import Decoder
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.envelopes.envelope import NO_ENVELOPE, Envelope
from frazil.errors import IncompatibleSchema
from frazil.schemas.evolution.field_ids import is_union
from frazil.schemas.evolution.merge import brief, incompatible, merge
from frazil.schemas.evolution.schema_changes import Change, CommentColumn
from frazil.schemas.evolution.table_mapping import Landing, landing
from frazil.schemas.types import Decimal, Field, Kind, Primitive, Struct, Type

VALUE_COLUMN = "value"
_REFUSED = frozenset({Kind.FLOAT, Kind.DOUBLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLanding(Landing):
    """The changes of the key's column, and how keys land in it, by writer's number."""

    is_single_value: bool


class Keys:
    """The keys of a topic that are more than bytes; `layout` says where their column is.

    If they `name_rows`, they are of one message type of Protobuf: two messages with the same fields are two keys. `unfit` says why
    a version of the keys does not fit, whatever the column is; it has no effect if no version fits. The columns of an existing
    table, `there`, say what a key is, before the oldest version does: a log may begin with a record that was rejected.
    """

    def __init__(
        self,
        topic: Topic,
        registry: Registry | None,
        layout: MetadataColumns = MetadataColumns.FLAT,
        envelope: Envelope = NO_ENVELOPE,
        *,
        name_rows: bool = False,
        unfit: Callable[[Struct], IncompatibleSchema | None] = lambda row: None,
    ) -> None:
        self.writers = writer_schemas(topic, registry, keys=True, envelope=envelope, of_one_type=name_rows)
        self._path, self._unfit = _path(layout), unfit
        self.there: Struct | None = None

    def follow(self, table: Struct | None) -> None:
        """Take the columns of an existing table for known; None, or those without the key's, for unknown."""
        self.there = table if table is not None and _found(table, self._path) is not None else None

    @property
    def row(self) -> Struct:
        """Return the row type of the keys; there must be a version. A key that is one value has one field."""
        versions = self._shaped()[0]
        there = self._row_in(self.there) if self.there is not None and not versions else None
        return there or merge(versions).type

    @property
    def single(self) -> Field | None:
        """The field of a key that is one value; None for a record."""
        return self.row.fields[0] if self.is_single_value else None

    @property
    def type(self) -> Type:
        """Return the type of the column in a new table; there must be a version."""
        return self.row.fields[0].type if self.is_single_value else self.row

    def landing(self, table: Struct, *, may_add: bool, may_widen: bool) -> KeyLanding:
        """Bring the known versions into the key's column of an existing table.

        Raises `IncompatibleSchema` if none of a registry's fits: the column was made for another key format.
        """
        self.follow(table)
        versions, misshapen = self._shaped()
        row = self._row_in(table)
        if row is None:
            column = _column(table, self._path)
            raise incompatible(self._path, f"keys that are records do not land in {brief(column.type)}")
        found = landing(row, versions, may_add=may_add, may_widen=may_widen)
        unfit = {**misshapen, **{number: self._at_the_column(p) for number, p in found.incompatible.items()}}
        if len(unfit) == len(self.writers.versions) and not self.writers.is_in_records:
            raise next(iter(unfit.values()))
        is_single, made = self.is_single_value, self._rooted(found)
        return KeyLanding(changes=made, target=found.target, incompatible=unfit, is_single_value=is_single)

    def decoder(self, landed: KeyLanding, *, is_exact: bool = False, is_closed: bool = False) -> Decoder:
        """Return the decoder of keys into the column.

        With `is_exact` no value of theirs becomes another one, with `is_closed` they have nothing but the column.
        """
        target = landed.target.exact() if is_exact else landed.target
        return self.writers.decoder(target, landed.incompatible, is_closed=is_closed)

    @property
    def is_single_value(self) -> bool:
        """Return whether the keys are no records."""
        types = [*self.writers.types.values()]
        oldest = next((of for of in types if self._unfit(of.row) is None), types[0])
        if self.there is None:
            return oldest.is_single_value
        column = _column(self.there, self._path)
        has_fields = isinstance(column.type, Struct) and not is_union(column.type)
        if has_fields and oldest.is_single_value and isinstance(oldest.row.fields[0].type, Struct):
            return True  # a record or null
        is_made_for = self.writers.is_in_records or any(of.is_single_value is not has_fields for of in types)
        return not has_fields if is_made_for else oldest.is_single_value

    def _row_in(self, table: Struct) -> Struct | None:
        """Return the rows of keys that the table's column has; None if it has no records and keys are some."""
        column = _column(table, self._path)
        if self.is_single_value:
            return Struct((Field(VALUE_COLUMN, column.type, doc=column.doc),))
        return column.type if isinstance(column.type, Struct) else None

    def _shaped(self) -> tuple[list[tuple[int, Struct]], dict[int, IncompatibleSchema]]:
        """Return the versions that have the shape of the oldest and fit, and the others."""
        fit, unfit, is_single = [], {}, self.is_single_value
        for number, of in self.writers.types.items():
            if of.is_single_value is is_single:
                fit.append((number, of.row))
            else:
                shape = "a record" if is_single else "no record"
                unfit[number] = incompatible(self._path, f"the key is {shape} here, and the column is for the other")
        refused = {number: self._at_the_column(why) for number, row in fit if (why := self._unfit(row)) is not None}
        if self.there is not None and (there := self._row_in(self.there)) is not None:
            left = [each for each in fit if each[0] not in refused]
            refused |= {number: self._at_the_column(why) for number, why in landing(there, left).incompatible.items()}
        is_decided = self.there is not None and self.writers.is_in_records  # a record's schema is one of many
        if len(refused) == len(fit) and not is_decided:
            return fit, unfit
        return [(number, row) for number, row in fit if number not in refused], unfit | refused

    def _at_the_column(self, problem: IncompatibleSchema) -> IncompatibleSchema:
        """Return the problem with the path that it has in the table."""
        path = problem.where.split(".")[1 if self.is_single_value else 0 :]
        return incompatible((*self._path, *path), problem.what)

    def _rooted(self, found: Landing) -> tuple[Change, ...]:
        """Return the changes with the paths that they have in the table; a comment is the column's own and stays."""
        kept = (
            c for c in found.changes if not (self.is_single_value and isinstance(c, CommentColumn) and len(c.path) == 1)
        )
        at = 1 if self.is_single_value else 0
        return tuple(replace(c, path=(*self._path, *c.path[at:])) for c in kept)


def key_problem(column: Field) -> str:
    """Return why a column cannot be part of a key, for after its name; empty if it can."""
    if column.has_own_scale:
        return (
            "holds numbers that each have a scale of their own, which cannot be a key: equal ones can differ in bytes"
        )
    if column.as_json:
        return "is JSON text, which cannot be a key: two texts can be one key"
    is_key = isinstance(column.type, Decimal)
    if isinstance(column.type, Primitive):
        is_key = column.type.kind not in _REFUSED
    if is_key:
        return ""
    return (
        f"is of type {column.type}, which cannot be a key: write modes with a key take integers, text, bytes, booleans, dates, "
        "timestamps and decimals"
    )


def check_bytes(table: Struct, layout: MetadataColumns) -> None:
    """Raise `IncompatibleSchema` if the table's column was made for decoded keys, and keys land as bytes."""
    column = _column(table, _path(layout))
    if column.type != Primitive(Kind.BINARY):
        raise incompatible(_path(layout), f"keys of format bytes do not land in {brief(column.type)}")


def _path(layout: MetadataColumns) -> tuple[str, ...]:
    return ("_kafka_key",) if layout is MetadataColumns.FLAT else ("_kafka", "key")


def _column(table: Struct, path: tuple[str, ...]) -> Field:
    column = _found(table, path)
    if column is None:
        raise incompatible(path, "the table has no such column")
    return column


def _found(table: Struct, path: tuple[str, ...]) -> Field | None:
    *outer, name = path
    for step in outer:
        inner = next((field.type for field in table.fields if field.name == step), None)
        table = inner if isinstance(inner, Struct) else Struct(())
    return next((field for field in table.fields if field.name == name), None)


def key_column(landed: KeyLanding) -> Column:
    """Return the key's column of decoded records."""
    if landed.is_single_value:
        return F.col(KEY)[landed.target.fields[0].name]
    fields = [F.col(KEY)[field.name].alias(field.name) for field in landed.target.fields]
    return F.when(F.coalesce(F.col(KEY)[DECODED], F.lit(False)), F.struct(*fields))
