"""Protobuf text to descriptors, by protoc in a private folder: text is file content only, and nothing is fetched."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path, PurePosixPath

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from frazil.decode.protobuf_imports import CONFLUENT
from frazil.errors import UnreadableSchema
from frazil.schemas.protobuf import FieldKind, Message, MessageField, ProtobufSchema

TEXT_LIMIT = 4 * 1024 * 1024
"""Characters of a schema and its references together; registries allow 1 MB by default."""

TIMEOUT_SECONDS = 60.0
"""What protoc may take; a large schema takes half a second."""

_LONGEST_NAME = 1_000
_LOG_LINE = re.compile(r"WARNING:|[IWEF]\d{4} |.*: warning: ")
_MESSAGES, _NESTED, _FIELDS = 4, 3, 2  # field numbers in descriptor.proto, of which source paths are made
_KINDS = {
    number: FieldKind(name.removeprefix("TYPE_").lower())
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}


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
    return _described(compiled, name)


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


def _described(compiled: FileDescriptorSet, name: str) -> ProtobufSchema:
    pool = DescriptorPool()
    docs: dict[str, str] = {}
    for file in compiled.file:
        docs |= _comments(file)
        file.ClearField("source_code_info")
        pool.AddSerializedFile(file.SerializeToString())
    found = [m for file in compiled.file for m in _all(pool.FindFileByName(file.name).message_types_by_name.values())]
    enums = {f.enum_type.full_name: f.enum_type for m in found for f in m.fields if f.enum_type is not None}
    own = next(file for file in compiled.file if file.name == name)
    return ProtobufSchema(
        messages={m.full_name: _message(m, docs) for m in found},
        enums={full: _names((v.number, v.name) for v in enum.values) for full, enum in enums.items()},
        indexes=dict(_indexes(own.message_type, own.package, ())),
        descriptors=compiled.SerializeToString(deterministic=True),
    )


def _all(messages: Iterator[Descriptor]) -> Iterator[Descriptor]:
    for message in messages:
        yield message
        yield from _all(message.nested_types)


def _message(message: Descriptor, docs: Mapping[str, str]) -> Message:
    fields = tuple(_field(field, docs) for field in message.fields)
    return Message(message.full_name, fields, is_map_entry=message.GetOptions().map_entry)


def _field(field: FieldDescriptor, docs: Mapping[str, str]) -> MessageField:
    of = field.message_type or field.enum_type
    oneof = field.containing_oneof
    return MessageField(
        name=field.name,
        number=field.number,
        kind=_KINDS[field.type],
        type_name=of.full_name if of is not None else "",
        repeated=field.is_repeated,
        has_presence=field.has_presence,
        doc=docs.get(field.full_name, ""),
        oneof=oneof.name
        if oneof is not None and len(oneof.fields) > 1
        else "",  # `optional` makes a oneof of one field
    )


def _names(values: Iterator[tuple[int, str]]) -> dict[int, str]:
    names: dict[int, str] = {}
    for number, name in values:
        names.setdefault(number, name)
    return names


def _indexes(
    messages: Iterator[DescriptorProto], scope: str, path: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the message index of each message, nested ones included; a map's entry is counted, and left out."""
    for i, message in enumerate(messages):
        full = f"{scope}.{message.name}" if scope else message.name
        if not message.options.map_entry:
            yield (*path, i), full
            yield from _indexes(message.nested_type, full, (*path, i))


def _comments(file: FileDescriptorProto) -> dict[str, str]:
    """Return full field name -> the comment before it, or behind it."""
    said = {
        tuple(location.path): " ".join((location.leading_comments or location.trailing_comments).split())
        for location in file.source_code_info.location
        if location.leading_comments or location.trailing_comments
    }
    docs: dict[str, str] = {}

    def walk(message: DescriptorProto, scope: str, path: tuple[int, ...]) -> None:
        full = f"{scope}.{message.name}" if scope else message.name
        for i, field in enumerate(message.field):
            if (*path, _FIELDS, i) in said:
                docs[f"{full}.{field.name}"] = said[(*path, _FIELDS, i)]
        for i, nested in enumerate(message.nested_type):
            walk(nested, full, (*path, _NESTED, i))

    for i, message in enumerate(file.message_type):
        walk(message, file.package, (_MESSAGES, i))
    return docs
