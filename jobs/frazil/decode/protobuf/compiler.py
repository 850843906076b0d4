"""Protobuf text to descriptors, by protoc in a private folder: text is file content only, and nothing is fetched."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from frazil.errors import UnreadableSchema
from frazil.schema_files.descriptors import described
from frazil.schemas.protobuf import ProtobufSchema

_META = """syntax = "proto3";
package confluent;

import "google/protobuf/descriptor.proto";

message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
}

extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""

_DECIMAL = """syntax = "proto3";
package confluent.type;

message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
"""

CONFLUENT: Mapping[str, str] = {"confluent/meta.proto": _META, "confluent/type/decimal.proto": _DECIMAL}
"""Import name -> text, of what Confluent's clients bring themselves, so that no registry lists it among a schema's references.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/serdes-protobuf.html
"""


TEXT_LIMIT = 4 * 1024 * 1024
"""Characters of a schema and its references together; registries allow 1 MB by default."""

TIMEOUT_SECONDS = 60.0
"""The time that protoc may take; a large schema takes half a second."""

_LONGEST_NAME = 1_000
_LOG_LINE = re.compile(r"WARNING:|[IWEF]\d{4} |.*: warning: ")


def compile_proto(text: str, references: Mapping[str, str] | None = None) -> ProtobufSchema:
    """Compile a .proto file; `references` are the registry's: import name -> text, transitively complete.

    The files of `google/protobuf`, `google/type` and `confluent` that registries take for granted need not be among them.
    Raises `UnreadableSchema` with what protoc says.
    """
    references = references or {}
    if len(text) + sum(map(len, references.values())) > TEXT_LIMIT:
        raise UnreadableSchema(f"the schema is longer than {TEXT_LIMIT} characters")
    name = "subject.proto"
    while name in references:
        name = f"_{name}"
    compiled = FileDescriptorSet.FromString(_protoc(name, {**CONFLUENT, **references, name: text}))
    return described(compiled, name)


def _protoc(name: str, texts: Mapping[str, str]) -> bytes:
    """Return the serialized descriptors of the file `name` and of what it imports, with the source's comments."""
    with tempfile.TemporaryDirectory(prefix="frazil-proto-") as folder:
        sources, output = Path(folder, "sources"), Path(folder, "descriptors")
        sources.mkdir()
        for path, text in texts.items():
            if not path.startswith("google/protobuf/"):  # protoc's own, whatever the registry holds
                _write(sources, path, text)
        include = [sources, files("grpc_tools") / "_proto", _folder_of_google_type()]
        # -P: no module is taken from the working directory.
        command = [sys.executable, "-P", "-m", "grpc_tools.protoc", *(f"--proto_path={place}" for place in include)]
        command += ["--include_imports", "--include_source_info", f"--descriptor_set_out={output}", name]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise UnreadableSchema(f"protoc takes longer than {TIMEOUT_SECONDS:.0f} seconds", where=name) from None
        if done.returncode or not output.exists():
            said = done.stderr.decode(errors="replace").replace(str(sources) + "/", "").splitlines()
            problems = [line.strip() for line in said if line.strip() and not _LOG_LINE.match(line)]
            raise UnreadableSchema("protoc refuses it: " + "; ".join(problems[:5])[:1_000], where=name)
        return output.read_bytes()


def _write(folder: Path, name: str, text: str) -> None:
    parts = PurePosixPath(name).parts
    is_plain = name.isprintable() and "\\" not in name and not name.startswith("/") and len(name) <= _LONGEST_NAME
    if not (is_plain and parts and "/".join(parts) == name and ".." not in parts):
        raise UnreadableSchema(f"{name[:80]!r} cannot be an import's name", where="references")
    try:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    except (OSError, UnicodeError) as problem:
        raise UnreadableSchema(f"the reference {name[:80]!r} cannot be written as a file: {problem}") from problem


def _folder_of_google_type() -> Path:
    """Return the folder with `google/type/*.proto`, of googleapis-common-protos."""
    from google.type import date_pb2

    return Path(str(date_pb2.__file__)).parents[2]
