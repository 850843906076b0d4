"""The route of a topic's records: which are another table's, before they are decoded or after."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration import Field, Header, Pipeline, RecordName, Rest, Route
from frazil.decode.decoded_columns import writes_row
from frazil.decode.frames.wire_format import header
from frazil.errors import InvalidInput
from frazil.schemas.evolution.column_names import folded
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Decimal, Primitive, Struct, Type

_OF_BYTES = (
    *(Reason.TOO_SHORT, Reason.WRONG_MAGIC, Reason.HEADER_TOO_SHORT, Reason.HEADER_WRONG_MAGIC),
    Reason.BAD_MESSAGE_INDEX,
)
_OF_BODIES = (
    *(Reason.TOMBSTONE, Reason.REGISTRY_FRAME, Reason.SINGLE_OBJECT, Reason.NO_FINGERPRINT, Reason.UNDECODABLE),
    Reason.EMPTY_VALUE,
)
"""Reasons that are the same for each table of a topic, whatever its columns, and leave the type of a record unknown."""
MOST_PARTS = 200
"""Types by which records are divided before they are decoded. Of more types, each table reads all records."""


@dataclass(frozen=True, slots=True)
class RowRoute:
    """A route. By a field, the type of a record is at the `path` in its row, which is in the column `row` at the end."""

    route: Route
    path: tuple[str, ...] = ()
    row: str = ""

    @property
    def is_by_frame(self) -> bool:
        """Return whether the frame of a value says of which type it is."""
        return isinstance(self.route.by, RecordName)

    @property
    def is_early(self) -> bool:
        """Return whether a record's type is known before it is decoded, and is one of a few."""
        return not self.path and len(self.route.types) + len(self.route.others) <= MOST_PARTS

    def in_header(self) -> tuple[bytes, ...]:
        """Return the types of all tables, in order."""
        return tuple(sorted(one.encode() for one in (*self.route.types, *self.route.others)))

    def header(self) -> Column:
        """Return the header with the type of a record."""
        assert isinstance(self.route.by, Header)
        return header(F.col("headers"), self.route.by.name)

    def is_elsewhere(self, has_no_value: Column, of_frame: Column | None = None) -> Column:
        """Return whether a record is another table's as far as it is known before it is decoded; never null.

        `of_frame` says it by the frame.
        """
        found = of_frame if of_frame is not None else F.lit(False)
        if isinstance(self.route.by, Header):
            found = self._is_other()
        return F.when(has_no_value, F.lit(not self.route.tombstones)).otherwise(found)

    def is_decoded_elsewhere(self, row: str) -> Column:
        """Return whether a decoded record, whose row is in this column, is another table's; never null."""
        return writes_row(has_changes=False, row=row) & self._is_other(row)

    def is_routed(self) -> Column:
        """Return whether a record that writes a row is of a declared type, if others are rejected; never null."""
        if self.route.rest is not Rest.DEAD_LETTER or self.is_by_frame:
            return F.lit(True)
        return F.col("value").isNull() | self._is_one(self.route.types, self.row)

    def of_rejected(self, reason: Column) -> Column:
        """Return the reason of a rejected record: that it is another table's, if it has no type and is not this one's."""
        if self.route.undecodable or isinstance(self.route.by, Header):
            return reason
        others = _OF_BYTES if self.is_by_frame else (*_OF_BYTES, *_OF_BODIES)
        return F.when(reason.isin(*(one.value for one in others)), Reason.ROUTE.value).otherwise(reason)

    def _is_other(self, row: str = "") -> Column:
        is_filtered = self.route.rest is Rest.FILTER
        return ~self._is_one(self.route.types, row) if is_filtered else self._is_one(self.route.others, row)

    def _is_one(self, names: Sequence[str], row: str) -> Column:
        """Return whether a record is of one of these types; never null."""
        if not names:
            return F.lit(False)
        if isinstance(self.route.by, Header):  # as bytes: what is no text is no error
            return F.coalesce(self.header().isin([bytearray(one.encode()) for one in names]), F.lit(False))
        found = F.col(row)
        for name in self.path:
            found = found[name]
        return F.coalesce(found.cast("string").isin(list(names)), F.lit(False))


def row_route(pipeline: Pipeline, source: Struct, row: str, of_key: Collection[str]) -> RowRoute | None:
    """Return the declared route of rows of this type in the column `row`; None if none is declared.

    Raises `InvalidInput` if they do not have its field, or it is one of the columns `of_key`, which a value may lack.
    """
    route = pipeline.shape.route
    if route is None or not isinstance(route.by, Field):
        return None if route is None else RowRoute(route)
    names, of, is_json = list[str](), source, False
    path: Sequence[str] = route.by.path.split(".")
    found: Type = source
    for name in path:
        of = found if isinstance(found, Struct) else Struct(())
        one = next((each for each in of.fields if folded(each.name) == folded(name)), None)
        if not names and one is not None and one.name in of_key:
            what, do = f"the field {one.name} is one of the record's key, which a value may lack", "Route by Header(…)"
            raise InvalidInput(
                what, where=f"pipeline {pipeline.name}, shape.route", do=f"{do}, or name a key of the value"
            )
        if one is None:
            raise _unfit(pipeline, f"the rows have no field {route.by.path}", of)
        names.append(one.name)
        found, is_json = one.type, one.as_json
    if not isinstance(found, Primitive | Decimal) or is_json:
        raise _unfit(pipeline, f"the field {route.by.path} is not one value", of)
    return RowRoute(route, tuple(names), row)


def _unfit(pipeline: Pipeline, what: str, of: Struct) -> InvalidInput:
    names = ", ".join(field.name for field in of.fields)
    return InvalidInput(what, where=f"pipeline {pipeline.name}, shape.route", do=f"The fields there are {names}")
