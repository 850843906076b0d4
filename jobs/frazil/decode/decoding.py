"""How the bytes of a column are decoded, as a value; and the names of the columns that decoding makes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.options import Tombstones, ValueFormat
from frazil.decode.decoder import Decoder
from frazil.envelopes.envelope import Operation
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Field, Kind, ListOf, Primitive, Struct
from frazil.schemas.wire_format import VALUE_HEADER

ROW, SCHEMA_ID, REASON, KEY = "_frazil_row", "_frazil_schema_id", "_frazil_reason", "_frazil_key"
DETAIL = "_frazil_detail"  # what the reason is about, such as a column; null if it is about none
UNKNOWN, UNKNOWN_KEY = "_frazil_unknown", "_frazil_unknown_key"
WAITING, WAITING_KEY = "_frazil_waiting", "_frazil_waiting_key"
OPERATION, CHANGED_AT, UNAVAILABLE = "_frazil_operation", "_frazil_changed_at", "_frazil_unavailable"
WRITE_KIND = "_frazil_write_kind"
CHANGE = (
    Field(OPERATION, Primitive(Kind.STRING)),
    Field(WRITE_KIND, Primitive(Kind.STRING)),
    Field(CHANGED_AT, Primitive(Kind.TIMESTAMPTZ)),
    Field(UNAVAILABLE, ListOf(Primitive(Kind.STRING))),
)
"""Fields that a row from an envelope has beside its columns: the operation and its kind, its time, columns without their value."""
DECODED = "_decoded"  # the last field of a row: true exactly when the record could be decoded, else null


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How the bytes of one column, a topic's values or keys, are decoded.

    Framed ones: `frames` says which writer, by its number, a frame names, `waiting` which frames could land and have no decoder
    here, `refused` why a frame that is known does not land, `guids` the schema id of a frame that holds a GUID. Only `frames` are
    branches of the plan; the others may be many. A writer's body is decoded by its own of `bodies`, which all give one
    type; or all are decoded by `batched`, which takes the bodies and the writers' numbers. Others have one `unframed` body.
    `row_type` is their common Spark type, as JSON; `unsure` are its columns if decoding lets through what readers of the table
    would fail on, as Avro's does: text that is not UTF-8, and years past 9999. `key` is how the keys beside the values are
    decoded, if they are. With `has_changes` a row has `CHANGE`, too: what it does to the row of its key. With `lands_truncates` a
    truncate is a row of its own, without a key. A value counts as none if it `is_null`, and so does JSON's null behind one of the
    `nullable` frames.

    A value, not a record without one, is no row if one of the columns `required` is null in it.

    Decoders make JSON text. Where `variants`, the columns of the table, has a variant, the row gets one in its place.

    Of what a declared schema describes, `plain` is the format if its bytes are the body alone. With `is_single_object` frames are
    Avro's own: its mark and a fingerprint. With `has_schemas_inside` a frame is the text of the schema that a record holds.
    """

    row_type: str
    frames: Mapping[bytes, int] = field(default_factory=dict)
    guids: Mapping[bytes, int] = field(default_factory=dict)
    waiting: Collection[bytes] = ()
    refused: Mapping[bytes, Reason] = field(default_factory=dict)
    bodies: Mapping[int, Decoder] = field(default_factory=dict)
    batched: Callable[[Column, Column], Column] | None = None
    unframed: Decoder | None = None
    tombstones: Tombstones = Tombstones.DEAD_LETTER
    column: str = "value"
    header: str = VALUE_HEADER
    is_protobuf: bool = False
    unsure: Struct = Struct(())  # noqa: RUF009 # frozen
    has_changes: bool = False
    lands_truncates: bool = False
    is_null: Callable[[Column], Column] | None = None
    nullable: Collection[bytes] = ()
    key: Decoding | None = None
    plain: ValueFormat | None = None
    is_single_object: bool = False
    has_schemas_inside: bool = False
    variants: Struct = Struct(())  # noqa: RUF009 # frozen
    required: tuple[str, ...] = ()

    @property
    def rejects_headers(self) -> bool:
        """Whether a record is no row whose header names a schema: the declared one may not have written its bytes."""
        return self.plain in (ValueFormat.AVRO, ValueFormat.PROTOBUF)

    @property
    def has_ids(self) -> bool:
        """Whether a frame is a schema's id in the registry, or a GUID in place of it."""
        return self.unframed is None and not self.is_single_object and not self.has_schemas_inside

    @property
    def schema_ids(self) -> tuple[int, ...]:
        """The ids of the schemas whose records are landed."""
        return tuple(sorted({schema_id_of(number) for number in self.frames.values()})) if self.has_ids else ()

    @property
    def thorough(self) -> Decoding:
        """The same by thorough bodies; itself if there are none."""
        key = self.key.thorough if self.key is not None else None
        unframed = self.unframed.thorough or self.unframed if self.unframed is not None else None
        if (key, unframed) == (self.key, self.unframed) and not any(body.thorough for body in self.bodies.values()):
            return self
        bodies = {n: body.thorough or body for n, body in self.bodies.items()}
        return replace(self, bodies=bodies, unframed=unframed, key=key)


def schema_id_of(number: int) -> int:
    """Return the schema id of a writer's number: its lower 32 bits. The upper bits number the schema's type."""
    return number & 0xFFFF_FFFF


def is_truncate() -> Column:
    """Return whether a decoded change is a truncate."""
    return F.coalesce(F.col(ROW)[OPERATION] == Operation.TRUNCATE.value, F.lit(False))


def is_delete(*, has_changes: bool) -> Column:
    """Return whether a record that landed deletes its row: it has no value, or is a change that does."""
    has_no_value = F.col("value").isNull()
    if not has_changes:
        return has_no_value
    return has_no_value | F.coalesce(F.col(ROW)[OPERATION] == Operation.DELETE.value, F.lit(False))
