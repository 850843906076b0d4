from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal as Dec
from functools import lru_cache
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from frazil.decode.protobuf.assembly import assemble
from frazil.decode.protobuf.compiler import compile_proto
from frazil.decode.protobuf.projection import reading
from frazil.decode.protobuf.protobuf_decoder import decode_protobuf, decoded
from frazil.decode.spark_types import spark_struct
from frazil.schemas.protobuf import ProtobufSchema, row_type
from frazil.schemas.types import Decimal, Field, Kind, ListOf, MapOf, Primitive, Struct
from frazil.schemas.wire_format import varint

UTC = dt.UTC
INT, LONG, DOUBLE, STRING, DATE = (
    Primitive(kind) for kind in (Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.STRING, Kind.DATE)
)
IMPORTS = "".join(
    f'import "google/{name}.proto";\n'
    for name in (
        *(f"protobuf/{n}" for n in ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")),
        "type/date",
    )
)


def schema(body: str, rest: str = "", syntax: str = 'syntax = "proto3"') -> ProtobufSchema:
    return compile_proto(f"{syntax};\n{IMPORTS}message M {{ {body} }}\n{rest}")


def message(of: ProtobufSchema, name: str = "M", **fields: Any) -> Any:
    """An empty message, or one of the fields that JSON can say."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(of.descriptors).file:
        pool.AddSerializedFile(file.SerializeToString())
    made = GetMessageClass(pool.FindMessageTypeByName(name))()
    return json_format.ParseDict(fields, made)


def arrow(target: Struct) -> pa.StructType:
    return to_arrow_type(spark_struct(target).add("_decoded", T.BooleanType()))


def decode(
    of: ProtobufSchema, bodies: Sequence[Message | bytes | None], target: Struct | None = None, name: str = "M"
) -> list[dict[str, Any] | None]:
    """Each body's row without `_decoded`; None if it could not be read."""
    target = target or row_type(of, name)
    raw = [body.SerializeToString() if isinstance(body, Message) else body for body in bodies]
    array = pa.array(raw, pa.binary())
    out = decoded(array, pa.array([0] * len(raw), pa.int32()), [reading(of, name, target)], arrow(target))
    assert out.type == arrow(target)
    out.validate(full=True)
    rows = out.to_pylist()
    assert all(row is None or row["_decoded"] is True for row in rows)
    return [None if row is None else {name: row[name] for name in row if name != "_decoded"} for row in rows]


TYPES = "enum E { Z = 0; A = 1; MINUS = -1; } message N { int32 a = 1; optional string s = 2; } message Nothing {}"


def test_a_proto2_field_that_is_absent_is_null_whatever_its_default() -> None:
    body = "required int32 r = 1; optional int32 o = 2; optional int32 d = 3 [default = 5]; repeated int32 p = 4 [packed = true];"
    enum = " enum E { A = 1; B = 2; } optional E e = 5; extensions 100 to 200;"
    of = compile_proto(f'syntax = "proto2"; message M {{ {body} {enum} }}')
    rows = decode(of, [b"", message(of, r=0, d=5, p=[1, 2], e="B"), b"\x08\x01\x28\x09"])
    assert rows == [
        {"r": None, "o": None, "d": None, "p": [], "e": None},
        {"r": 0, "o": None, "d": 5, "p": [1, 2], "e": "B"},
        {"r": 1, "o": None, "d": None, "p": [], "e": "9"},
    ]


def test_an_edition_is_read() -> None:
    text = 'edition = "2023"; message M { int32 a = 1; int32 b = 2 [features.field_presence = IMPLICIT]; E e = 3; enum E { Z = 0; A = 1; } }'
    of = compile_proto(text)
    assert decode(of, [b"", message(of, a=0, b=1, e="A")]) == [
        {"a": None, "b": 0, "e": None},
        {"a": 0, "b": 1, "e": "A"},
    ]


def test_a_message_deeper_than_protobuf_allows_in_json_is_rejected() -> None:
    of = schema("M next = 1;")
    body = b""
    for _ in range(5000):
        body = b"\x0a" + varint(len(body)) + body
    assert decode(of, [body, b""]) == [None, {"next": None}]


TIMES = {
    "Timestamp": (
        [(0, 0), (-1, 999_999_000), (253_402_300_799, 999_999_000), (-62_135_596_800, 0)],
        [(1, 10**9), (0, -1000), (1, 1_500_000_000), (253_402_300_800, 0), (-62_135_596_801, 0), (-(2**63), 0)],
    ),
    "Duration": (
        [(0, -1000), (-1, -999_999_000), (315_576_000_000, 0), (-315_576_000_000, 0)],
        [(1, -1000), (-1, 1000), (1, 10**9), (0, -(10**9)), (315_576_000_001, 0), (2**63 - 1, 0), (-(2**63), -1000)],
    ),
}
"""Seconds and nanoseconds that are a value of the message, and others that are not."""


@lru_cache
def times_in_all_places(kind: str) -> ProtobufSchema:
    time = f"google.protobuf.{kind}"
    places = f"{time} one = 1; repeated {time} many = 2; map<string, {time}> by_name = 3; In inner = 4; Text text = 6;"
    inside = f"message In {{ {time} t = 1; }} message Text {{ repeated {time} t = 1; Text next = 2; }}"
    return schema(f"{places} oneof o {{ {time} chosen = 5; int32 other = 7; }}", inside)


def in_place(of: ProtobufSchema, place: str, seconds: int, nanos: int) -> Any:
    made = message(of)
    match place:
        case "many":
            made.many.add()
            time = made.many.add()
        case "by_name":
            time = made.by_name["a"]
        case "inner":
            time = made.inner.t
        case "text":  # below the levels that are columns
            time = made.text.next.next.next.t.add()
        case _:
            time = getattr(made, place)
    time.SetInParent()
    time.seconds, time.nanos = seconds, nanos
    return made


class TestBadRecords:
    OF = schema(
        "int32 i = 1; string s = 2; google.protobuf.Timestamp t = 3; google.protobuf.Duration d = 4; repeated google.protobuf.Timestamp ts = 5;"
    )

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            (b"\x08", "truncated varint"),
            (b"\x08\xff", "truncated varint"),
            (b"\x08" + b"\xff" * 10 + b"\x01", "varint of 11 bytes"),
            (b"\x12\x05ab", "truncated string"),
            (b"\x12\x02\xff\xfe", "string that is not UTF-8"),
            (b"\x12\x03\xed\xa0\x80", "surrogate in a string"),
            (b"\x00", "field number 0"),
            (b"\x0f", "wire type 7"),
            (b"\x0b\x08\x01", "group without end"),
            (b"\x0c", "end of a group that did not begin"),
            (None, "no bytes"),
        ],
    )
    def test_it_is_null_and_its_neighbours_land(self, body: bytes | None, why: str) -> None:
        good = [message(self.OF, i=i, ts=["1970-01-01T00:00:00Z"]) for i in range(9)]
        rows = decode(self.OF, [*good[:5], body, *good[5:], body])
        assert [None if row is None else row["i"] for row in rows] == [0, 1, 2, 3, 4, None, 5, 6, 7, 8, None], why

    @pytest.mark.parametrize("place", ["one", "many", "by_name", "inner", "chosen", "text"])
    @pytest.mark.parametrize("is_key", [False, True], ids=["value", "key"])
    @pytest.mark.parametrize("kind", ["Timestamp", "Duration"])
    def test_a_time_whose_numbers_are_out_of_range_is_rejected(self, kind: str, is_key: bool, place: str) -> None:
        valid, wrong = TIMES[kind]
        of = times_in_all_places(kind)
        target = row_type(of).exact() if is_key else row_type(of)
        bodies = [in_place(of, place, seconds, nanos) for seconds, nanos in (*valid, *wrong)]
        found = [row is not None for row in decode(of, bodies, target)]
        assert found == [True] * len(valid) + [False] * len(wrong)

    def test_a_batch_of_nothing_else_is_nulls(self) -> None:
        assert decode(self.OF, [b"\x08"] * 7) == [None] * 7

    def test_an_empty_batch_is_empty(self) -> None:
        assert decode(self.OF, []) == []

    def test_unknown_fields_and_groups_are_ignored(self) -> None:
        assert decode(self.OF, [b"\xf8\x3f\x05\xfb\x3f\x08\x01\xfc\x3f\x08\x07"])[0] == {
            "i": 7,
            "s": "",
            "t": None,
            "d": None,
            "ts": [],
        }

    def test_a_field_in_another_wire_type_is_an_unknown_field(self) -> None:
        (row,) = decode(self.OF, [b"\x0d\x01\x02\x03\x04"])
        assert row is not None
        assert row["i"] == 0

    def test_a_number_that_is_not_finite_in_json_is_rejected(self) -> None:
        of = schema("google.protobuf.Value x = 1; int32 i = 2;")
        made = message(of)
        made.x.number_value = float("nan")
        assert decode(of, [message(of, i=1), made]) == [{"x": None, "i": 1}, None]


class TestWireFormat:
    def test_packed_and_unpacked_lists_are_one_list(self) -> None:
        of = schema("repeated int32 x = 1;")
        assert decode(of, [b"\x08\x05\x08\x06\x0a\x02\x07\x08"]) == [{"x": [5, 6, 7, 8]}]


def test_a_member_of_a_oneof_without_a_column_counts_too() -> None:
    of = schema("oneof o { int32 a = 1; N c = 3; } N n = 4;", TYPES)
    target = Struct((Field("a", INT),))
    assert decode(of, [b"\x08\x01\x1a\x00", b"\x1a\x00\x08\x01"], target) == [{"a": None}, {"a": 1}]


class TestMapEntries:
    ENTRIES: ClassVar = [
            ("map<string, N> x = 1;", b"\x0a\x03\x0a\x01a", [("a", {"a": 0, "s": None})]),
            ("map<string, N> x = 1;", b"\x0a\x00", [("", {"a": 0, "s": None})]),
            ("map<string, int32> x = 1;", b"\x0a\x03\x0a\x01a", [("a", 0)]),
            ("map<int32, string> x = 1;", b"\x0a\x03\x12\x01a", [(0, "a")]),
            ("map<string, E> x = 1;", b"\x0a\x03\x0a\x01a", [("a", "Z")]),
            ("map<string, google.protobuf.Timestamp> x = 1;", b"\x0a\x03\x0a\x01a", [("a", dt.datetime(1970, 1, 1, tzinfo=UTC))]),
            ("map<string, google.protobuf.Duration> x = 1;", b"\x0a\x03\x0a\x01a", [("a", 0)]),
            ("map<string, google.protobuf.Int64Value> x = 1;", b"\x0a\x03\x0a\x01a", [("a", 0)]),
            ("map<string, Nothing> x = 1;", b"\x0a\x03\x0a\x01a", '{"a":{}}'),
    ]  # fmt: skip

    def test_an_entry_without_its_key_or_value_has_the_default(self) -> None:
        of = schema("", " ".join([TYPES, *(f"message M{i} {{ {one} }}" for i, (one, _, _) in enumerate(self.ENTRIES))]))
        for i, (field, body, expected) in enumerate(self.ENTRIES):
            assert decode(of, [b"", body, b""], name=f"M{i}")[1] == {"x": expected}, field


def test_a_panic_of_the_decoder_rejects_its_record_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicError(BaseException):
        pass

    def panics(batch: pa.RecordBatch, *rest: Any) -> pa.Array:
        if b"poison" in batch.column(0).to_pylist():
            raise PanicError
        return assemble(batch, *rest)

    monkeypatch.setattr("frazil.decode.protobuf.protobuf_decoder.assemble", panics)
    of = schema("bytes x = 1;")
    rows = decode(of, [message(of, x="AA=="), b"\x0a\x06poison", message(of, x="AQ==")])
    assert rows == [{"x": b"\0"}, None, {"x": b"\1"}]


class TestTargets:
    def test_columns_are_found_by_source_and_alias_and_keep_the_targets_order(self) -> None:
        of = schema("int32 OldName = 1; int32 b = 2; N n = 3;", TYPES)
        inner = Struct((Field("extra", STRING), Field("a_", INT, source="a")))
        target = Struct(
            (
                Field("missing", ListOf(DOUBLE)),
                Field("n", inner),
                Field("new_name", INT, source="newName", aliases=("OldName",)),
            )
        )
        rows = decode(of, [message(of, OldName=1, b=2, n={"a": 3}), message(of)], target)
        assert rows == [
            {"missing": None, "n": {"extra": None, "a_": 3}, "new_name": 1},
            {"missing": None, "n": None, "new_name": 0},
        ]

    def test_values_are_widened_to_the_column(self) -> None:
        of = schema("int32 i = 1; float f = 2; uint64 u = 3; repeated int32 l = 4; map<int32, float> m = 5;")
        target = Struct(
            (
                Field("i", LONG),
                Field("f", DOUBLE),
                Field("u", Decimal(30, 0)),
                Field("l", ListOf(LONG)),
                Field("m", MapOf(LONG, DOUBLE)),
            )
        )
        assert decode(of, [message(of, i=1, f=0.5, u=7, l=[1], m={"1": 0.5})], target) == [
            {"i": 1, "f": 0.5, "u": Dec(7), "l": [1], "m": [(1, 0.5)]}
        ]

    def test_what_is_a_struct_or_a_list_in_this_version_can_be_json(self) -> None:
        of = schema(
            "N n = 1; repeated int64 l = 2; repeated E e = 3; map<string, int64> m = 4; repeated bytes b = 5;", TYPES
        )
        target = Struct(tuple(Field(name, STRING, as_json=True) for name in "nlemb"))
        row = message(of, n={"a": 1}, l=[1], e=["A", 7], m={"k": 2}, b=["AA=="])
        assert decode(of, [row, b""], target) == [
            {"n": '{"a":1}', "l": '["1"]', "e": '["A","7"]', "m": '{"k":"2"}', "b": '["AA=="]'},
            {"n": None, "l": "[]", "e": "[]", "m": "{}", "b": "[]"},
        ]

    def test_records_of_several_types_land_in_their_order(self) -> None:
        one, two = schema("int32 a = 1;"), schema("string b = 1;")
        target = Struct((Field("a", INT), Field("b", STRING)))
        bodies = [
            message(one, a=1),
            message(two, b="x"),
            b"\x08",
            message(two, b="y"),
            message(one, a=2),
            message(one, a=3),
            b"",
        ]
        array = pa.array([b.SerializeToString() if isinstance(b, Message) else b for b in bodies], pa.binary())
        types = pa.array([0, 1, 0, 1, 0, None, 7], pa.int32())
        out = decoded(array, types, [reading(one, "M", target), reading(two, "M", target)], arrow(target))
        assert [row and (row["a"], row["b"]) for row in out.to_pylist()] == [
            (1, None),
            (None, "x"),
            None,
            (None, "y"),
            (2, None),
            None,
            None,
        ]

    def test_a_large_batch_with_a_bad_record_here_and_there_loses_nothing(self) -> None:
        of = schema("int32 a = 1;")
        good = [message(of, a=i).SerializeToString() for i in range(10_000)]
        bodies = [b"\x08" if i % 997 == 5 else body for i, body in enumerate(good)]
        rows = decode(of, bodies)
        assert [row and row["a"] for row in rows] == [None if i % 997 == 5 else i for i in range(10_000)]


@pytest.mark.long
@pytest.mark.spark
def test_a_value_of_20_megabytes_lands(spark: SparkSession) -> None:
    of = schema("bytes x = 1;")
    target = row_type(of)
    records = spark.createDataFrame([(message(of, x="AAAA" * 6_700_000).SerializeToString(),)], "value binary")
    rows = records.select(decode_protobuf(F.col("value"), F.lit(0), [reading(of, "M", target)], target).alias("r"))
    assert rows.select(F.length("r.x")).first() == (20_100_000,)


@pytest.mark.parametrize("place", ["_handler", "canonical"])
def test_what_the_libraries_refuse_is_bad_and_fails_no_batch(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A type that one of them cannot make, whose panic is no `Exception`; a body at which the other raises anything."""

    class Panic(BaseException):
        pass

    def refusing(*_: Any) -> Any:
        raise Panic

    monkeypatch.setattr(f"frazil.decode.protobuf.protobuf_decoder.{place}", refusing)
    of, target = schema("int32 a = 1;"), Struct((Field("a", INT),))
    bodies = pa.array([b"\x08\x01", b"\x08"], pa.binary())
    out = decoded(bodies, pa.array([0, 0], pa.int32()), [reading(of, "M", target)], arrow(target))
    assert [row is not None for row in out.to_pylist()] == [place != "_handler", False]
