"""Arrow columns as ptars makes them to columns as the target has them; raises `ValueError` if a value has no place there."""

from __future__ import annotations

import base64
import json
import math
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import Error as JsonError
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from frazil.ingest.proto_reading import Column, How, Reading

# https://protobuf.dev/reference/protobuf/google.protobuf/: 0001-01-01 to 9999-12-31; 10,000 years.
# ptars itself stops only at what 64 bits hold.
_INSTANTS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_DURATIONS = (-315_576_000_000_999_999, 315_576_000_000_999_999)


def assemble(batch: pa.RecordBatch, reading: Reading, arrow_type: pa.StructType) -> pa.Array:
    """The rows of a batch, as structs of this type; its last field says that they were decoded."""
    fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
    arrays = [
        _column(batch.column(column.name) if column.name else None, column, f.type, batch.num_rows, reading.schema)
        for column, f in zip(reading.columns, fields[:-1], strict=True)
    ]
    arrays.append(pa.array(np.ones(batch.num_rows, dtype=bool)))
    return pa.StructArray.from_arrays(arrays, fields=fields)


def _column(array: pa.Array | None, column: Column, to: pa.DataType, rows: int, schema: bytes) -> pa.Array:
    if array is None:
        return pa.nulls(rows, to)
    match column.how:
        case How.INSTANT:
            return _within(array, _INSTANTS).cast(to)
        case How.DURATION:
            return _within(array, _DURATIONS)
        case How.ENUM:
            return _enum(array, column)
        case How.STRUCT:
            parts = array.flatten()  # in which a child of a null is null
            inside = {array.type.field(i).name: part for i, part in enumerate(parts)}
            children = [
                _column(inside.get(c.name), c, to.field(i).type, rows, schema) for i, c in enumerate(column.children)
            ]
            fields = [to.field(i) for i in range(to.num_fields)]
            return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(array))
        case How.LIST:
            values = _column(array.values, column.children[0], to.value_type, len(array.values), schema)
            return pa.ListArray.from_arrays(array.offsets, values, type=to, mask=_nulls(array))
        case How.MAP:
            keys = _column(array.keys, column.children[0], to.key_type, len(array.keys), schema)
            items = _column(array.items, column.children[1], to.item_type, len(array.items), schema)
            return _map(array, keys, items, to)
        case How.JSON:
            return _json(array, column, schema)
        case How.JSON_LIST:
            inner = _column(array.values, column.children[0], array.values.type, len(array.values), schema)
            lists = pa.ListArray.from_arrays(array.offsets, inner).to_pylist()
            is_wide = array.values.type in (pa.int64(), pa.uint64())
            return pa.array([_text([_scalar(v, is_wide=is_wide) for v in values]) for values in lists], pa.string())
        case _:
            return array if array.type == to else array.cast(to)


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _within(array: pa.Array, bounds: tuple[int, int]) -> pa.Array:
    """The array, as numbers in microseconds for a duration; `ValueError` if one is out of bounds."""
    numbers = array.cast(pa.int64())
    found = pc.min_max(numbers)
    least, most = found["min"].as_py(), found["max"].as_py()
    if least is not None and (least < bounds[0] or most > bounds[1]):
        raise ValueError("a timestamp or a duration is out of its range")
    return numbers if pa.types.is_duration(array.type) else array


def _enum(numbers: pa.Array, column: Column) -> pa.Array:
    """The names; a number without one is its digits."""
    known = pc.index_in(numbers, value_set=pa.array(list(column.names), pa.int32()))
    names = pa.array(list(column.names.values()), pa.string()).take(known)
    return pc.coalesce(names, numbers.cast(pa.string())) if names.null_count > numbers.null_count else names


def _map(array: pa.Array, keys: pa.Array, items: pa.Array, to: pa.DataType) -> pa.Array:
    """The map; of a key that a record has twice the last entry counts, as Protobuf says."""
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


def _json(array: pa.Array, column: Column, schema: bytes) -> pa.Array:
    """The JSON text of messages: `array` has the bytes of one, or of each in a list or map."""
    message, name = column.source
    field = _pool(schema).FindMessageTypeByName(message).fields_by_name[name]
    kind = GetMessageClass(field.message_type)
    is_map = field.message_type.GetOptions().map_entry

    def value(body: bytes) -> Any:
        return MessageToDict(
            kind.FromString(body), preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )

    def text(body: Any) -> str | None:
        if body is None:
            return None
        if is_map:
            return _text({_key(entry["key"]): entry["value"] for entry in map(value, body)})
        return _text(list(map(value, body)) if field.is_repeated else value(body))

    try:
        return pa.array([text(body) for body in array.to_pylist()], pa.string())
    except (DecodeError, JsonError, TypeError) as problem:  # TypeError: an `Any` of a type that is not known
        raise ValueError(str(problem)) from problem


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _scalar(value: Any, *, is_wide: bool) -> Any:
    """A scalar as Protobuf's JSON has it (https://protobuf.dev/programming-guides/json/)."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if is_wide:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


@lru_cache(maxsize=256)
def _pool(schema: bytes) -> DescriptorPool:
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(schema).file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool
