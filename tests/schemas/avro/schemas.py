"""Avro schemas at random, each named type with a name of its own, some recursive; and records of them."""

from __future__ import annotations

import io
import json
import struct
from itertools import count
from random import Random
from typing import Any

import fastavro
from fastavro.schema import parse_schema
from hypothesis import strategies as st

from frazil.errors import UnreadableSchema
from frazil.schemas import avro

LEAVES: list[Any] = [
    "boolean", "int", "long", "float", "double", "string", "bytes",
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    {"type": "enum", "name": "?", "symbols": ["A", "B", "C"]},
    {"type": "fixed", "name": "?", "size": 3},
    {"type": "fixed", "name": "?", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 2},
]  # fmt: skip
FIELD_NAMES = ["id", "Id", "a_b", "A_B", "value", "_kafka_offset", "x1"]


def _record(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from(FIELD_NAMES), unique=True, max_size=3)
    fields = names.flatmap(lambda ns: st.tuples(*(st.tuples(st.just(n), inner) for n in ns)))
    return fields.map(lambda fs: {"type": "record", "name": "?", "fields": [{"name": n, "type": t} for n, t in fs]})


def _kind(tree: Any) -> str:
    if isinstance(tree, list):
        return "union"
    return tree if isinstance(tree, str) else str(tree.get("type", "array"))  # `self` becomes an array


def _union(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = ("record", "enum", "fixed")
    branches = st.lists(
        st.one_of(st.just("null"), inner.filter(lambda t: _kind(t) != "union")),
        min_size=1, max_size=4,
    )  # fmt: skip
    return branches.filter(
        lambda bs: (
            len({_kind(b) if _kind(b) not in named else id(b) for b in bs}) == len(bs)
            and sum(_kind(b) in named for b in bs) == len({id(b) for b in bs if _kind(b) in named})
        )
    )


_TYPES = st.recursive(
    st.one_of(st.sampled_from([*LEAVES, "null"]), st.just({"self": True})),
    lambda inner: st.one_of(
        inner.map(lambda t: {"type": "array", "items": t}),
        inner.map(lambda t: {"type": "map", "values": t}),
        _record(inner),
        _union(inner),
    ),
    max_leaves=10,
)


def _named(tree: Any, numbers: Any, parent: str | None) -> Any:
    """Give every named type a name; `self` becomes a reference to the record it stands in, optional."""
    match tree:
        case {"self": True}:
            return {"type": "array", "items": parent} if parent else "int"
        case list():
            return [_named(branch, numbers, parent) for branch in tree]
        case {"type": "array", "items": items}:
            return {"type": "array", "items": _named(items, numbers, parent)}
        case {"type": "map", "values": values}:
            return {"type": "map", "values": _named(values, numbers, parent)}
        case {"name": "?"}:
            own = f"T{next(numbers)}"
            named = {**tree, "name": own}
            if tree["type"] == "record":
                named["fields"] = [{"name": f["name"], "type": _named(f["type"], numbers, own)} for f in tree["fields"]]
            return named
    return tree


def _is_legal(tree: Any) -> bool:
    try:
        parse_schema(json.loads(json.dumps(tree)))
    except Exception:  # noqa: BLE001 - fastavro is the judge
        return False
    try:
        avro.parse(json.dumps(tree))
    except UnreadableSchema as problem:
        return "take no bytes" not in problem.what  # a list of nothing, which is refused
    return True


SCHEMAS = _record(_TYPES).map(lambda tree: _named(tree, count(), None)).filter(_is_legal)
"""Records, as JSON trees."""


def body(schema: Any, random: Random) -> bytes:
    """A value of the schema, at random, in Avro's binary encoding."""
    out = bytearray()
    _write(schema, {}, random, out, 0)
    return bytes(out)


def _write(tree: Any, named: dict[str, Any], random: Random, out: bytearray, depth: int) -> None:
    if isinstance(tree, list):
        index = random.randrange(len(tree))
        out += _varint(index)
        return _write(tree[index], named, random, out, depth)
    if isinstance(tree, str) and tree in named:
        tree = named[tree]
    kind = tree if isinstance(tree, str) else tree["type"]
    if "name" in (tree if isinstance(tree, dict) else ()):
        named[tree["name"]] = tree
    match kind:
        case "record":
            for field in tree["fields"]:
                _write(field["type"], named, random, out, depth + 1)
        case "array" | "map":
            length = 0 if depth > 8 else random.randrange(3)
            if length:
                out += _varint(length)
            for number in range(length):
                if kind == "map":
                    out += _varint(2) + b"k%d" % number
                _write(tree["items" if kind == "array" else "values"], named, random, out, depth + 1)
            out += b"\0"
        case "enum":
            out += _varint(random.randrange(len(tree["symbols"])))
        case "fixed":
            out += bytes(tree["size"] - 2) + random.randbytes(2)
        case "boolean":
            out += bytes([random.randrange(2)])
        case "int" | "long":
            out += _varint(random.randrange(-(2**16), 2**16))
        case "float" | "double":
            out += struct.pack("<f" if kind == "float" else "<d", random.randrange(-100, 100) / 4)
        case "string" | "bytes":
            out += _varint(3) + b"\1ab"
    return None


def _varint(number: int) -> bytes:
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*out, left))


def read(body: bytes, writer: Any, reader: Any = None) -> Any:
    """The value, by fastavro; the bytes must be read to their end."""
    parsed = parse_schema(json.loads(json.dumps(writer)))
    wanted = parse_schema(json.loads(json.dumps(reader))) if reader is not None else None
    stream = io.BytesIO(body)
    value = fastavro.schemaless_reader(stream, parsed, wanted)
    assert not stream.read(), "bytes are left"
    return value


def nameless(value: Any) -> Any:
    """The value without the names of its records' fields."""
    match value:
        case dict():
            return [nameless(inner) for inner in value.values()]
        case list():
            return [nameless(inner) for inner in value]
    return value
