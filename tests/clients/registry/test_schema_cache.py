from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from frazil.clients.registry.schema_cache import SchemaCache
from frazil.clients.registry.schemas import Reference, RegisteredSchema, SchemaType

SCHEMA = RegisteredSchema(id=7, type=SchemaType.JSON, text='{"a": "ü"}', references=(Reference("n", "s", 1),))


@pytest.fixture
def files(tmp_path: Path) -> SchemaCache:
    return SchemaCache(tmp_path, "http://registry")


def the_file(folder: Path) -> Path:
    (found,) = folder.rglob("*.json")
    return found


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"null", b"\xff", b"{}", b"[" * 200_000])
def test_a_damaged_file_counts_as_none_and_is_written_anew(files: SchemaCache, tmp_path: Path, damage: bytes) -> None:
    files.write(SCHEMA)
    the_file(tmp_path).write_bytes(damage)
    assert files.read(7) is None
    files.write(SCHEMA)
    assert files.read(7) == SCHEMA


@pytest.mark.parametrize(
    "change", [{"schema": "x"}, {"fingerprint": "0"}, {"schemaType": "AVRO"}, {"schemaType": "XML"}]
)
def test_a_file_whose_fingerprint_does_not_fit_counts_as_none(
    files: SchemaCache, tmp_path: Path, change: dict[str, Any]
) -> None:
    files.write(SCHEMA)
    file = the_file(tmp_path)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    assert files.read(7) is None


def test_writers_at_once_leave_one_whole_file(files: SchemaCache, tmp_path: Path) -> None:
    threads = [threading.Thread(target=files.write, args=(SCHEMA,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.read(7) == SCHEMA
    assert [file.name for file in the_file(tmp_path).parent.iterdir()] == ["7.json"]


def test_a_folder_that_cannot_be_made_costs_nothing_but_speed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    files = SchemaCache(tmp_path / "file" / "folder", "http://registry")
    files.write(SCHEMA)
    assert files.read(7) is None


def test_a_file_that_cannot_be_moved_into_place_leaves_nothing(files: SchemaCache, tmp_path: Path) -> None:
    files.write(SCHEMA)
    file = the_file(tmp_path)
    file.unlink()
    file.mkdir()
    files.write(SCHEMA)
    assert [one.name for one in file.parent.iterdir()] == ["7.json"]
