"""JSON bodies of an Arrow batch to rows, many by one call; only rows that are what `from_json` makes of the same bodies.

Arrow's reader is here stricter and there more lenient than `decode_json`. What makes a row sure:

- *A body is one document.* It begins with a brace, and its object is given one more member, whose name is a byte that UTF-8
  does not have; so no body can write that name. Each document read has it, once, and there are as many documents as bodies:
  so each begins where its body begins, and ends before the next.
- *The grammar.* Arrow's is JSON with the words `NaN` and `Inf`; Jackson's is wider, except that it refuses `Inf` and `-NaN`,
  and has limits on depth and on the length of numbers and names.
- *Values.* A value of another type than the column's, one out of range and a property that stands twice are errors in Arrow.
  Doubles are rounded alike, but `-0` is a negative zero here. Text that is a date or a time is vetted and converted here.

Where any of this is in doubt there is no row, and the body is for `from_json` to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from frazil.schemas.types import Kind, ListOf, Primitive, Struct, Type

LONGEST_BODY = 50_000
"""Bytes. Jackson refuses names of more characters than this."""

_LONGEST_NUMBER = 1_000  # characters; Jackson's limit
_MOST_OPENED = 900  # braces and brackets; Jackson's limit is 1,000 levels
_MOST_AT_ONCE = 64 << 20  # bytes
_FAILURES = 16  # one body among 10,000 is found by 14
_ROWS_FOR_A_FAILURE = 128
_MARK = b"\xff"
_HEAD = b'\n{"' + _MARK + b'":true,'
_WORDS = (b"Inf", b"-NaN", b"\0")
_WORD = re.compile(rb"(?:Inf|-NaN)[ \t\r\n]*[,\]}]|\0")
_ZERO = re.compile(rb"-0[ \t\r\n]*[,\]}]")
_ZERO_BELOW = -(1 << 63)  # the bits of -0.0
_DIGITS = bytes(ord("0") if byte in b"0123456789+-.eE" else ord(" ") for byte in range(256))
_ROW = re.compile(r" in row (\d+)$")
_KINDS = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
}
# Fewer than `decode_json` takes: Arrow refuses more digits of a second, and Spark offsets of more than 18 hours.
_WRITTEN = {
    pa.date32(): r"^\d{4}-\d{2}-\d{2}$",
    pa.timestamp("us", "UTC"): r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-](0\d|1[0-7]):?[0-5]\d)$",
}


class _Unsure(Exception):
    """Some body's row may not be what `from_json` gives."""


def can_read(target: Type) -> bool:
    """Whether there are rows of this type: not of maps, decimals, floats, bytes, and what lands as JSON text."""
    match target:
        case Primitive(kind):
            return kind in _KINDS
        case ListOf(element):
            return can_read(element)
        case Struct(fields):
            return bool(fields) and all(not f.as_json and can_read(f.type) for f in fields)
        case _:
            return False


def rows_of(bodies: pa.Array, target: Struct, arrow_type: pa.StructType) -> pa.Array:
    """Bodies as rows of `target` and `_decoded`, which is true: an array of `arrow_type`; null where a row is not sure."""
    if bodies.type != pa.binary():
        bodies = bodies.cast(pa.binary())
    if len(bodies) > 1 and bodies.nbytes > _MOST_AT_ONCE:
        half = len(bodies) // 2
        return pa.concat_arrays([rows_of(part, target, arrow_type) for part in (bodies[:half], bodies[half:])])
    fit = _fit(bodies)
    if not pc.any(fit, min_count=0).as_py():
        return pa.nulls(len(bodies), arrow_type)
    if pc.all(fit).as_py():
        return _in_parts(bodies, target, arrow_type)
    places = pc.if_else(fit, pc.subtract(pc.cumulative_sum(fit.cast(pa.int64())), 1), None)
    return _in_parts(bodies.filter(fit), target, arrow_type).take(places)


# ── Which bodies are read at all ────────────────────────────────────────────────────────────────
def _fit(bodies: pa.Array) -> pa.Array:
    """Whether each body begins as an object, is UTF-8, and has nothing that Jackson alone refuses."""
    length = pc.fill_null(pc.binary_length(bodies), 0)
    fit = pc.and_(pc.fill_null(pc.starts_with(bodies, "{"), False), pc.less_equal(length, LONGEST_BODY))
    long = pc.greater_equal(length, _LONGEST_NUMBER)
    some_are_long = pc.any(long).as_py()
    if some_are_long:
        opened = pc.add(pc.count_substring(bodies, "["), pc.count_substring(bodies, "{"))
        fit = pc.and_(fit, pc.fill_null(pc.less_equal(opened, _MOST_OPENED), False))
    text = _data(bodies).to_pybytes()
    is_plain = not any(word in text for word in _WORDS) and not (some_are_long and _has_long_number(text))
    if is_plain and _are_utf8(bodies):
        return fit
    return pc.and_(fit, pa.array([body is not None and _is_plain(body) for body in bodies.to_pylist()], pa.bool_()))


def _data(bodies: pa.Array) -> pa.Buffer:
    """The bytes of all bodies, one behind the other."""
    _, offsets, data = bodies.buffers()
    ends = memoryview(offsets).cast("i")
    return data[ends[bodies.offset] : ends[bodies.offset + len(bodies)]]


def _are_utf8(bodies: pa.Array) -> bool:
    try:
        bodies.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True


def _has_long_number(text: bytes) -> bool:
    return b"0" * _LONGEST_NUMBER in text.translate(_DIGITS)


def _is_plain(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    has_words = any(word in body for word in _WORDS) and _WORD.search(body)
    return not has_words and not (len(body) >= _LONGEST_NUMBER and _has_long_number(body))


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────
def _in_parts(bodies: pa.Array, target: Struct, arrow_type: pa.StructType) -> pa.Array:
    """The rows of the bodies, in one part if all can be read; no more parts are tried once too many have failed."""
    documents = pc.binary_replace_slice(bodies, start=0, stop=1, replacement=_HEAD)
    parts: list[pa.Array] = []
    waiting = [(0, len(documents))]
    done, read, failures = 0, 0, 0
    while waiting and failures <= _FAILURES + read // _ROWS_FOR_A_FAILURE:
        first, last = waiting.pop()
        try:
            rows = _read(documents[first:last], target, arrow_type)
        except (_Unsure, pa.ArrowException) as problem:
            failures += 1
            waiting += _around(problem, first, last)
        else:
            parts += [pa.nulls(first - done, arrow_type), rows]
            done, read = last, read + len(rows)
    parts.append(pa.nulls(len(documents) - done, arrow_type))
    parts = [part for part in parts if len(part)]
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def _around(problem: Exception, first: int, last: int) -> list[tuple[int, int]]:
    """What to try instead of the documents from `first` to `last`, backwards: those around the one that Arrow names, or halves.

    It names the next one, or the one behind the last, if what is wrong stands behind a document.
    """
    told = _ROW.search(str(problem))
    if told:
        bad = min(first + int(told[1]), last - 1)
        parts = [(bad + 1, last), (bad, bad + 1), (first, bad)]
    else:
        middle = (first + last) // 2
        parts = [(middle, last), (first, middle)]
    return [part for part in parts if part[0] < part[1] and part != (first, last)]


def _read(documents: pa.Array, target: Struct, arrow_type: pa.StructType) -> pa.Array:
    """A row for each document. Raises `_Unsure`, or an error of Arrow's, if not all are sure."""
    text = _data(documents)
    fields = [pa.field(_MARK, pa.bool_()), *_source_fields(target)]
    table = json.read_json(
        pa.BufferReader(text),
        read_options=json.ReadOptions(use_threads=False, block_size=text.size + 1),
        parse_options=json.ParseOptions(
            explicit_schema=pa.schema(fields),
            newlines_in_values=False,  # the text is one block, so nobody looks for a line's end
            unexpected_field_behavior="ignore",
        ),
    )
    table = table.rename_columns([str(number) for number in range(len(table.schema))])  # the mark is no name in Python
    if table.schema.types != [field.type for field in fields]:
        raise _Unsure
    marks, *columns = (column.combine_chunks() for column in table.columns)
    if len(marks) != len(documents) or marks.null_count:
        raise _Unsure
    made = [_converted(column, field.type, text) for column, field in zip(columns, arrow_type, strict=False)]
    return pa.StructArray.from_arrays([*made, marks], fields=list(arrow_type))


def _source_fields(target: Struct) -> Iterator[pa.Field]:
    """The properties as Arrow is to read them: dates and times as text."""
    return (pa.field(field.source, _source_type(field.type)) for field in target.fields)


def _source_type(of: Type) -> pa.DataType:
    match of:
        case Primitive(kind):
            return pa.string() if _KINDS[kind] in _WRITTEN else _KINDS[kind]
        case ListOf(element):
            return pa.list_(pa.field("element", _source_type(element)))
        case Struct():
            return pa.struct(list(_source_fields(of)))
        case _:
            raise TypeError(of)


def _converted(read: pa.Array, to: pa.DataType, text: pa.Buffer) -> pa.Array:
    """What was read as the column's type. Raises `_Unsure`, or an error of Arrow's, for a value that is not sure."""
    if pa.types.is_list(to):
        elements = _converted(read.values, to.value_type, text)
        return pa.ListArray.from_arrays(read.offsets, elements, type=to, mask=read.is_null())
    if pa.types.is_struct(to):
        children = [_converted(read.field(number), field.type, text) for number, field in enumerate(to)]
        return pa.StructArray.from_arrays(children, fields=list(to), mask=read.is_null())
    if to in _WRITTEN:
        if not pc.all(pc.match_substring_regex(read, _WRITTEN[to]), min_count=0).as_py():
            raise _Unsure
        return read.cast(to)
    if pa.types.is_floating(to) and pc.min(read.view(pa.int64())).as_py() == _ZERO_BELOW and _ZERO.search(text):
        raise _Unsure
    return read
