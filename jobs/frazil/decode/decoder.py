"""The seam of formats: a decoder of the values, or of the keys, of a topic's records. Each format has its classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from frazil.decode.decoded_columns import CHANGE, DECODED, without
from frazil.decode.frames.wire_format import header
from frazil.decode.spark_types import spark_struct
from frazil.decode.tombstones import tombstone
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, Primitive, Struct
from frazil.schemas.wire_format import KEY_HEADER, VALUE_HEADER

Step = Callable[[Column], Column]


@dataclass(frozen=True, slots=True)
class Body:
    """The decoding of one kind of bytes, in steps. Each step makes a column of the bytes and of the columns of all earlier steps;
    the last one makes the row: the table's columns, then `_decoded`.

    Each step is a projection of its own where that is possible: a use of a column that is an expression repeats the expression,
    and Spark interprets everything below an expression that it interprets. Two uses keep Spark from merging two projections.

    `thorough` makes rows of some bodies that this one rejects, at more cost (for JSON a third); None if there are no such bodies.
    """

    steps: tuple[Callable[..., Column], ...]
    thorough: Body | None = None

    def then(self, step: Callable[..., Column]) -> Self:
        """Return the body with one more step, which makes the row of what the last one made."""
        thorough = self.thorough.then(step) if self.thorough is not None else None
        return replace(self, steps=(*self.steps, step), thorough=thorough)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The values, or the keys, of records, and the rows of type `target` that they become.

    With `has_changes` a row has `CHANGE`, too: what it does to the row of its key.
    """

    target: Struct
    is_key: bool = False
    has_changes: bool = False

    @property
    def name(self) -> str:
        """The name of the column that holds the bytes."""
        return "key" if self.is_key else "value"

    @property
    def header_name(self) -> str:
        """The name of the header by which a record names the schema."""
        return KEY_HEADER if self.is_key else VALUE_HEADER

    @property
    def row_type(self) -> str:
        """The Spark type of the rows, as JSON: DDL quotes no name, and another engine may have added any."""
        return self._type.json()

    @property
    def _type(self) -> T.StructType:
        fields = (*self.target.fields, *(CHANGE if self.has_changes else ()), Field(DECODED, Primitive(Kind.BOOLEAN)))
        return spark_struct(Struct(fields))

    def row_of_nulls(self) -> Column:
        """Return a row whose columns are all null, but `DECODED`. Spark reads no map from JSON whose keys are not text."""
        made = self._type
        return F.expr(f"struct({'NULL, ' * (len(made) - 1)}true)").cast(made)

    def part(self, name: str | int) -> str:
        """Return the name of a column with a part of the bytes, or with what a step makes of them."""
        return f"_frazil_{self.name}_{name}"

    @property
    def bytes(self) -> Column:
        """The bytes, as Kafka holds them."""
        return F.col(self.name)

    @property
    def header(self) -> Column:
        """The header that names the writer; null without one."""
        return F.col(self.part("header"))

    @property
    def frame(self) -> Column:
        """The frame; null if there is no valid one."""
        return F.col(self.part("frame"))

    @property
    def body(self) -> Column:
        """The bytes after the frame."""
        return F.col(self.part("body"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder(ABC):
    """The decoding of records' values, or keys. `RecordDecoder` makes rows, and rejected records, of what it answers.

    A value that `is_null` is no value.
    """

    null: ClassVar[Callable[..., Column] | None] = None
    """Return whether a value is JSON's null, which is no value of a keyed table; None for formats without one."""

    side: Side
    is_null: Step | None = None

    @property
    @abstractmethod
    def thorough(self) -> Decoder:
        """The same by thorough bodies; itself if there are none."""

    @abstractmethod
    def row(self) -> Column:
        """Return the row of prepared records; null where there is none."""

    @abstractmethod
    def reason(self) -> Column:
        """Return the reason of a record whose value has no row."""

    def prepared(self, records: DataFrame) -> DataFrame:
        """Return the records with all that their rows are made of, each column computed once."""
        if self.is_null is None:
            return records
        return without(records, self.side.name, self.is_null(self.side.bytes))

    def known_frames(self) -> tuple[bytes, ...]:
        """Return the frames of which something is known, in order."""
        return ()

    def elsewhere(self) -> Collection[bytes]:
        """Return the frames that name types of other tables."""
        return ()

    def with_frame(self, records: DataFrame) -> tuple[DataFrame, Column]:
        """Return records with the columns of their frames, and the frame; null for bytes without one."""
        return records, F.lit(None).cast("binary")

    def framed_elsewhere(self, records: DataFrame) -> tuple[DataFrame, Column]:
        """Return records with what their frames need, and whether a frame names the type of another table; never null."""
        return records, F.lit(False)

    @property
    def schema_ids(self) -> tuple[int, ...]:
        """The ids of the registry's schemas whose records are decoded."""
        return ()

    def with_deletes(self) -> Decoder:
        """Return the decoder of a keyed table's values: JSON's null is no value, whatever the schema says of it."""
        return self if self.null is None else replace(self, is_null=self.null)

    def schema_id(self) -> Column:
        """Return the id of the schema by which a row was decoded."""
        return F.lit(None).cast("long")

    def id_in_frame(self, value: Column) -> Column:
        """Return the schema id that the frame of a record with these bytes names, whether known or not."""
        return F.lit(None).cast("long")

    def has_row(self, row: Column) -> Column:
        """Return whether what was decoded is a row; null counts as no."""
        return row[DECODED]

    def verdicts(self) -> Mapping[str, Column]:
        """Return the columns that the reasons of rejected records need."""
        return {}

    def key_reason(self) -> Column:
        """Return the reason of a record whose key has no row."""
        return F.lit(Reason.KEY_UNDECODABLE.value)

    def open_frames(self, reason: Column, waits: Reason, *others: Reason) -> tuple[Column, Column]:
        """Return the frame, in hex, of a record rejected for one of these reasons without a final verdict; and of one that waits.

        A frame waits if it could land and has no decoder yet. Its record is rejected for the first of the reasons.
        """
        return F.lit(None).cast("string"), F.lit(None).cast("string")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unframed(Decoder):
    """The decoder of bytes that are the body: one schema, or none, describes all of them."""

    body: Body

    @property
    def thorough(self) -> Self:
        """The same by the thorough body; itself if there is none."""
        return self if self.body.thorough is None else replace(self, body=self.body.thorough)

    def bytes(self) -> Column:
        """Return the bytes that the body is decoded of."""
        return self.side.bytes

    def prepared(self, records: DataFrame) -> DataFrame:
        """Return the records with a column for each step but the last."""
        records, given = Decoder.prepared(self, records), [self.bytes()]
        for step, name in zip(self.body.steps, self._names, strict=False):
            records = records.withColumn(name, step(*given))
            given.append(F.col(name))
        return records

    @property
    def _names(self) -> list[str]:
        return [self.side.part(number) for number in range(len(self.body.steps) - 1)]

    def row(self) -> Column:
        """Return what the last step makes."""
        return self.body.steps[-1](self.bytes(), *map(F.col, self._names))

    def framed(self) -> Iterable[tuple[Column, Reason]]:
        """Return by which bytes a record seems to be framed, and the reason of each."""
        return ()

    def reason(self) -> Column:
        """Return whether bytes without a row are missing, framed, or not a body."""
        reason = tombstone(self.side.bytes)
        for is_framed, code in self.framed():
            reason = reason.when(is_framed, code.value)
        reason = reason.when(F.length(self.side.bytes) == 0, Reason.EMPTY_VALUE.value)
        return reason.otherwise(Reason.UNDECODABLE.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headerless(Unframed):
    """The decoder of such bytes where a record whose header names a schema has no row: another schema may have written it."""

    def bytes(self) -> Column:
        """Return the bytes of a record without the header."""
        return self.side.body

    def prepared(self, records: DataFrame) -> DataFrame:
        """Return the records with the header, the bytes of those without one, and a column for each step but the last."""
        records = records.withColumn(self.side.part("header"), header(F.col("headers"), self.side.header_name))
        records = records.withColumn(self.side.part("body"), F.when(self.side.header.isNull(), self.side.bytes))
        return Unframed.prepared(self, records)
