from __future__ import annotations

from pathlib import Path

import pytest

from frazil.decode.protobuf import compiler as protobuf_compiler
from frazil.decode.protobuf.compiler import compile_proto
from frazil.errors import UnreadableSchema
from frazil.schemas.protobuf import row_type

HEAD = 'syntax = "proto3";\n'


def test_a_message_index_names_each_message_of_the_file() -> None:
    text = (
        HEAD
        + "package a.b; message A { map<string, int32> m = 1; message B { message C {} } message D {} } message E {}"
    )
    assert compile_proto(text).indexes == {
        (0,): "a.b.A",
        (0, 1): "a.b.A.B",  # 0 is the map's entry
        (0, 1, 0): "a.b.A.B.C",
        (0, 2): "a.b.A.D",
        (1,): "a.b.E",
    }


def test_references_are_imported_by_their_names() -> None:
    text = HEAD + 'import "shop/address.proto"; message M { shop.Address a = 1; }'
    references = {
        "shop/address.proto": HEAD + 'package shop; import "city.proto"; message Address { City city = 1; }',
        "city.proto": HEAD + "message City { string name = 1; }",
    }
    assert str(row_type(compile_proto(text, references))) == "struct<a: struct<city: struct<name: string>>>"


def test_a_reference_named_like_our_file_is_another_file() -> None:
    references = {"subject.proto": HEAD + "message N { int32 a = 1; }"}
    text = HEAD + 'import "subject.proto"; message M { N n = 1; }'
    assert str(row_type(compile_proto(text, references))) == "struct<n: struct<a: int>>"


def test_imports_that_clients_bring_themselves_need_no_reference() -> None:
    text = HEAD + (
        'import "confluent/meta.proto"; import "confluent/type/decimal.proto"; import "google/type/money.proto";'
        'message M { option (confluent.message_meta).doc = "x"; confluent.type.Decimal d = 1'
        ' [(confluent.field_meta) = { params: [{ key: "precision", value: "9" }] }]; google.type.Money m = 2; }'
    )
    assert str(row_type(compile_proto(text))) == (
        "struct<d: struct<value: binary, precision: long, scale: int>, m: struct<currency_code: string, units: long, nanos: int>>"
    )


def test_a_registry_cannot_replace_the_well_known_types() -> None:
    references = {
        "google/protobuf/timestamp.proto": HEAD + "package google.protobuf; message Timestamp { string x = 1; }"
    }
    text = HEAD + 'import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp t = 1; }'
    assert str(row_type(compile_proto(text, references))) == "struct<t: timestamptz>"


@pytest.mark.parametrize(
    "name",
    [
        "../x.proto",
        "a/../../x.proto",
        "/etc/x.proto",
        "a\\b.proto",
        "a\nb",
        "",
        ".",
        "a//b",
        "a/./b",
        "x" * 2000,
        "\ud800",
    ],
)
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str) -> None:
    with pytest.raises(UnreadableSchema):
        compile_proto(HEAD, {name: HEAD})


def test_a_file_that_is_also_a_folder_is_refused() -> None:
    with pytest.raises(UnreadableSchema, match="cannot be written"):
        compile_proto(HEAD, {"a": HEAD, "a/b": HEAD})


def test_a_reference_is_never_run_as_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "grpc_tools"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    assert compile_proto(HEAD + "message M { int32 a = 1; }", {"grpc_tools/protoc.py": "raise SystemExit(9)"}).messages


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("message M { int32 a = ; }", r"subject\.proto:1:"),
        (HEAD + 'import "missing.proto";', r"missing\.proto"),
        (HEAD + "message M { Unknown a = 1; }", '"Unknown" is not defined'),
        ("<html>", "protoc refuses"),
        ("x" * (protobuf_compiler.TEXT_LIMIT + 1), "longer than"),
    ],
)
def test_protoc_says_what_is_wrong(text: str, what: str) -> None:
    with pytest.raises(UnreadableSchema, match=what) as refusal:
        compile_proto(text)
    assert "WARNING" not in str(refusal.value)
    assert "/tmp" not in str(refusal.value)


def test_the_descriptors_carry_no_comments() -> None:
    assert b"secret" not in compile_proto(HEAD + "// secret\nmessage M { int32 a = 1; }").descriptors
