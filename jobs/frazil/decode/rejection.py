"""Why a record has no row: the verdict on its frame, the reason, and the frames that are not decided yet."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from frazil.declaration.options import ValueFormat
from frazil.decode.avro.plain_avro import begins_as_registered, begins_as_single_object
from frazil.decode.decoding import DECODED, KEY, OPERATION, REASON, ROW, Decoding
from frazil.decode.frames.frame_columns import frame_of, header_of, is_one_of
from frazil.decode.frames.lookup import lookup
from frazil.decode.values.leaves import is_utf8, texts
from frazil.decode.values.years import all_in_years
from frazil.envelopes.envelope import Operation
from frazil.schemas.reasons import Reason
from frazil.schemas.wire_format import GUID_BYTES, PREFIX_BYTES

_WAITS = "waits"  # the verdict on a frame of `Decoding.waiting`


def verdict_column(decoding: Decoding) -> str:
    """Return the name of the column that holds the verdict on a frame."""
    return f"_frazil_{decoding.column}_verdict"


def verdict_of(decoding: Decoding) -> Column:
    """Return what is known of a frame without a decoder: why it is refused, or that it waits; else null."""
    refused = {framed: reason.value for framed, reason in decoding.refused.items()}
    return lookup(frame_of(decoding), {**refused, **dict.fromkeys(decoding.waiting, _WAITS)})


def _verdict(decoding: Decoding) -> Column:
    return F.col(verdict_column(decoding))


def reason_of(decoding: Decoding) -> Column:
    """Return the reason of a record whose value has no row."""
    value, code = F.col(decoding.column), {reason: F.lit(reason.value) for reason in Reason}
    reason = F.when(value.isNull(), code[Reason.TOMBSTONE])
    if decoding.plain is not None:
        is_avro = decoding.plain is ValueFormat.AVRO
        is_framed = _is_framed(decoding) if is_avro else begins_as_registered(value)
        if decoding.rejects_headers:
            is_framed |= header_of(decoding).isNotNull()
        reason = reason.when(is_framed, code[Reason.REGISTRY_FRAME])
        if is_avro:
            reason = reason.when(begins_as_single_object(value), code[Reason.SINGLE_OBJECT])
    if decoding.unframed is not None or decoding.has_schemas_inside:
        reason = reason.when(F.length(value) == 0, code[Reason.EMPTY_VALUE])
    if decoding.unframed is not None:
        return reason.otherwise(code[Reason.UNDECODABLE])
    if decoding.has_schemas_inside:
        verdict = _verdict(decoding)
        reason = reason.when(verdict.isNotNull() & (verdict != _WAITS), verdict)
        is_unknown = frame_of(decoding).isNotNull() & ~is_one_of(frame_of(decoding), decoding.frames)
        return reason.when(is_unknown, code[Reason.UNKNOWN_SCHEMA]).otherwise(code[Reason.UNDECODABLE])
    if decoding.is_single_object:
        has_frame, verdict = frame_of(decoding).isNotNull(), _verdict(decoding)
        reason = reason.when(~has_frame & _is_framed(decoding), code[Reason.REGISTRY_FRAME])
        reason = reason.when(~has_frame, code[Reason.NO_FINGERPRINT]).when(verdict.isNotNull(), verdict)
        reason = reason.when(~is_one_of(frame_of(decoding), decoding.frames), code[Reason.UNKNOWN_FINGERPRINT])
        return reason.otherwise(code[Reason.UNDECODABLE])
    framed, header = frame_of(decoding), header_of(decoding)
    magic, in_header = F.substring(F.coalesce(header, value), 1, 1), header.isNotNull()
    is_id, is_guid = magic == F.lit(bytearray(b"\x00")), magic == F.lit(bytearray(b"\x01"))
    is_short = F.length(F.coalesce(header, value)) < PREFIX_BYTES
    reason = reason.when(in_header & (F.length(header) > 0) & ~is_id & ~is_guid, code[Reason.HEADER_WRONG_MAGIC])
    reason = reason.when(~in_header & (F.length(value) > 0) & ~is_id, code[Reason.WRONG_MAGIC])
    reason = reason.when(
        in_header & (is_short | (is_guid & (F.length(header) < GUID_BYTES))), code[Reason.HEADER_TOO_SHORT]
    )
    reason = reason.when(is_short, code[Reason.TOO_SHORT])
    reason = reason.when(framed.isNull(), code[Reason.BAD_MESSAGE_INDEX])
    verdict = _verdict(decoding)
    reason = reason.when(verdict.isNotNull() & (verdict != _WAITS), verdict)
    reason = reason.when(~is_one_of(framed, decoding.frames), code[Reason.UNKNOWN_SCHEMA])
    return reason.otherwise(code[Reason.UNDECODABLE])


def _is_framed(decoding: Decoding) -> Column:
    """Return whether bytes that no registry describes are a registry's frame and a body of a declared Avro schema."""
    bodies = [decoding.unframed, *decoding.bodies.values()]
    tests = [body.is_framed for body in bodies if body is not None and body.is_framed is not None]
    return reduce(Column.__or__, (is_framed(F.col(decoding.column)) for is_framed in tests), F.lit(False))


def unknown_frame(decoding: Decoding, *reasons: Reason) -> Column:
    """Return the frame, in hex, of a record that is rejected for one of these reasons without a final verdict."""
    if decoding.unframed is not None or decoding.is_single_object:
        return F.lit(None).cast("string")
    verdict = _verdict(decoding)
    is_open = F.col(REASON).isin([r.value for r in reasons])
    is_open &= verdict.isNull() | (verdict == Reason.FOREIGN_SCHEMA.value)
    return F.when(is_open, F.hex(frame_of(decoding)))


def waiting_frame(decoding: Decoding, reason: Reason) -> Column:
    """Return the frame, in hex, of a record that is rejected for this reason, only because its frame waits."""
    if decoding.unframed is not None or decoding.is_single_object:
        return F.lit(None).cast("string")
    return F.when((F.col(REASON) == reason.value) & (_verdict(decoding) == _WAITS), F.hex(frame_of(decoding)))


def has_row(decoding: Decoding, column: str = ROW) -> Column:
    """Return whether what was decoded is a row; null counts as no."""
    row = F.col(column)
    found = texts(row, decoding.unsure)
    checks = [row[DECODED], *([is_utf8(found)] if found else []), *all_in_years(row, decoding.unsure)]
    return reduce(Column.__and__, checks)


def missing_columns(decoding: Decoding) -> Column | None:
    """Return the names of the required columns that a decoded value lacks, null if it lacks none; None if no column is required."""
    if not decoding.required:
        return None
    row, value = F.col(ROW), F.col(decoding.column)
    names = F.array_compact(F.array(*(F.when(row[name].isNull(), F.lit(name)) for name in decoding.required)))
    return F.when(value.isNotNull() & (F.size(names) > 0), F.array_join(names, ", "))


def has_valid_key(key: Decoding) -> Column:
    """Return whether the key is null or has a row."""
    return F.col(key.column).isNull() | F.coalesce(has_row(key, KEY), F.lit(False))


def key_reason_of(key: Decoding) -> Column:
    """Return the reason of a record whose key has no row."""
    undecodable = F.lit(Reason.KEY_UNDECODABLE.value)
    if key.unframed is not None:
        return undecodable
    has_schema = frame_of(key).isNull() | is_one_of(frame_of(key), key.frames)
    return F.when(has_schema, undecodable).otherwise(F.lit(Reason.KEY_SCHEMA.value))


def change_reason(decoding: Decoding) -> Column | None:
    """Return why a decoded change is no row, and deletes none, null if it does either; None where values are no changes."""
    if not decoding.has_changes:
        return None
    operation = F.col(ROW)[OPERATION]
    reason = F.when(F.col(decoding.column).isNull(), None).when(operation.isNull(), Reason.OPERATION_UNKNOWN.value)
    reason = reason.when(operation == Operation.NOTHING.value, Reason.NO_CHANGE.value)
    reason = reason.when(operation == Operation.LACKS_BEFORE.value, Reason.BEFORE_MISSING.value)
    if decoding.lands_truncates:
        return reason
    return reason.when(operation == Operation.TRUNCATE.value, Reason.TRUNCATED.value)
