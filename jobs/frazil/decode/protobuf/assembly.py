"""Arrow columns as ptars makes them to columns as the target has them; raises `ValueError` if a value has no place there."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.json_format import Error as JsonError
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from frazil.decode.protobuf.official import pool_of
from frazil.decode.protobuf.projection import Column, How, Reading
from frazil.schemas.wire_format import varint


def json_text(occurrences: pa.Array, column: Column, schema: bytes) -> pa.Array:
    """Return the JSON text of a field of messages: `occurrences` has the bytes of each of its occurrences in a record.

    The field is read as part of its own message, so that Protobuf's rules hold for what occurs several times. Null if a field that
    is no list and no map does not occur. Raises `ValueError` if the bytes are no such messages, or JSON has no text for them.
    """
    message, name = column.source
    described = pool_of(schema).FindMessageTypeByName(message)
    field, kind = described.fields_by_name[name], GetMessageClass(described)
    tag = varint(field.number << 3 | 2)

    def text(bodies: list[bytes] | None) -> str | None:
        if not bodies and not field.is_repeated:
            return None
        around = kind.FromString(b"".join(tag + varint(len(body)) + body for body in bodies or ()))
        made = MessageToDict(around, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        return _text(made[name])

    try:
        return pa.array([text(bodies) for bodies in occurrences.to_pylist()], pa.string())
    except (DecodeError, JsonError, TypeError) as problem:  # TypeError: an `Any` of a type that is not known
        raise ValueError(str(problem)) from problem


def json_list(lists: pa.Array, *, is_wide: bool) -> pa.Array:
    """Return the JSON text of lists of scalars; `is_wide` says that they are integers of 64 bits."""
    return pa.array([_text([_scalar(v, is_wide=is_wide) for v in values]) for values in lists.to_pylist()], pa.string())


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _scalar(value: Any, *, is_wide: bool) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if is_wide:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


# https://protobuf.dev/reference/protobuf/google.protobuf/: 0001-01-01 to 9999-12-31; 10,000 years.
_SECONDS = {How.INSTANT: (-62_135_596_800, 253_402_300_799), How.DURATION: (-315_576_000_000, 315_576_000_000)}
_A_SECOND = 1_000_000_000
_WIDE = (pa.int64(), pa.uint64())


def assemble(batch: pa.RecordBatch, reading: Reading, arrow_type: pa.StructType) -> pa.Array:
    """Return the rows of a batch, as structs of this type; its last field says that they were decoded."""
    fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
    inside = dict(zip(batch.schema.names, batch.columns, strict=True))
    arrays = _children(inside, reading.row, arrow_type, batch.num_rows, reading.schema)
    arrays.append(pa.array(np.ones(batch.num_rows, dtype=bool)))
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _children(
    inside: Mapping[str, pa.Array], column: Column, to: pa.StructType, rows: int, schema: bytes
) -> list[pa.Array]:
    """Return the columns of a message; `ValueError` if it has two members of a oneof, of which the last in the bytes counts."""
    for members in column.oneofs:
        if (np.add.reduce([_is_there(inside[name]) for name in members], dtype=int) > 1).any():
            raise ValueError("two members of a oneof")
    return [_column(inside.get(c.name), c, to.field(i).type, rows, schema) for i, c in enumerate(column.children)]


def _is_there(array: pa.Array) -> Any:
    """Return whether each message has the member, as a numpy array."""
    if pa.types.is_list(array.type):
        return pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False) > 0
    return array.is_valid().to_numpy(zero_copy_only=False)


def _column(array: pa.Array | None, column: Column, to: pa.DataType, rows: int, schema: bytes) -> pa.Array:
    if array is None:
        return pa.nulls(rows, to)
    match column.how:
        case How.INSTANT | How.DURATION:
            return _time(array, column, to)
        case How.ONCE:
            return _column(_once(array), column.children[0], to, rows, schema)
        case How.ENUM:
            return _enum(array, column)
        case How.STRUCT:
            parts = array.flatten()  # in which a child of a null is null
            inside = {array.type.field(i).name: part for i, part in enumerate(parts)}
            children = _children(inside, column, to, rows, schema)
            fields = [to.field(i) for i in range(to.num_fields)]
            return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(array))
        case How.LIST:
            values = _column(array.values, column.children[0], to.value_type, len(array.values), schema)
            return pa.ListArray.from_arrays(array.offsets, values, type=to, mask=_nulls(array))
        case How.MAP:
            entries = array.values
            found = (entries.field("key"), entries.field("value"))
            keys, items = (
                _column(part, c, kind, len(entries), schema)
                for part, c, kind in zip(found, column.children, (to.key_type, to.item_type), strict=True)
            )
            if items.null_count:
                raise ValueError("a map's entry without its value, which means a message's default")
            return _map(array, keys, items, to)
        case How.JSON:
            return json_text(array, column, schema)
        case How.JSON_LIST:
            inner = _column(array.values, column.children[0], array.values.type, len(array.values), schema)
            return json_list(pa.ListArray.from_arrays(array.offsets, inner), is_wide=array.values.type in _WIDE)
        case _:
            return array if array.type == to else array.cast(to)


def _once(lists: pa.Array) -> pa.Array:
    """Return the one element of each list, null for none; `ValueError` if there are more, which Protobuf merges."""
    sizes = np.diff(lists.offsets.to_numpy())
    if sizes.max(initial=0) > 1:
        raise ValueError("a field that occurs more than once")
    if len(lists.values) == len(lists):
        return lists.values
    return lists.values.take(pa.array(lists.offsets.to_numpy()[:-1], mask=sizes == 0))


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _time(array: pa.Array, column: Column, to: pa.DataType) -> pa.Array:
    """Return the times of these seconds and nanoseconds, cut to microseconds; `ValueError` if one is not of its message.

    Nanoseconds of an instant count forward, those of a duration have the sign of its seconds.
    """
    seconds, nanos = (pc.fill_null(part.cast(pa.int64()), 0).to_numpy(zero_copy_only=False) for part in array.flatten())
    if column.is_exact and (nanos % 1000 != 0).any():
        raise ValueError("a key has a part of a microsecond")
    least, most = _SECONDS[column.how]
    is_instant = column.how is How.INSTANT
    wrong = nanos < 0 if is_instant else seconds * np.sign(nanos) < 0
    if (wrong | (seconds < least) | (seconds > most) | (np.abs(nanos) >= _A_SECOND)).any():
        raise ValueError("a timestamp or a duration is out of its range")
    micros = seconds * 1_000_000 + np.sign(nanos) * (np.abs(nanos) // 1000)
    made = pa.array(micros, mask=array.is_null().to_numpy(zero_copy_only=False))
    return made.cast(pa.timestamp("us")).cast(to) if is_instant else made.cast(to)


def _enum(numbers: pa.Array, column: Column) -> pa.Array:
    """Return the names; a number without one is its digits."""
    known = pc.index_in(numbers, value_set=pa.array(list(column.names), pa.int32()))
    names = pa.array(list(column.names.values()), pa.string()).take(known)
    return pc.coalesce(names, numbers.cast(pa.string())) if names.null_count > numbers.null_count else names


def _map(array: pa.Array, keys: pa.Array, items: pa.Array, to: pa.DataType) -> pa.Array:
    """Return the map; of a key that a record has twice the last entry counts, as Protobuf says."""
    offsets = array.offsets
    sizes = np.diff(offsets.to_numpy())
    entries = np.repeat(np.arange(len(sizes)), sizes) * max(len(keys), 1)
    entries += keys.dictionary_encode().indices.to_numpy()
    _, last = np.unique(entries[::-1], return_index=True)
    if len(last) < len(entries):
        kept = np.sort(len(entries) - 1 - last)
        keys, items = keys.take(pa.array(kept)), items.take(pa.array(kept))
        offsets = pa.array(np.searchsorted(kept, offsets.to_numpy()), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, items, type=to, mask=_nulls(array))
