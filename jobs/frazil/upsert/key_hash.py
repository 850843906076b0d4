"""The hash of a row's key as `resolver.key_hash` has it, without Spark: XXH64, one column after the other.

A column's hash is the seed of the next one, 42 is the first seed. The second hash of a key begins with another number. The
algorithm is doc/xxhash_spec.md of https://github.com/Cyan4973/xxHash. Integers are hashed as Spark's `XXH64.hashLong` and
`hashInt` do, which is the same on their little-endian bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

U64 = npt.NDArray[np.uint64]
SEED, SECOND_SEED = 42, 0x5EED
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)


def hashes(columns: Sequence[pa.Array], *, is_second: bool = False) -> U64:
    """Return the hash of each row; no value is null."""
    found = np.full(len(columns[0]), SEED, np.uint64)
    with np.errstate(over="ignore"):
        if is_second:
            found = _of_int(np.full(len(found), SECOND_SEED), found)
        for column in columns:
            found = _of_column(column, found)
    return found


def _of_column(column: pa.Array, seeds: U64) -> U64:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return _of_int(column.cast(pa.int32()).to_numpy(zero_copy_only=False), seeds)
    if pa.types.is_integer(kind):
        return _of_long(column.cast(pa.int64()).to_numpy(zero_copy_only=False), seeds)
    if pa.types.is_timestamp(kind):
        return _of_long(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_numpy(zero_copy_only=False), seeds)
    if pa.types.is_decimal(kind):
        column = pa.array([format(value.as_py(), "f") for value in column], pa.string())
    data = column.cast(pa.large_binary())
    lengths = pc.binary_length(data).to_numpy(zero_copy_only=False).astype(np.int64)
    found, offsets, content = np.empty(len(data), np.uint64), *_buffers(data)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        block = content[offsets[rows][:, None] + np.arange(length)]
        found[rows] = _of_bytes(block, seeds[rows])
    return found


def _buffers(data: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    _, offsets, content = data.buffers()
    begins = np.frombuffer(offsets, np.int64)[data.offset : data.offset + len(data)]
    return begins, np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)


def _rotated(words: U64, bits: int) -> U64:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _of_int(values: Any, seeds: U64) -> U64:
    return _finished(_with_four(seeds + _P5 + np.uint64(4), values.astype(np.uint32).astype(np.uint64)))


def _of_long(values: Any, seeds: U64) -> U64:
    return _finished(_with_eight(seeds + _P5 + np.uint64(8), values.astype(np.uint64)))


def _of_bytes(block: npt.NDArray[np.uint8], seeds: U64) -> U64:
    """Return the hash of each row of a block of bytes, which all have one length."""
    length, at = block.shape[1], 0
    if length >= 32:
        lanes = [seeds + _P1 + _P2, seeds + _P2, seeds, seeds - _P1]
        while at + 32 <= length:
            lanes = [_rotated(lane + _words(block, at + 8 * i, 8) * _P2, 31) * _P1 for i, lane in enumerate(lanes)]
            at += 32
        found = np.zeros(len(block), np.uint64)
        for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
            found = found + _rotated(lane, bits)
        for lane in lanes:
            found = (found ^ (_rotated(lane * _P2, 31) * _P1)) * _P1 + _P4
    else:
        found = seeds + _P5
    found = found + np.uint64(length)
    while at + 8 <= length:
        found, at = _with_eight(found, _words(block, at, 8)), at + 8
    if at + 4 <= length:
        found, at = _with_four(found, _words(block, at, 4)), at + 4
    for column in range(at, length):
        found = _rotated(found ^ (block[:, column].astype(np.uint64) * _P5), 11) * _P1
    return _finished(found)


def _words(block: npt.NDArray[np.uint8], at: int, size: int) -> U64:
    part = np.ascontiguousarray(block[:, at : at + size])
    return part.view("<u8" if size == 8 else "<u4")[:, 0].astype(np.uint64)


def _with_eight(found: U64, word: U64) -> U64:
    return _rotated(found ^ (_rotated(word * _P2, 31) * _P1), 27) * _P1 + _P4


def _with_four(found: U64, word: U64) -> U64:
    return _rotated(found ^ (word * _P1), 23) * _P2 + _P3


def _finished(found: U64) -> U64:
    found = (found ^ (found >> np.uint64(33))) * _P2
    found = (found ^ (found >> np.uint64(29))) * _P3
    return found ^ (found >> np.uint64(32))
