"""A schema file beside a declaration. A document holds the file's content, so that a job needs no file."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from frazil.declaration.checks.constraints import NOT_EMPTY, Rule, matching, shown
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import InvalidDeclaration, Refusal
from frazil.declaration.documents.from_json import parsed
from frazil.declaration.options import ValueFormat

LARGEST = 1024 * 1024
"""Bytes of a file. Registries refuse larger schemas too, unless a setting raises their limit."""
_FORMATS = {
    ".avsc": ValueFormat.AVRO,
    ".json": ValueFormat.JSON_SCHEMA,
    **dict.fromkeys((".desc", ".binpb", ".pb"), ValueFormat.PROTOBUF),
}
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
    def format(self) -> ValueFormat:
        """The format that the file describes."""
        return _FORMATS[Path(self.file).suffix.lower()]

    @property
    def data(self) -> bytes:
        """The content as bytes; none of a descriptor set that is not in base64."""
        if self.format is not ValueFormat.PROTOBUF:
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
        if _FORMATS[file.suffix.lower()] is ValueFormat.PROTOBUF:
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
