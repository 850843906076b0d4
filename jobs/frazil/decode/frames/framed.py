"""Decoders of bytes that begin with a frame, which names the writer of the body after it."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.decode.decoded_columns import schema_id_of
from frazil.decode.decoder import Body, Decoder
from frazil.decode.frames import wire_format
from frazil.decode.tombstones import tombstone
from frazil.schemas.reasons import Reason
from frazil.schemas.wire_format import GUID_BYTES, GUID_MAGIC, ID_MAGIC, PREFIX_BYTES

_ENTRIES = 16  # in a bucket, about: each bucket is an object that is written and read for each task


def lookup(key: Column, entries: Mapping[bytes, str]) -> Column:
    """Return the text of the entry of a binary `key`; null for a key without one, and for null.

    With one literal a key, each would be a node of the plan and a call into the JVM: 50,000 of them take half a minute a batch.
    Here all are one text, cut into buckets by the CRC-32 of the key; Spark cuts it once, and a look-up reads one bucket. The
    buckets are binary: the description of a plan, which Spark writes for each job, then omits their content.

    Texts are not empty, and of letters, digits and `_` only.
    """
    if not entries:
        return F.lit(None).cast("string")
    buckets = [[""] for _ in range(max(len(entries) // _ENTRIES, 1))]
    for entry, text in entries.items():
        buckets[zlib.crc32(entry) % len(buckets)].append(f"{entry.hex().upper()}={text}")
    table = F.split(F.lit(",".join(";".join(bucket) for bucket in buckets)), ",").cast("array<binary>")
    bucket = F.get(table, (F.crc32(key) % len(buckets)).cast("int")).cast("string")
    after = F.split_part(bucket, F.concat(F.lit(";"), F.hex(key), F.lit("=")), F.lit(2))
    return F.nullif(F.split_part(after, F.lit(";"), F.lit(1)), F.lit(""))


_WAITS = "waits"  # the verdict on a frame that waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed(Decoder):
    """The decoder of framed bytes.

    `frames` says which writer, by its number, a frame names, `waiting` which frames could land and have no decoder here, `refused`
    why a record of a known frame, which may be one of `frames`, has no row. Only `frames` are branches of the plan; the others may
    be many. A writer's body is decoded by its own of `bodies`.
    """

    frames: Mapping[bytes, int] = field(default_factory=dict)
    waiting: Collection[bytes] = ()
    refused: Mapping[bytes, Reason] = field(default_factory=dict)
    bodies: Mapping[int, Body] = field(default_factory=dict)

    @abstractmethod
    def framed(self, records: DataFrame) -> DataFrame:
        """Return the records with their frames and bodies."""

    @property
    def thorough(self) -> Self:
        """The same by thorough bodies; itself if there are none."""
        if not any(body.thorough for body in self.bodies.values()):
            return self
        return replace(self, bodies={number: body.thorough or body for number, body in self.bodies.items()})

    def prepared(self, records: DataFrame) -> DataFrame:
        """Return the records with frames, bodies, and a column for each step but the last of each body."""
        records = self.framed(Decoder.prepared(self, records))
        for body, columns in self._begun.items():
            frames = [f for f, number in self.frames.items() if self.bodies[number] == body]
            given = [F.when(self.is_one_of(frames), self.side.body)]
            for step, column in zip(body.steps, columns, strict=False):  # the last step makes the row
                records = records.withColumn(column, step(*given))
                given.append(F.col(column))
        return records

    @property
    def _begun(self) -> dict[Body, list[str]]:
        """The bodies that are decoded in several steps, and the columns that hold what all but the last give."""
        several = dict.fromkeys(body for body in self.bodies.values() if len(body.steps) > 1)
        return {
            body: [self.side.part(f"{number}_{step}") for step in range(len(body.steps) - 1)]
            for number, body in enumerate(several)
        }

    def row(self) -> Column:
        """Return the row that the writer's body makes."""
        # Null always; written so that Spark does not see it, which else drops the read from the plan, and fails to observe it.
        nothing = F.when(F.spark_partition_id() < 0, self.side.row_of_nulls())
        begun = self._begun

        def made(number: int) -> Column:
            body = self.bodies[number]
            return body.steps[-1](self.side.body, *map(F.col, begun.get(body, ())))

        return self.choice(made, nothing, same=lambda number: self.bodies[number])

    def is_one_of(self, frames: Collection[bytes]) -> Column:
        """Return whether the frame is one of these; null counts as no."""
        return (
            F.coalesce(self.side.frame.isin([bytearray(f) for f in frames]), F.lit(False)) if frames else F.lit(False)
        )

    def choice(self, made: Callable[[int], Column], otherwise: Column, *, same: Callable[[int], object]) -> Column:
        """Return one `CASE` on the frame, with a branch for all writers for whom `same` is equal."""
        frames: dict[object, tuple[int, list[bytearray]]] = {}
        newest_first = sorted(
            self.frames.items(), key=lambda item: (-schema_id_of(item[1]), item[1])
        )  # most records' one
        for framed, number in newest_first:
            frames.setdefault(same(number), (number, []))[1].append(bytearray(framed))
        column: Column | None = None
        for number, (first, *others) in frames.values():
            matches = self.side.frame.isin([first, *others]) if others else self.side.frame == F.lit(first)
            column = (F if column is None else column).when(matches, made(number))
        return otherwise if column is None else column

    @property
    def verdict(self) -> Column:
        """What is known of a frame without a decoder: why it is refused, or that it waits; else null."""
        return F.col(self.side.part("verdict"))

    def verdicts(self) -> Mapping[str, Column]:
        """Return the verdict on each frame."""
        refused = {framed: reason.value for framed, reason in self.refused.items()}
        return {self.side.part("verdict"): lookup(self.side.frame, {**refused, **dict.fromkeys(self.waiting, _WAITS)})}

    def framed_elsewhere(self, records: DataFrame) -> tuple[DataFrame, Column]:
        """Return the records with their frames and bodies, and whether a frame names the type of another table; never null."""
        return self.with_frames(records), self.is_one_of(self.elsewhere())

    def known_frames(self) -> tuple[bytes, ...]:
        """Return the frames of which something is known, in order."""
        return tuple(sorted({*self.frames, *self.waiting, *self.refused}))

    def elsewhere(self) -> Collection[bytes]:
        """Return the frames that name types of other tables."""
        return {framed for framed, reason in self.refused.items() if reason is Reason.ROUTE}

    def with_frame(self, records: DataFrame) -> tuple[DataFrame, Column]:
        """Return the records with their frames and bodies, and the frame; null for bytes without one."""
        return self.with_frames(records), self.side.frame

    def with_frames(self, records: DataFrame) -> DataFrame:
        """Return the records with their frames and bodies, and their values as Kafka holds them."""
        return self.framed(records)

    @property
    def is_refused(self) -> Column:
        """Whether the verdict on a frame is a reason."""
        return self.verdict.isNotNull() & (self.verdict != _WAITS)

    def key_reason(self) -> Column:
        """Return whether a key without a row has a schema that is decoded."""
        has_schema = self.side.frame.isNull() | self.is_one_of(self.frames.keys())
        return F.when(has_schema, Reason.KEY_UNDECODABLE.value).otherwise(Reason.KEY_SCHEMA.value)

    def open_frames(self, reason: Column, waits: Reason, *others: Reason) -> tuple[Column, Column]:
        """Return the frame of a record rejected for one of these reasons without a final verdict, in hex; and of one that waits."""
        is_open = reason.isin([waits.value, *(other.value for other in others)])
        is_open &= self.verdict.isNull() | (self.verdict == Reason.FOREIGN_SCHEMA.value)
        waiting = (reason == waits.value) & (self.verdict == _WAITS)
        return F.when(is_open, F.hex(self.side.frame)), F.when(waiting, F.hex(self.side.frame))


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered(Framed):
    """The decoder of bytes that a registry's schemas describe. `guids` are the schema ids of frames that hold a GUID."""

    has_message_index: ClassVar[bool] = False
    guids: Mapping[bytes, int] = field(default_factory=dict)

    @property
    def schema_ids(self) -> tuple[int, ...]:
        """The ids of the schemas whose records are landed."""
        return tuple(sorted({schema_id_of(number) for number in self.frames.values()}))

    def framed(self, records: DataFrame) -> DataFrame:
        """Return the records with their frames, which a header or the bytes hold, and their bodies."""
        side = self.side
        records = records.withColumn(side.part("header"), wire_format.header(F.col("headers"), side.header_name))
        frame = wire_format.frame(side.bytes, side.header, protobuf=self.has_message_index)
        records = records.withColumn(side.part("frame"), frame)
        return records.withColumn(side.part("body"), wire_format.body(side.bytes, side.header, side.frame))

    def schema_id(self) -> Column:
        """Return the schema id that the frame of a decoded record names."""
        nothing = F.lit(None).cast("long")
        return self.choice(lambda number: F.lit(schema_id_of(number)).cast("long"), nothing, same=schema_id_of)

    def id_in_frame(self, value: Column) -> Column:
        """Return the schema id that the frame of a record with these bytes names, whether known or not."""
        by_guid = lookup(self.side.frame, {f: str(schema_id) for f, schema_id in self.guids.items()}).cast("long")
        return F.coalesce(wire_format.schema_id(value, self.side.header), by_guid)

    def reason(self) -> Column:
        """Return what is wrong with the frame, its schema, or the body."""
        value, header, in_header = self.side.bytes, self.side.header, self.side.header.isNotNull()
        named = F.coalesce(header, value)
        magic, is_short = F.substring(named, 1, 1), F.length(named) < PREFIX_BYTES
        is_id, is_guid = (magic == F.lit(bytearray([byte])) for byte in (ID_MAGIC, GUID_MAGIC))
        is_short_header = in_header & (is_short | (is_guid & (F.length(header) < GUID_BYTES)))
        reason = tombstone(value)
        reason = reason.when(in_header & (F.length(header) > 0) & ~is_id & ~is_guid, Reason.HEADER_WRONG_MAGIC.value)
        reason = reason.when(~in_header & (F.length(value) > 0) & ~is_id, Reason.WRONG_MAGIC.value)
        reason = reason.when(is_short_header, Reason.HEADER_TOO_SHORT.value).when(is_short, Reason.TOO_SHORT.value)
        reason = reason.when(self.side.frame.isNull(), Reason.BAD_MESSAGE_INDEX.value)
        reason = reason.when(self.is_refused, self.verdict)
        reason = reason.when(~self.is_one_of(self.frames.keys()), Reason.UNKNOWN_SCHEMA.value)
        return reason.otherwise(Reason.UNDECODABLE.value)
