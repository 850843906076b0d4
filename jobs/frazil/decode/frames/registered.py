"""Decoders of bytes whose frame names a schema of the registry, by its id or its GUID."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.decode.decoding import schema_id_of
from frazil.decode.frames import wire_format
from frazil.decode.frames.framed import Framed, lookup
from frazil.schemas.reasons import Reason
from frazil.schemas.wire_format import GUID_BYTES, GUID_MAGIC, ID_MAGIC, PREFIX_BYTES


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
        reason = F.when(value.isNull(), Reason.TOMBSTONE.value)
        reason = reason.when(in_header & (F.length(header) > 0) & ~is_id & ~is_guid, Reason.HEADER_WRONG_MAGIC.value)
        reason = reason.when(~in_header & (F.length(value) > 0) & ~is_id, Reason.WRONG_MAGIC.value)
        reason = reason.when(is_short_header, Reason.HEADER_TOO_SHORT.value).when(is_short, Reason.TOO_SHORT.value)
        reason = reason.when(self.side.frame.isNull(), Reason.BAD_MESSAGE_INDEX.value)
        reason = reason.when(self.is_refused, self.verdict)
        reason = reason.when(~self.is_one_of(self.frames.keys()), Reason.UNKNOWN_SCHEMA.value)
        return reason.otherwise(Reason.UNDECODABLE.value)
