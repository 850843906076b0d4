"""A schema file is read next to the declaration that names it, and a document holds its content; options fit their format."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import (
    Avro,
    ConnectJson,
    Framing,
    Json,
    JsonSchema,
    Pipeline,
    Protobuf,
    SchemaFile,
    SubjectStrategy,
    Table,
    Text,
    Topic,
    canonical,
    parse,
)
from frazil.declaration.checks.problems import Refusal
from frazil.declaration.checks.validation import root_of
from frazil.declaration.documents.document import document
from frazil.declaration.formats import LARGEST
from tests.declaration.problems_of import problems_of
from tests.support.topics import topic_of

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "orders.avsc").write_text(json.dumps(ORDER, indent=2))
    return tmp_path


def pipeline(schema: Any, value_format: str = "avro", **topic: Any) -> Pipeline:
    return Pipeline(
        topic=topic_of("orders", value_format=value_format, schema=schema, **topic), table=Table("shop.orders")
    )


def declared(folder: Path, text: str) -> Any:
    """The value of an expression in a file of this folder."""
    names: dict[str, Any] = {"__name__": "mine", "Topic": Topic, "Avro": Avro}
    exec(compile(f"made = {text}", str(folder / "mine.py"), "exec"), names)
    return names["made"]


def test_a_path_begins_at_the_folder_of_the_file_that_declares_it(here: Path) -> None:
    made = declared(here, 'Topic("orders", value=Avro(schema="schemas/orders.avsc"))')
    assert made.value.schema == (SchemaFile(file="orders.avsc", content=json.dumps(ORDER, separators=(",", ":"))),)
    assert declared(here, f'Topic("orders", value=Avro(schema="{here}/schemas/orders.avsc"))') == made


def test_a_document_holds_the_content_and_needs_no_file(here: Path) -> None:
    one = pipeline(str(here / "schemas" / "orders.avsc"))
    written = canonical(document([one]))
    (here / "schemas" / "orders.avsc").unlink()
    assert parse(written) == (one,)
    assert json.loads(json.loads(written)["pipelines"][0]["topic"]["value"]["schema"][0]["content"]) == ORDER


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
    assert found["dense"].topic.value.schema[0].content == texts["dense"].decode()  # type: ignore[index]


def test_what_documents_refuse_is_written_as_an_escape(tmp_path: Path) -> None:
    file, said = tmp_path / "o.json", "a ${b} TfToken[c] \x7f é"
    file.write_text(json.dumps({"description": said}, ensure_ascii=False))
    one = pipeline(str(file), "json_schema")
    (again,) = parse(canonical(document([one])))
    assert json.loads(again.topic.value.schema[0].content) == {"description": said}  # type: ignore[index]


def test_a_descriptor_set_is_in_base64(tmp_path: Path) -> None:
    (tmp_path / "o.binpb").write_bytes(b"\x0a\x00\xff")
    (file,) = pipeline(str(tmp_path / "o.binpb"), "protobuf", record_name="O").topic.value.schema or ()
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
    found = problems_of(lambda: Avro(schema=("none.avsc", str(here / "schemas" / "orders.avsc")), framing="x"))
    assert sorted(found) == ["avro.framing", "avro.schema[0]"]


@pytest.mark.parametrize(
    ("file", "content", "path"),
    [("a/b.avsc", "{}", "file"), ("b.txt", "{}", "file"), ("b.avsc", " ", "content"), ("b.avsc", "a\nb", "content")],
)
def test_a_document_is_checked_like_a_file(file: str, content: str, path: str) -> None:
    assert list(problems_of(lambda: SchemaFile(file=file, content=content))) == [f"schema_file.{path}"]


def test_a_text_in_a_document_is_no_path(here: Path) -> None:
    members = document([pipeline(str(here / "schemas" / "orders.avsc"))])
    members["pipelines"][0]["topic"]["value"]["schema"] = [str(here / "schemas" / "orders.avsc")]
    assert list(problems_of(lambda: parse(members))) == ["pipelines[0].topic.value.schema[0]"]


def test_two_contents_of_one_name_are_told_apart() -> None:
    one, other = (SchemaFile(file="o.avsc", content=text) for text in ("1", "2"))
    assert str(one) == "o.avsc (sha256 6b86b273)"
    assert str(one) != str(other)
    assert one.format == "avro"


V1, V2 = (SchemaFile(file=f"v{n}.avsc", content=f'"{kind}"') for n, kind in ((1, "int"), (2, "long")))
JSON, MORE = SchemaFile(file="o.json", content="{}"), SchemaFile(file="p.json", content="{}")
DESC = SchemaFile(file="o.desc", content="CgA=")


@pytest.mark.parametrize(
    "of",
    [
        Avro(schema=(V1,)),
        Avro(schema=(V1,), framing="single_object"),
        Avro(schema=(V1, V2), framing=Framing.SINGLE_OBJECT),
        JsonSchema(schema=(JSON,)),
        Protobuf(schema=(DESC,), record_name="shop.Order"),
    ],
)
def test_a_declared_schema_needs_no_registry(of: Any) -> None:
    made = Topic("orders", value=of, key=of)
    assert (made.value.needs_registry, made.key.needs_registry) == (False, False)


@pytest.mark.parametrize(
    ("kind", "options", "wrong"),
    [
        (Avro, {"schema": ()}, "schema"),
        (Avro, {"schema": (JSON,)}, "schema[0]"),
        (Avro, {"schema": (V1, V1), "framing": "single_object"}, "schema[1]"),
        (Avro, {"schema": (V1, V2)}, "schema"),
        (JsonSchema, {"schema": (JSON, MORE)}, "schema"),
        (Avro, {"framing": "single_object"}, "framing"),
        (Avro, {"schema": (V1,), "record_name": "shop.Order"}, "record_name"),
        (JsonSchema, {"schema": (JSON,), "record_name": "An order"}, "record_name"),
        (Protobuf, {"schema": (DESC,)}, "record_name"),
        (Protobuf, {"schema": (DESC,), "record_name": "1"}, "record_name"),
        (Protobuf, {"schema": (SchemaFile(file="o.pb", content="é"),), "record_name": "O"}, "schema[0].content"),
        (Avro, {"schema": (V1,), "subject_strategy": SubjectStrategy.RECORD}, "subject_strategy"),
        (JsonSchema, {"unknown_fields": "keep"}, "unknown_fields"),
        (Json, {"unknown_fields": "keep"}, "unknown_fields"),
        (Json, {"columns": ("a long", "_Unknown string"), "unknown_fields": "keep"}, "columns[1]"),
        (Json, {"columns": ()}, "columns"),
        (Json, {"schema": (V1,)}, "schema"),
        (Text, {"subject_strategy": "record"}, "subject_strategy"),
        (ConnectJson, {"unknown_fields": "keep"}, "unknown_fields"),
    ],
)
def test_an_option_that_does_not_fit_its_format_is_refused(kind: Any, options: dict[str, Any], wrong: str) -> None:
    assert list(problems_of(lambda: kind(**options))) == [f"{root_of(kind)}.{wrong}"]


def test_the_remedy_of_two_plain_versions_is_the_fingerprint() -> None:
    assert "framing single_object" in problems_of(lambda: Avro(schema=(V1, V2)))["avro.schema"]
