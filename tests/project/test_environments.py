"""Environments are found by name or by file; when they are not, one line says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration
from frazil.errors import FrazilError, InvalidInput
from frazil.project.environments import environment, known

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "name": "mine",
    "kafka": {"bootstrap": "127.0.0.1:9092"},
    "catalog": {"type": "local", "path": "/lake/catalog.db", "warehouse": "/lake"},
}


def written(file: Path, document: dict[str, Any] = DOCUMENT) -> Path:
    file.write_text(json.dumps(document))
    return file


def test_a_name_is_a_document_of_the_folder(tmp_path: Path) -> None:
    written(tmp_path / "mine.json")
    assert environment("mine", tmp_path).kafka.bootstrap == "127.0.0.1:9092"
    assert known(tmp_path) == ("mine",)


@pytest.mark.parametrize("name", ["other.json", "folder/other"])
def test_what_looks_like_a_file_is_one(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    written(tmp_path / name)
    assert environment(name).name == "mine"


def test_a_missing_local_environment_says_how_to_have_one(tmp_path: Path) -> None:
    with pytest.raises(FrazilError, match="environment local: it does not exist. `frazil local up`"):
        environment("local", tmp_path)


def test_a_missing_environment_names_those_there_are(tmp_path: Path) -> None:
    written(tmp_path / "mine.json")
    with pytest.raises(FrazilError, match="environment prod: it does not exist.*existing: mine"):
        environment("prod", tmp_path)


def test_problems_of_a_document_have_their_place(tmp_path: Path) -> None:
    file = written(tmp_path / "mine.json", {**DOCUMENT, "kafka": {"bootstrap": "nowhere"}, "more": 1})
    with pytest.raises(InvalidDeclaration) as raised:
        environment("mine", tmp_path)
    assert {p.path for p in raised.value.problems} == {f"{file}: kafka.bootstrap", f"{file}: more"}


def test_a_file_that_names_another_environment_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "dev.json")
    with pytest.raises(InvalidInput, match="environment dev: its file names the environment mine"):
        environment("dev", tmp_path)
    assert environment(str(file)).name == "mine"
