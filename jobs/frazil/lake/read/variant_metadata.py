"""Metadata of tables that have variants, for PyIceberg, which refuses a table with a type that it does not know.

It is given another type in the place of variants, so that it reads snapshots, manifests and the other columns. It cannot read
a variant: that fails, and returns no other value.
"""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import InputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from requests import Response, Session

_VARIANT, _IN_ITS_PLACE = "variant", "fixed[0]"
"""PyIceberg reads `fixed[0]`, and no table can have it: a length is at least 1."""
_TYPES = ("type", "element", "key", "value")
_GZIP = b"\x1f\x8b"


def restored(schema: Any) -> Any:
    """Return a schema's JSON, as PyIceberg has it, with the variants of the table."""
    return _replaced(schema, _IN_ITS_PLACE, _VARIANT)


class VariantFileIO(PyArrowFileIO):
    """PyIceberg's access to files, with metadata files that it can read."""

    def new_input(self, location: str) -> PyArrowFile:
        """Return the file at a location."""
        if not location.endswith(".metadata.json"):
            return super().new_input(location)
        scheme, netloc, path = self.parse_location(location, self.properties)
        return _MetadataFile(location, path, self.fs_by_scheme(scheme, netloc))


class VariantRestCatalog(RestCatalog):
    """PyIceberg's REST catalog, with answers that it can read."""

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.hooks["response"].append(_readable_answer)
        return session


class _MetadataFile(PyArrowFile):
    def open(self, seekable: bool = True) -> InputStream:
        with super().open(seekable) as stream:
            found = stream.read()
        return io.BytesIO(_readable_file(found))


def _readable_file(found: bytes) -> bytes:
    is_compressed = found.startswith(_GZIP)
    text = gzip.decompress(found) if is_compressed else found
    if not _may_have(text):
        return found
    made = json.dumps(_readable(json.loads(text))).encode()
    return gzip.compress(made, compresslevel=1) if is_compressed else made


def _readable_answer(response: Response, *_: Any, **__: Any) -> Response:
    if response.ok and _may_have(response.content):
        answer = response.json()
        if isinstance(answer, dict) and "metadata" in answer:
            response._content = json.dumps({**answer, "metadata": _readable(answer["metadata"])}).encode()
    return response


def _may_have(text: bytes) -> bool:
    return b'"variant"' in text


def _readable(metadata: Any) -> Any:
    schemas = [_replaced(schema, _VARIANT, _IN_ITS_PLACE) for schema in metadata.get("schemas", ())]
    return {**metadata, "schemas": schemas}


def _replaced(schema: Any, old: str, new: str) -> Any:
    """Return a type's JSON in which one primitive type is another; names and comments stay."""
    if not isinstance(schema, dict):
        return new if schema == old else schema
    made = {name: _replaced(schema[name], old, new) if name in _TYPES else schema[name] for name in schema}
    if "fields" in schema:
        made["fields"] = [_replaced(field, old, new) for field in schema["fields"]]
    return made
