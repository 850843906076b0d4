"""The wire frame, by the cases that the data path shares, and by what Confluent's own client writes and reads."""

from __future__ import annotations

import ast
import io
import json
import struct
import uuid
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.schemas.wire_format import VALUE_HEADER, Frame, FrameProblem, guid_header, parse, prefixed

CASES = json.loads((Path(__file__).parent / "frames.json").read_text())


def confluents_schema_id() -> Any:
    """Confluent's own class, alone: its package cannot be imported without an OAuth library."""
    source = Path(confluent_kafka.__file__).parent / "schema_registry" / "common" / "serde.py"
    found = next(node for node in ast.parse(source.read_text()).body if getattr(node, "name", "") == "SchemaId")
    names: dict[str, Any] = {"io": io, "struct": struct, "uuid": uuid, "_MAGIC_BYTE_V0": 0, "_MAGIC_BYTE_V1": 1}
    header = "from __future__ import annotations\nSerializationError = ValueError\n"
    exec(header + ast.unparse(found), names)
    return names["SchemaId"]


SchemaId = confluents_schema_id()

paths = st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5)


def raw(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_bytes_are_a_frame_or_have_a_reason_not_to_be(case: dict[str, Any]) -> None:
    headers = [(name, raw(value)) for name, value in case.get("headers", [])]
    found = parse(raw(case["value"]), headers, protobuf=case.get("protobuf", False), key=case.get("key", False))
    if "problem" in case:
        assert found is FrameProblem(case["problem"])
    else:
        wanted = case["frame"]
        assert found == Frame(
            schema_id=wanted.get("schema_id"),
            guid=wanted.get("guid"),
            message_index=tuple(wanted.get("message_index", ())),
            body=bytes.fromhex(wanted["body"]),
        )


def test_every_problem_has_a_case() -> None:
    assert {case["problem"] for case in CASES if "problem" in case} == {problem.value for problem in FrameProblem}


@given(st.binary(max_size=40), st.none() | st.binary(max_size=40), st.booleans())
def test_no_bytes_raise(value: bytes, header: bytes | None, protobuf: bool) -> None:
    parse(value, [(VALUE_HEADER, header)], protobuf=protobuf)


@given(st.integers(0, 2**32 - 1), st.binary(max_size=20), st.none() | paths)
def test_what_is_framed_by_an_id_is_read_back(schema_id: int, body: bytes, path: list[int] | None) -> None:
    found = parse(prefixed(schema_id, body, path), protobuf=path is not None)
    assert found == Frame(schema_id=schema_id, body=body, message_index=tuple(path or ()))


@given(st.integers(0, 2**31 - 1), st.uuids(), st.none() | paths)
def test_frames_are_the_bytes_that_confluents_client_writes(schema_id: int, guid: Any, path: list[int] | None) -> None:
    theirs = SchemaId("AVRO" if path is None else "PROTOBUF", schema_id, str(guid), path)
    assert prefixed(schema_id, b"", path) == theirs.id_to_bytes()
    assert guid_header(str(guid), path) == theirs.guid_to_bytes()


@given(st.binary(max_size=12).map(lambda rest: b"\0" + rest), st.booleans())
def test_what_we_accept_confluents_client_reads_the_same(value: bytes, protobuf: bool) -> None:
    found = parse(value, protobuf=protobuf)
    if isinstance(found, Frame):
        theirs = SchemaId("PROTOBUF" if protobuf else "AVRO")
        rest = theirs.from_bytes(io.BytesIO(value))
        assert (theirs.id, tuple(theirs.message_indexes or ()), rest.read()) == (
            found.schema_id,
            found.message_index,
            found.body,
        )
