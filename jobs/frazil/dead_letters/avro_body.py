"""An Avro body decoded in pure Python, slowly, to find the byte and the field at which it stops being its schema's.

Encoding: https://avro.apache.org/docs/1.12.0/specification/#binary-encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from frazil.dead_letters.diagnosis import Reader, Undecodable
from frazil.schemas.avro import AvroSchema
from frazil.schemas.avro.schema import Array, Enum, Fixed, Map, Named, Node, Record, Simple, Union

MOST_VALUES = 1_000_000  # of all fields, items and keys together: so many are decoded in a second or two


def avro_value(body: bytes, schema: AvroSchema) -> Any:
    """Return the value, logical types left as they are encoded. Raises `Undecodable`, also for bytes after the value."""
    reader = _Reader(body, schema)
    value = reader.value(Named(schema.root.name), "")
    if reader.at < len(body):
        raise Undecodable(f"{len(body) - reader.at} bytes follow the value", reader.at)
    return value


_TOO_MANY = f"it has more than {MOST_VALUES:,} values"


class _Reader(Reader):
    def __init__(self, body: bytes, schema: AvroSchema) -> None:
        super().__init__(body)
        self.types, self.values = schema.types, 0

    def value(self, node: Node, path: str) -> Any:
        self.values += 1
        if self.values > MOST_VALUES:
            raise Undecodable(f"{_TOO_MANY}, and what is wrong behind here was not looked for", self.at, path)
        match node:
            case Simple(name):
                return self._simple(name, path)
            case Union(branches):
                begin, index = self.at, self._long(path)
                if not 0 <= index < len(branches):
                    raise Undecodable(f"branch {index} of a union of {len(branches)}", begin, path)
                return self.value(branches[index], path)
            case Array(items):
                return [self.value(items, f"{path}[{i}]") for i in self._blocks(path)]
            case Map(values):
                return {(key := self._text(path)): self.value(values, f"{path}{{{key}}}") for _ in self._blocks(path)}
            case Named(name):
                return self._named(name, path)

    def _named(self, name: str, path: str) -> Any:
        match self.types[name]:
            case Record(_, fields):
                return {f.name: self.value(f.type, f"{path}.{f.name}".lstrip(".")) for f in fields}
            case Enum(_, symbols):
                begin, index = self.at, self._long(path)
                if not 0 <= index < len(symbols):
                    raise Undecodable(f"symbol {index} of an enum of {len(symbols)}", begin, path)
                return symbols[index]
            case Fixed(_, size):
                return self.take(size, path).hex()

    def _simple(self, name: str, path: str) -> Any:
        match name:
            case "null":
                return None
            case "boolean":
                byte = self.take(1, path)[0]
                if byte > 1:
                    raise Undecodable(f"byte 0x{byte:02x} is no boolean", self.at - 1, path)
                return bool(byte)
            case "int" | "long":
                begin, number = self.at, self._long(path)
                if name == "int" and not -(2**31) <= number < 2**31:
                    raise Undecodable(f"{number} does not fit an int", begin, path)
                return number
            case "float":
                return struct.unpack("<f", self.take(4, path))[0]
            case "double":
                return struct.unpack("<d", self.take(8, path))[0]
            case "bytes":
                return self.take(self._length(path), path).hex()
            case _:
                return self._text(path)

    def _text(self, path: str) -> str:
        length = self._length(path)
        begin = self.at
        try:
            return self.take(length, path).decode()
        except UnicodeDecodeError as problem:
            raise Undecodable(f"a string that is no UTF-8: {problem.reason}", begin + problem.start, path) from None

    def _length(self, path: str) -> int:
        begin, length = self.at, self._long(path)
        if length < 0:
            raise Undecodable(f"a length of {length}", begin, path)
        return length

    def _blocks(self, path: str) -> Iterator[int]:
        """Yield a number for each item of an array or map, which come in blocks."""
        number = 0
        while True:
            begin, count = self.at, self._long(path)
            if count < 0:
                self._long(path)  # the block's size in bytes
                count = -count
            if count == 0:
                return
            left = len(self.body) - self.at
            if count > left:  # each item takes a byte at least: the parser refuses schemas whose items take none
                raise Undecodable(f"a block of {count:,} items, and {left:,} bytes are left", begin, path)
            for _ in range(count):
                yield number
                number += 1

    def _long(self, path: str) -> int:
        number = self.varint(path)
        return (number >> 1) ^ -(number & 1)
