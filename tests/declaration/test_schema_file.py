"""A schema file is read beside the declaration that names it, and a document holds its content."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import Pipeline, SchemaFile, Table, Topic, ValueFormat, canonical, parse
from frazil.declaration.checks.problems import Refusal
from frazil.declaration.documents.document import document
from frazil.declaration.schema_file import LARGEST
from tests.declaration.problems_of import problems_of

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "orders.avsc").write_text(json.dumps(ORDER, indent=2))
    return tmp_path


def pipeline(schema: Any, value_format: str = "avro", **topic: Any) -> Pipeline:
    return Pipeline(
        topic=Topic("orders", value_format=value_format, schema=schema, **topic), table=Table("shop.orders")
    )


def declared(folder: Path, text: str) -> Any:
    """The value of an expression in a file of this folder."""
    names: dict[str, Any] = {"__name__": "mine", "Topic": Topic}
    exec(compile(f"made = {text}", str(folder / "mine.py"), "exec"), names)
    return names["made"]


def test_a_path_begins_at_the_folder_of_the_file_that_declares_it(here: Path) -> None:
    made = declared(here, 'Topic("orders", value_format="avro", schema="schemas/orders.avsc")')
    assert made.schema == (SchemaFile(file="orders.avsc", content=json.dumps(ORDER, separators=(",", ":"))),)
    assert declared(here, f'Topic("orders", value_format="avro", schema="{here}/schemas/orders.avsc")') == made


def test_a_document_holds_the_content_and_needs_no_file(here: Path) -> None:
    one = pipeline(str(here / "schemas" / "orders.avsc"))
    written = canonical(document([one]))
    (here / "schemas" / "orders.avsc").unlink()
    assert parse(written) == (one,)
    assert json.loads(json.loads(written)["pipelines"][0]["topic"]["schema"][0]["content"]) == ORDER


def test_spaces_are_no_other_document_and_the_order_of_names_is(tmp_path: Path) -> None:
    file = tmp_path / "o.json"
    texts = {
        "indented": b'\xef\xbb\xbf{\n "properties": {"b": {}, "a": {"minimum": 1.50}}\r\n}',
        "dense": b'{"properties":{"b":{},"a":{"minimum":1.50}}}',
        "other": b'{"properties":{"a":{"minimum":1.50},"b":{}}}',
    }
    found = {}
    for name, text in texts.items():
        file.write_bytes(text)
        found[name] = pipeline(str(file), "json_schema")
    assert found["indented"] == found["dense"] != found["other"]
    assert found["dense"].topic.schema[0].content == texts["dense"].decode()  # type: ignore[index]


def test_what_documents_refuse_is_written_as_an_escape(tmp_path: Path) -> None:
    file, said = tmp_path / "o.json", "a ${b} TfToken[c] \x7f é"
    file.write_text(json.dumps({"description": said}, ensure_ascii=False))
    one = pipeline(str(file), "json_schema")
    (again,) = parse(canonical(document([one])))
    assert json.loads(again.topic.schema[0].content) == {"description": said}  # type: ignore[index]


def test_a_descriptor_set_is_in_base64(tmp_path: Path) -> None:
    (tmp_path / "o.binpb").write_bytes(b"\x0a\x00\xff")
    (file,) = pipeline(str(tmp_path / "o.binpb"), "protobuf", record_name="O").topic.schema or ()
    assert (file.content, file.data, file.format) == (
        base64.b64encode(b"\x0a\x00\xff").decode(),
        b"\x0a\x00\xff",
        "protobuf",
    )


@pytest.mark.parametrize(
    ("name", "content", "says", "remedy"),
    [
        ("none.avsc", None, "does not exist", "Correct the path"),
        ("folder.avsc", ..., "does not exist", "Correct the path"),
        ("large.avsc", b" " * (LARGEST + 1), "1,048,577 bytes", "Leave out"),
        ("empty.avsc", b"", "is empty", "Write the schema"),
        ("bad.avsc", b'{\n "type": }', "this is not JSON: Expecting value at line 2, column 10", "Correct it there"),
        ("twice.json", b'{"type": "object", "type": "string"}', "'type' appears twice", "Keep one"),
        ("text.json", b"\xff", "byte 0 is not UTF-8", "Save it as UTF-8"),
        ("nan.json", b'{"minimum": NaN}', "NaN is not JSON", "Write a number"),
        ("half.avsc", rb'{"type": "record", "name": "\ud800"}', "half a surrogate pair", "Write the character"),
        ("a${b}.avsc", b'"int"', "the schema file", ""),
        ("orders.proto", b"message O {}", "is not a schema file that is read", "protoc --include_imports"),
        ("orders.txt", b"{}", "is not a schema file that is read", ".avsc (Avro), .json (JSON Schema)"),
    ],
)
def test_a_file_that_is_not_read_is_named_with_the_remedy(
    tmp_path: Path, name: str, content: Any, says: str, remedy: str
) -> None:
    file = tmp_path / name
    if content is ...:
        file.mkdir()
    elif content is not None:
        file.write_bytes(content)
    refused = SchemaFile.read(str(file))
    assert isinstance(refused, Refusal)
    assert says in refused.what
    assert name in refused.what
    assert remedy in refused.do


def test_a_file_that_is_not_read_hides_no_other_problem(here: Path) -> None:
    found = problems_of(lambda: pipeline(("none.avsc", str(here / "schemas" / "orders.avsc")), key_format="x"))
    assert sorted(found) == ["topic.key_format", "topic.schema[0]"]


@pytest.mark.parametrize(
    ("file", "content", "path"),
    [("a/b.avsc", "{}", "file"), ("b.txt", "{}", "file"), ("b.avsc", " ", "content"), ("b.avsc", "a\nb", "content")],
)
def test_a_document_is_checked_like_a_file(file: str, content: str, path: str) -> None:
    assert list(problems_of(lambda: SchemaFile(file=file, content=content))) == [f"schema_file.{path}"]


def test_a_text_in_a_document_is_no_path(here: Path) -> None:
    members = document([pipeline(str(here / "schemas" / "orders.avsc"))])
    members["pipelines"][0]["topic"]["schema"] = [str(here / "schemas" / "orders.avsc")]
    assert list(problems_of(lambda: parse(members))) == ["pipelines[0].topic.schema[0]"]


def test_two_contents_of_one_name_are_told_apart() -> None:
    one, other = (SchemaFile(file="o.avsc", content=text) for text in ("1", "2"))
    assert str(one) == "o.avsc (sha256 6b86b273)"
    assert str(one) != str(other)
    assert one.format is ValueFormat.AVRO
