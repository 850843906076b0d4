"""Formats of values and keys, and the schema files that they name. A document holds the content of a file."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, ClassVar

from frazil.declaration.checks.column_notation import column, column_problems, if_valid
from frazil.declaration.checks.constraints import ALONE, NOT_EMPTY, Rule, matching, notation, shown
from frazil.declaration.checks.declared import Chosen, declared, default
from frazil.declaration.checks.problems import InvalidDeclaration, Problem, Refusal
from frazil.declaration.documents.from_json import parsed
from frazil.declaration.options import Framing, SubjectStrategy, UnknownFields

LARGEST = 1024 * 1024
"""Bytes of a file. Registries refuse larger schemas too, unless a setting raises their limit."""
_FORMATS = {".avsc": "avro", ".json": "json_schema", **dict.fromkeys((".desc", ".binpb", ".pb"), "protobuf")}
_ENDINGS = (
    "Name a file that ends in .avsc (Avro), .json (JSON Schema), or .desc, .binpb or .pb (a Protobuf descriptor set)"
)
_COMPILE = (
    "Compile it: protoc --include_imports --include_source_info --descriptor_set_out={stem}.desc {name}, and name "
    "{stem}.desc"
)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\s+')
_NOT_IN_DOCUMENTS = re.compile(r"\$(?=\{)|T(?=fToken\[)|\x7f")
_OWN = ("frazil.declaration", "dataclasses")


def _ending_refusal(name: str) -> Refusal | None:
    suffix = Path(name).suffix.lower()
    if suffix in _FORMATS:
        return None
    do = _COMPILE.format(stem=Path(name).stem, name=Path(name).name) if suffix == ".proto" else _ENDINGS
    return Refusal(f"{shown(Path(name).name)} is not a schema file that is read", do)


@declared
class SchemaFile:
    """A schema file as a document holds it. A declaration names the file by its path, and never writes this object."""

    file: Annotated[
        str,
        "The file's name, for messages. Its ending says the format.",
        matching(r"[^/\\]{1,255}", "the name of a file without its folder", "Write the name alone"),
        Rule(_ending_refusal),
    ]
    content: Annotated[
        str, "The JSON text of an Avro schema or a JSON Schema; a Protobuf descriptor set in base64.", NOT_EMPTY
    ]

    def __str__(self) -> str:
        """The file's name, and a short hash of its content."""
        return f"{self.file} (sha256 {hashlib.sha256(self.content.encode()).hexdigest()[:8]})"

    @property
    def format(self) -> str:
        """The `kind` of the format that the file describes."""
        return _FORMATS[Path(self.file).suffix.lower()]

    @property
    def data(self) -> bytes:
        """The content as bytes; none of a descriptor set that is not in base64."""
        if self.format != Protobuf.kind:
            return self.content.encode()
        try:
            return base64.b64decode(self.content, validate=True)
        except (binascii.Error, ValueError):
            return b""

    @classmethod
    def read(cls, path: str) -> SchemaFile | Refusal:
        """Return the file at a path from the folder of the Python file that declares it, or why it is refused."""
        if refusal := _ending_refusal(path):
            return refusal
        file = _folder() / path
        try:
            size = file.stat().st_size if file.is_file() else None
            if size is None:
                here = "the path begins at the folder of the file that declares it"
                return Refusal(f"the schema file {file} does not exist", f"Correct the path, or write the file: {here}")
            if size > LARGEST:
                what = f"the schema file {file} has {size:,} bytes, and at most {LARGEST:,} are read"
                return Refusal(what, "Leave out what the topic's records do not need")
            source = file.read_bytes()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            return Refusal(f"the schema file {shown(str(file))} cannot be read ({why})", "Let your user read it")
        if not source:
            return Refusal(f"the schema file {file} is empty", "Write the schema into it")
        if _FORMATS[file.suffix.lower()] == Protobuf.kind:
            content = base64.b64encode(source).decode()
        else:
            try:
                content = _canonical(source, str(file))
                json.dumps(json.loads(content), ensure_ascii=False).encode()
            except InvalidDeclaration as invalid:
                return Refusal(f"the schema file {file}: {invalid.problems[0].what}", invalid.problems[0].do)
            except UnicodeEncodeError:
                return Refusal(
                    f"the schema file {file} has half a surrogate pair", "Write the character itself, in UTF-8"
                )
        try:
            return cls(file=file.name, content=content)
        except InvalidDeclaration as invalid:
            return Refusal(f"the schema file {shown(file.name)}: {invalid.problems[0].what}", invalid.problems[0].do)


def _canonical(source: bytes, name: str) -> str:
    """Return JSON text on one line. Names keep their order, which is that of columns, and numbers their digits."""
    source = source.removeprefix(b"\xef\xbb\xbf")
    parsed(source, name)
    dense = _TOKEN.sub(lambda token: token[0] if token[0].startswith('"') else "", source.decode())
    # What documents refuse is written as JSON's escape of the same character.
    return _NOT_IN_DOCUMENTS.sub(lambda found: f"\\u{ord(found[0]):04x}", dense)


def _folder() -> Path:
    """Return the folder of the Python file that calls a constructor of a declaration."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith(_OWN):
            return Path(frame.f_code.co_filename).parent
        frame = frame.f_back
    return Path()


if TYPE_CHECKING:

    class SchemaFiles:
        """A field that holds schema files and is given their paths: one alone, or a tuple. Type checkers see a descriptor."""

        def __get__(self, instance: object, owner: object) -> tuple[SchemaFile, ...] | None: ...
        def __set__(self, instance: object, value: str | tuple[str | SchemaFile, ...] | None) -> None: ...

else:
    SchemaFiles = tuple[SchemaFile, ...] | None


_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_Schema = Annotated[
    SchemaFiles,
    "The schema, if no registry has it: the path of an Avro, JSON Schema or Protobuf descriptor file. Avro may have several, see "
    "framing.",
    ALONE,
]
_Strategy = Annotated[Chosen[SubjectStrategy], "Of values: the naming strategy of the producers' subjects."]
_RecordName = Annotated[
    str | None,
    "With the strategies record and topic_record: the full name of the records to land. Records with other names are rejected. "
    "Default: all records land, their types are merged, and a version is unknown until a record has it.",
    NOT_EMPTY,
]
_Unknown = Annotated[
    Chosen[UnknownFields | None],
    "Of values, with declared columns or a declared schema: keep the fields of a record that are no column, as JSON text in the "
    "column _unknown. Default: they are omitted.",
]


class FormatOptions:
    """The options of all formats, and what follows from them. An option that a format does not have is as if it were not given."""

    __slots__ = ()
    kind: ClassVar[str]
    has_schema: ClassVar[bool] = False
    """Whether a schema describes the format: the registry's, or a declared one."""

    columns: tuple[str, ...] | None = None
    schema: SchemaFiles = default(None)
    framing: Chosen[Framing | None] = default(None)
    subject_strategy: Chosen[SubjectStrategy] = default(SubjectStrategy.TOPIC)
    record_name: str | None = None
    unknown_fields: Chosen[UnknownFields | None] = default(None)

    @property
    def needs_registry(self) -> bool:
        """True if a registry describes the format."""
        return self.has_schema and self.schema is None

    @property
    def has_schemas_inside(self) -> bool:
        """True if the schema is in each record, and not declared."""
        return self.kind == ConnectJson.kind and self.columns is None

    @property
    def has_columns(self) -> bool:
        """True if there are columns without a registry: declared ones, or those that the schema in each record says."""
        return self.columns is not None or self.has_schemas_inside

    @property
    def keeps_unknown(self) -> bool:
        """True if the fields that are no column are kept."""
        return self.unknown_fields is UnknownFields.KEEP


@declared
class Avro(FormatOptions):
    """Avro, framed as Confluent's serialisers do it and described by the registry; or without a registry, by declared schemas."""

    kind: ClassVar[str] = "avro"
    has_schema: ClassVar[bool] = True

    schema: _Schema = default(None)
    framing: Annotated[
        Chosen[Framing | None],
        "With a schema: how a record names the one that wrote it. Default: not at all, it is the body alone.",
    ] = default(None)
    subject_strategy: _Strategy = default(SubjectStrategy.TOPIC)
    record_name: _RecordName = None

    def _contradictions(self) -> Iterator[Problem]:
        yield from _schema_problems(self)
        if self.schema is None:
            if self.framing is not None:
                do = "Declare schema, the Avro schemas that have the fingerprints, or remove it"
                yield Problem("framing", "a registry's frame is the only one without a declared schema", do)
        elif self.record_name is not None:
            yield Problem("record_name", "an Avro schema describes one kind of records", "Remove it")
        elif len(self.schema) > 1 and self.framing is None:
            what = "nothing in a plain record says which of several schemas wrote it"
            do = "Name the one that the producers use, or choose framing single_object if they write fingerprints"
            yield Problem("schema", what, do)
        yield from _name_problems(self.record_name)


@declared
class JsonSchema(FormatOptions):
    """JSON that a JSON Schema describes, of the registry or declared."""

    kind: ClassVar[str] = "json_schema"
    has_schema: ClassVar[bool] = True

    schema: _Schema = default(None)
    unknown_fields: _Unknown = default(None)
    subject_strategy: _Strategy = default(SubjectStrategy.TOPIC)
    record_name: _RecordName = None  # the schema's title, which may be any text

    def _contradictions(self) -> Iterator[Problem]:
        yield from _schema_problems(self)
        if self.schema is not None and self.record_name is not None:
            yield Problem("record_name", "a JSON Schema describes one kind of records", "Remove it")
        if self.unknown_fields is not None and not self.schema:
            what = "only a declared schema has unknown fields that can be kept"
            yield Problem("unknown_fields", what, "Remove it, or declare schema")


@declared
class Protobuf(FormatOptions):
    """Protobuf, framed as Confluent's serialisers do it and described by the registry; or by a declared descriptor set."""

    kind: ClassVar[str] = "protobuf"
    has_schema: ClassVar[bool] = True

    schema: _Schema = default(None)
    subject_strategy: _Strategy = default(SubjectStrategy.TOPIC)
    record_name: Annotated[
        str | None,
        "The message's full name. Records of other messages are rejected. Default, if a registry has the schema: any message, and "
        "the first one of the file is expected.",
        NOT_EMPTY,
    ] = None

    def _contradictions(self) -> Iterator[Problem]:
        yield from _schema_problems(self)
        if self.schema and self.record_name is None:
            what = "a descriptor set has several messages, and nothing in a record names its own"
            yield Problem("record_name", what, "Write the message's full name, like shop.Order")
        yield from _name_problems(self.record_name)


@declared
class Json(FormatOptions):
    """JSON without a schema: its declared columns, or else its validated text."""

    kind: ClassVar[str] = "json"

    columns: Annotated[
        tuple[Annotated[str, notation(column)], ...] | None,
        "The columns, each a name and a type, like id long, or id long required. Default: one column with the JSON text.",
    ] = None
    unknown_fields: _Unknown = default(None)

    def _contradictions(self) -> Iterator[Problem]:
        yield from column_problems("columns", self.columns)
        if self.unknown_fields is not None and not self.columns:
            what = "only JSON with declared columns has unknown fields that can be kept"
            yield Problem("unknown_fields", what, "Remove it, or declare columns")
        for index, found in enumerate(map(if_valid, self.columns or ())):
            if self.unknown_fields is not None and found is not None and found.name.lower() == "_unknown":
                yield Problem(f"columns[{index}]", "_unknown is the column of unknown fields", "Remove it")


@declared
class ConnectJson(FormatOptions):
    """JSON of Kafka Connect's JsonConverter with schemas.enable: its columns are by the schema in each record, or declared."""

    kind: ClassVar[str] = "connect_json"

    columns: Annotated[
        tuple[Annotated[str, notation(column)], ...] | None,
        "The columns, each a name and a type. Default: those of the schema in each record.",
    ] = None

    def _contradictions(self) -> Iterator[Problem]:
        yield from column_problems("columns", self.columns)


@declared
class Text(FormatOptions):
    """UTF-8 text, in one column."""

    kind: ClassVar[str] = "text"


@declared
class Bytes(FormatOptions):
    """Any bytes, in one column."""

    kind: ClassVar[str] = "bytes"


Format = Avro | JsonSchema | Protobuf | Json | ConnectJson | Text | Bytes
"""The union of the formats, of values and of keys."""


def _schema_problems(of: Avro | JsonSchema | Protobuf) -> Iterator[Problem]:
    if of.schema is None:
        return
    if not of.schema:
        yield Problem("schema", "no schema is declared", "Name a file, or leave the field out")
    if len(of.schema) > 1 and not isinstance(of, Avro):
        what = f"a record of format {of.kind} names its fields itself, so one schema is enough"
        yield Problem("schema", what, "Name the newest one, which may have the fields of all")
    for index, file in enumerate(of.schema):
        path = f"schema[{index}]"
        if file.format != of.kind:
            what = f"{file.file} is of format {file.format}, and the format is {of.kind}"
            yield Problem(path, what, f"Choose format {file.format}, or name another file")
        elif file in of.schema[:index]:
            yield Problem(path, f"{file.file} is declared twice", "Remove one of the two")
        elif not file.data:
            what = f"the content of {file.file} is not in base64"
            yield Problem(f"{path}.content", what, "Write the document with frazil check --write")
    if of.subject_strategy is not SubjectStrategy.TOPIC:
        yield Problem("subject_strategy", "with a declared schema no subject is looked up", "Remove it, or schema")


def _name_problems(record_name: str | None) -> Iterator[Problem]:
    if record_name is not None and not _FULL_NAME.fullmatch(record_name):
        yield Problem("record_name", "this is not a record's full name", "Write it like com.example.Order")
