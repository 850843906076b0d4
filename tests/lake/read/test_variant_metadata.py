"""PyIceberg reads the metadata of a table with variants: by another type in their place, which is nothing else's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.serializers import FromInputFile

from frazil.lake.read.variant_metadata import VariantFileIO, _readable_answer, restored

FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "variant", "required": False, "type": "string", "doc": "variant"},
    {"id": 2, "name": "v", "required": False, "type": "variant"},
    {"id": 3, "name": "s", "required": False, "type": {"type": "struct", "fields": [
        {"id": 4, "name": "v", "required": False, "type": "variant"}
    ]}},
    {"id": 5, "name": "l", "required": False, "type": {
        "type": "list", "element-id": 6, "element": "variant", "element-required": False
    }},
    {"id": 7, "name": "m", "required": False, "type": {
        "type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "variant", "value-required": False
    }},
]  # fmt: skip
METADATA: dict[str, Any] = {
    "format-version": 3,
    "table-uuid": "5898be00-f158-42de-bfce-fb951ab49a10",
    "location": "file:///t",
    "last-sequence-number": 0,
    "last-updated-ms": 0,
    "last-column-id": 9,
    "next-row-id": 0,
    "current-schema-id": 0,
    "schemas": [{"type": "struct", "schema-id": 0, "fields": FIELDS}],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "last-partition-id": 999,
    "default-sort-order-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "properties": {"type": "variant"},
}


@pytest.mark.parametrize("name", ["v1.metadata.json", "v1.gz.metadata.json"])
def test_metadata_files_are_read_with_all_but_the_variants(tmp_path: Path, name: str) -> None:
    text = json.dumps(METADATA).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if ".gz." in name else text)
    with pytest.raises(Exception, match="variant"):
        FromInputFile.table_metadata(PyArrowFileIO().new_input(str(tmp_path / name)))
    found = FromInputFile.table_metadata(VariantFileIO().new_input(str(tmp_path / name)))
    assert found.properties == {"type": "variant"}
    schema = restored(json.loads(found.schema().model_dump_json()))
    assert schema["fields"] == [{"doc": field.get("doc"), **field} if "doc" in field else field for field in FIELDS]


def test_answers_of_a_rest_catalog_are_read_and_others_are_left() -> None:
    def answer(content: Any) -> Any:
        text = json.dumps(content).encode()
        response = SimpleNamespace(ok=True, content=text, json=lambda: content, _content=text)
        return json.loads(_readable_answer(response)._content)  # type: ignore[arg-type]

    made = answer({"metadata-location": "x", "metadata": METADATA})
    assert made["metadata"]["schemas"][0]["fields"][1]["type"] != "variant"
    assert (made["metadata-location"], made["metadata"]["properties"]) == ("x", {"type": "variant"})
    assert answer({"variant": "variant"}) == {"variant": "variant"}
    assert answer(["variant"]) == ["variant"]
