"""Schema files as a document holds them, and the bodies of Avro records without a registry."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import fastavro.schema

from frazil.declaration import SchemaFile
from tests.support.proto import compiled
from tests.support.shop import avro


def avsc(schema: Any, name: str = "orders.avsc") -> SchemaFile:
    """Return an Avro schema's file."""
    return SchemaFile(file=name, content=json.dumps(schema))


def json_file(schema: Any, name: str = "orders.json") -> SchemaFile:
    """Return a JSON Schema's file."""
    return SchemaFile(file=name, content=json.dumps(schema))


def descriptors(text: str, name: str = "orders.desc") -> SchemaFile:
    """Return the descriptor set of a .proto file."""
    return SchemaFile(file=name, content=base64.b64encode(compiled(text).descriptors).decode())


def single_object(schema: Mapping[str, Any], value: Any) -> bytes:
    """Return a record in single-object encoding, its fingerprint by the official library."""
    form = fastavro.schema.to_parsing_canonical_form(dict(schema))
    return b"\xc3\x01" + bytes.fromhex(fastavro.schema.fingerprint(form, "CRC-64-AVRO")) + avro(schema, value)
