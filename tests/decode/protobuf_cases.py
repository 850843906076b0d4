"""Protobuf messages at random, and what the official library says that each body's row is."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from decimal import Decimal as Dec
from random import Random
from typing import Any

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from frazil.decode.protobuf.compiler import compile_proto
from frazil.decode.protobuf.projection import reading
from frazil.decode.protobuf.protobuf_decoder import decoded
from frazil.decode.spark_types import spark_struct
from frazil.schemas.protobuf import ProtobufSchema, row_type
from frazil.schemas.types import Decimal, Field, ListOf, MapOf, Struct, Type
from tests.support.bodies import spoilt

REJECTED = "rejected"
SPOILT = "spoilt"
INTEGERS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64")
SCALARS = (*INTEGERS, "double", "float", "bool", "string", "bytes")
KEYS = (*INTEGERS, "bool", "string")
WELL_KNOWN = (
    *("Timestamp", "Duration", "Struct", "Value", "ListValue", "FieldMask", "Empty"),
    *(f"{name}Value" for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")),
)
_IMPORTS = "".join(
    f'import "google/protobuf/{name}.proto";\n'
    for name in ("duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_INSTANTS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
_DURATION = 315_576_000_000_999_999


def schema_text(dice: Random, messages: int) -> str:
    """A file of that many messages `M0`, `M1` …; a message refers to those before it, and to itself."""
    is_old = dice.random() < 0.25
    syntax, enum = ('syntax = "proto2";', "") if is_old else ('syntax = "proto3";', "enum E { Z = 0; A = 1; B = -7; }")
    found = [_message(dice, number, is_old=is_old) for number in range(messages)]
    return "\n".join([syntax, _IMPORTS, enum, *found])


def _message(dice: Random, number: int, *, is_old: bool) -> str:
    numbers = iter(dice.sample([*range(1, 30), 2**29 - 1, 2047], 12))

    def kind() -> str:
        roll = dice.random()
        if roll < 0.45:
            return dice.choice(SCALARS)
        if roll < 0.7:
            return f"google.protobuf.{dice.choice(WELL_KNOWN)}"
        if roll > 0.9 and not is_old:
            return "E"
        return f"M{dice.randrange(max(number - 4, 0), number)}" if number and roll < 0.85 else f"M{number}"

    def plain() -> str:
        return "optional " if is_old or dice.random() < 0.3 else ""

    fields = []
    for n in range(dice.randrange(1, 6)):
        roll = dice.random()
        if roll < 0.5:
            fields.append(f"{plain()}{kind()} f{n} = {next(numbers)};")
        elif roll < 0.7:
            fields.append(f"repeated {kind()} f{n} = {next(numbers)};")
        elif roll < 0.85:
            fields.append(f"map<{dice.choice(KEYS)}, {kind()}> f{n} = {next(numbers)};")
        else:
            members = (f"{kind()} f{n}_{m} = {next(numbers)};" for m in range(dice.randrange(1, 4)))
            fields.append(f"oneof o{n} {{ {' '.join(members)} }}")
    return f"message M{number} {{ {' '.join(fields)} }}"


class Cases:
    """The messages of one file, and bodies of them."""

    def __init__(self, dice: Random, messages: int) -> None:
        self.text = schema_text(dice, messages)
        self.schema: ProtobufSchema = compile_proto(self.text)
        self._dice = dice
        pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(self.schema.descriptors).file:
            pool.AddSerializedFile(file.SerializeToString())
        self.types = {f"M{n}": GetMessageClass(pool.FindMessageTypeByName(f"M{n}")) for n in range(messages)}

    def bodies(self, name: str, many: int) -> Iterator[bytes]:
        """Valid ones, two behind each other, which Protobuf merges, and spoilt ones."""
        kind = self.types[name]
        for _ in range(many):
            body = self._filled(kind(), 0).SerializePartialToString()
            roll = self._dice.random()
            if roll < 0.35:
                body += self._filled(kind(), 0).SerializePartialToString()
            elif roll < 0.75:
                body = spoilt(self._dice, body)
            yield body

    def _filled(self, message: Any, depth: int) -> Any:
        dice = self._dice
        match message.DESCRIPTOR.full_name:
            case "google.protobuf.Timestamp":
                message.seconds = dice.choice((0, -1, 253_402_300_799, -62_135_596_800, dice.randrange(2**33)))
                message.nanos = dice.choice((0, 1, 999, 1000, 999_999_999, dice.randrange(10**9)))
                return message
            case "google.protobuf.Duration":
                message.seconds = dice.randrange(-(10**6), 10**6)
                message.nanos = dice.randrange(10**9) * (-1 if message.seconds < 0 else 1)
                return message
            case "google.protobuf.Struct" | "google.protobuf.Value" | "google.protobuf.ListValue":
                value: Any = dice.choice((None, True, 1.5, -0.0, "é", [1, None], {"a": {"b": []}}))
                kind = message.DESCRIPTOR.name
                value = {"k": value} if kind == "Struct" else [value] if kind == "ListValue" else value
                return json_format.ParseDict(value, message)
        for field in message.DESCRIPTOR.fields:
            if dice.random() < (0.25 if depth < 3 else 0.75):
                continue
            self._fill(message, field, depth)
        return message

    def _fill(self, message: Any, field: FieldDescriptor, depth: int) -> None:
        dice = self._dice
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields
            for _ in range(dice.randrange(3)):
                where = getattr(message, field.name)
                if value.message_type is not None:
                    if depth < 4:
                        self._filled(where[self._scalar(key)], depth + 1)
                else:
                    where[self._scalar(key)] = self._scalar(value)
        elif field.is_repeated:
            for _ in range(dice.randrange(3)):
                if field.message_type is None:
                    getattr(message, field.name).append(self._scalar(field))
                elif depth < 4:
                    self._filled(getattr(message, field.name).add(), depth + 1)
        elif field.message_type is None:
            setattr(message, field.name, self._scalar(field))
        elif depth < 4:
            inner = getattr(message, field.name)
            inner.SetInParent()
            self._filled(inner, depth + 1)

    def _scalar(self, field: FieldDescriptor) -> Any:
        dice = self._dice
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_INT32:
                return dice.choice((0, 1, -1, 2**31 - 1, -(2**31)))
            case FieldDescriptor.CPPTYPE_INT64:
                return dice.choice((0, 1, -1, 2**63 - 1, -(2**63)))
            case FieldDescriptor.CPPTYPE_UINT32:
                return dice.choice((0, 1, 2**32 - 1))
            case FieldDescriptor.CPPTYPE_UINT64:
                return dice.choice((0, 1, 2**64 - 1))
            case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
                return dice.choice((0.0, -0.0, 0.5, math.inf, math.nan, -1.0))
            case FieldDescriptor.CPPTYPE_BOOL:
                return dice.random() < 0.5
            case FieldDescriptor.CPPTYPE_ENUM:
                return dice.choice((0, 1, -7, 5))
        if field.type == FieldDescriptor.TYPE_BYTES:
            return dice.randbytes(dice.randrange(4))
        return dice.choice(("", "a", "é😀", "\0"))

    def landed(self, name: str, bodies: list[bytes]) -> list[Any]:
        """What Frazil makes of the bodies: a row, or `REJECTED`."""
        target = row_type(self.schema, name)
        to = to_arrow_type(spark_struct(target).add("_decoded", T.BooleanType()))
        numbers = pa.array([0] * len(bodies), pa.int32())
        out = decoded(pa.array(bodies, pa.binary()), numbers, [reading(self.schema, name, target)], to)
        out.validate(full=True)
        return [
            REJECTED if row is None else plain({k: v for k, v in row.items() if k != "_decoded"})
            for row in out.to_pylist()
        ]

    def official(self, name: str, bodies: list[bytes]) -> list[Any]:
        """What the official library makes of them: a row, `REJECTED` for a value that no column holds, `SPOILT` for what is no
        Protobuf; None if implementations of Protobuf differ.
        """
        target, kind = row_type(self.schema, name), self.types[name]
        found = []
        for body in bodies:
            try:
                found.append(plain(_row(kind.FromString(body), target)))
            except DecodeError:
                found.append(SPOILT)
            except (OutOfRange, json_format.Error):
                found.append(REJECTED)
            except Unclear:
                found.append(None)
        return found


class OutOfRange(Exception):
    """A value that Protobuf allows and no column holds; docs/schemas.md says that it is rejected."""


class Unclear(Exception):
    """What Protobuf leaves open. An entry of a map has a field that no entry has: Java and Frazil ignore the field, Python's library the
    entry.
    """


def _row(message: Message, target: Struct) -> dict[str, Any]:
    fields = message.DESCRIPTOR.fields_by_name
    known = {field.number for field in message.DESCRIPTOR.fields if field.is_repeated and field.message_type}
    if any(unknown.field_number in known and unknown.wire_type == 2 for unknown in UnknownFieldSet(message)):
        raise Unclear
    return {wanted.name: _value(message, fields[wanted.source], wanted) for wanted in target.fields}


def _value(message: Any, field: FieldDescriptor, wanted: Field) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    if wanted.as_json:
        alone = type(message)()
        if field.is_repeated:
            getattr(alone, field.name).MergeFrom(getattr(message, field.name))
        else:
            getattr(alone, field.name).CopyFrom(getattr(message, field.name))
        said = json_format.MessageToDict(
            alone, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        return json.dumps(said[field.name], ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    value = getattr(message, field.name)
    if isinstance(wanted.type, MapOf):
        _, inner = field.message_type.fields
        if any(isinstance(key, bytes) for key in value):  # as below; and the library cannot look such a key up
            raise OutOfRange
        return {key: _one(value[key], inner, wanted.type.value) for key in value}
    if field.is_repeated:
        assert isinstance(wanted.type, ListOf)
        return [_one(one, field, wanted.type.element) for one in value]
    return _one(value, field, wanted.type)


def _one(value: Any, field: FieldDescriptor, of: Type) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else str(value)
    if field.type == FieldDescriptor.TYPE_STRING and isinstance(value, bytes):
        raise OutOfRange  # proto2 lets through what is not UTF-8
    if field.message_type is None:
        return Dec(value) if isinstance(of, Decimal) else value
    match field.message_type.full_name:
        case "google.protobuf.Timestamp":
            if not 0 <= value.nanos < 10**9:
                raise OutOfRange
            micros = value.seconds * 10**6 + value.nanos // 1000
            if not _INSTANTS[0] <= micros <= _INSTANTS[1]:
                raise OutOfRange
            return _EPOCH + dt.timedelta(microseconds=micros)
        case "google.protobuf.Duration":
            if value.seconds * value.nanos < 0 or abs(value.nanos) >= 10**9:
                raise OutOfRange
            nanos = value.seconds * 10**9 + value.nanos
            micros = abs(nanos) // 1000 * (-1 if nanos < 0 else 1)
            if abs(micros) > _DURATION:
                raise OutOfRange
            return micros
    if isinstance(of, Struct):
        return _row(value, of)
    return Dec(value.value) if isinstance(of, Decimal) else value.value


def plain(value: Any) -> Any:
    """The value with maps as dictionaries, and with numbers by which NaN and minus zero equal themselves only."""
    match value:
        case dict():
            return {key: plain(inner) for key, inner in value.items()} or []  # an empty map comes as an empty list
        case list() if value and isinstance(value[0], tuple):
            assert len(dict(value)) == len(value), "a key twice"
            return {key: plain(inner) for key, inner in value}
        case list():
            return [plain(inner) for inner in value]
        case float():
            return repr(value)
    return value
