from __future__ import annotations

import pytest

from frazil.decode.protobuf.compiler import compile_proto
from frazil.errors import UnreadableSchema
from frazil.schemas.protobuf import RECURSION_DEPTH, row_type
from frazil.schemas.types import Struct

IMPORTS = "".join(
    f'import "google/{name}.proto";\n'
    for name in (*(f"protobuf/{n}" for n in ("any", "empty", "struct", "timestamp", "wrappers")), "type/date")
)
TYPES = "enum E { Z = 0; A = 1; } message N { int32 a = 1; } message Nothing {} "


def row(body: str, syntax: str = "proto3", rest: str = TYPES) -> Struct:
    return row_type(compile_proto(f'syntax = "{syntax}";\n{IMPORTS}message M {{ {body} }}\n{rest}'))


def of(body: str) -> str:
    """The type of the field; `json` for JSON text, with `!` if it is never null."""
    (field,) = row(body).fields
    return ("json" if field.as_json else str(field.type)) + ("!" if field.required else "")


# What no row of docs/schemas.md says: whether a field may be null, and types within others.
MAPPING = [
    ("int32 x = 1;", "int!"),
    ("E x = 1;", "string!"),
    ("optional E x = 1;", "string"),
    ("N x = 1;", "struct<a: int>"),
    ("repeated int32 x = 1;", "list<int>!"),
    ("repeated E x = 1;", "list<string>!"),
    ("repeated N x = 1;", "list<struct<a: int>>!"),
    ("repeated Nothing x = 1;", "json!"),
    ("map<int32, N> x = 1;", "map<int, struct<a: int>>!"),
    ("map<uint64, E> x = 1;", "map<decimal(20, 0), string>!"),
    ("map<bool, google.protobuf.Timestamp> x = 1;", "map<boolean, timestamptz>!"),
    ("map<string, google.protobuf.Value> x = 1;", "json!"),
    ("google.protobuf.Timestamp x = 1;", "timestamptz"),
    ("repeated google.protobuf.Timestamp x = 1;", "list<timestamptz>!"),
    ("google.protobuf.BoolValue x = 1;", "boolean"),
    ("google.protobuf.Struct x = 1;", "json"),
    ("repeated google.protobuf.Struct x = 1;", "json!"),
    ("google.protobuf.Any x = 1;", "struct<type_url: string, value: binary>"),
    ("google.protobuf.Empty x = 1;", "json"),
    ("google.type.Date x = 1;", "struct<year: int, month: int, day: int>"),
]


@pytest.mark.parametrize(("body", "expected"), MAPPING)
def test_each_field_type_has_its_column_type(body: str, expected: str) -> None:
    assert of(body) == expected


def test_each_member_of_a_oneof_is_a_column_that_may_be_null() -> None:
    assert [(f.name, str(f.type), f.required) for f in row("oneof o { int32 a = 1; N n = 2; }").fields] == [
        ("a", "int", False),
        ("n", "struct<a: int>", False),
    ]


@pytest.mark.parametrize(
    "body", ["optional int32 x = 1;", "required int32 x = 1;", "optional int32 x = 1 [default = 5];"]
)
def test_a_proto2_field_may_be_null(body: str) -> None:
    (field,) = row(body, "proto2", rest="").fields
    assert (str(field.type), field.required) == ("int", False)


def test_an_edition_says_itself_what_may_be_null() -> None:
    text = 'edition = "2023"; message M { int32 a = 1; int32 b = 2 [features.field_presence = IMPLICIT]; }'
    assert [field.required for field in row_type(compile_proto(text)).fields] == [False, True]


def test_a_comment_before_or_behind_a_field_is_its_doc() -> None:
    fields = row(
        "\n// The buyer's\n// id.\nint64 a = 1;\n/* Pieces. */ int32 b = 2;\nint32 c = 3; // Behind.\nint32 d = 4;\n"
    )
    assert [field.doc for field in fields.fields] == ["The buyer's id.", "Pieces.", "Behind.", ""]


def test_names_are_kept_as_they_are() -> None:
    names = ["Id", "id", "orderId", "order_id2", "select"]
    body = " ".join(f"int32 {name} = {i + 1};" for i, name in enumerate(names))
    assert [(field.name, field.source) for field in row(body).fields] == [(name, name) for name in names]


def test_a_recursive_message_is_cut_to_json_at_the_stated_depth() -> None:
    text = 'syntax = "proto3"; message T { int32 v = 1; T next = 2; repeated T kids = 3; map<string, T> named = 4; }'
    level = row_type(compile_proto(text))
    for _ in range(RECURSION_DEPTH - 1):
        assert [field.as_json for field in level.fields] == [False] * 4
        inner = level.fields[1].type
        assert isinstance(inner, Struct)
        level = inner
    assert [(field.name, field.as_json) for field in level.fields] == [
        ("v", False),
        ("next", True),
        ("kids", True),
        ("named", True),
    ]


def test_messages_that_contain_each_other_are_cut_too() -> None:
    text = 'syntax = "proto3"; message A { B b = 1; } message B { A a = 1; }'
    assert str(row_type(compile_proto(text))).count("struct") == 2 * RECURSION_DEPTH


def test_any_message_of_the_file_can_be_the_row() -> None:
    schema = compile_proto(
        'syntax = "proto3"; package p; message A { message B { int32 b = 1; } B x = 1; } message C { int32 c = 1; }'
    )
    assert str(row_type(schema, "p.A.B")) == "struct<b: int>"
    assert str(row_type(schema, "p.C")) == "struct<c: int>"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('syntax = "proto2"; message M { optional group G = 1 { optional int32 a = 1; } }', "group"),
        (
            'edition = "2023"; message N { int32 a = 1; } message M { N n = 1 [features.message_encoding = DELIMITED]; }',
            "delimited",
        ),
        ('syntax = "proto3"; message M {}', "no fields"),
        ('syntax = "proto3"; enum E { Z = 0; }', "no message"),
    ],
)
def test_what_cannot_be_decoded_is_refused(text: str, what: str) -> None:
    schema = compile_proto(text)
    with pytest.raises(UnreadableSchema, match=what):
        row_type(schema, "M" if "message M" in text else None)


def test_a_schema_that_multiplies_without_end_is_refused() -> None:
    levels = [f"message L{i} {{ " + " ".join(f"L{i + 1} f{k} = {k};" for k in range(1, 11)) + " }" for i in range(6)]
    with pytest.raises(UnreadableSchema, match="columns"):
        row_type(compile_proto('syntax = "proto3"; ' + " ".join(levels) + " message L6 { int32 a = 1; }"))
