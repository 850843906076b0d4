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


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the documents of an empty project."""
    monkeypatch.chdir(tmp_path)
    made = Path(".frazil", "environments")
    made.mkdir(parents=True)
    return made


def test_a_name_is_a_document_of_the_folder(documents: Path) -> None:
    written(documents / "mine.json")
    assert environment("mine").kafka.bootstrap == "127.0.0.1:9092"
    assert known() == ("mine",)


@pytest.mark.parametrize("name", ["other.json", "folder/other"])
def test_what_looks_like_a_file_is_one(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    written(tmp_path / name)
    assert environment(name).name == "mine"


def test_a_missing_local_environment_says_how_to_have_one(documents: Path) -> None:
    with pytest.raises(FrazilError, match="environment local: it does not exist. `frazil local up`"):
        environment("local")


def test_a_missing_environment_names_those_there_are(documents: Path) -> None:
    written(documents / "mine.json")
    with pytest.raises(FrazilError, match="environment prod: it does not exist.*existing: mine"):
        environment("prod")


def test_problems_of_a_document_have_their_place(documents: Path) -> None:
    file = written(documents / "mine.json", {**DOCUMENT, "kafka": {"bootstrap": "nowhere"}, "more": 1})
    with pytest.raises(InvalidDeclaration) as raised:
        environment("mine")
    assert {p.path for p in raised.value.problems} == {f"{file}: kafka.bootstrap", f"{file}: more"}


def test_a_file_that_names_another_environment_is_refused(documents: Path) -> None:
    file = written(documents / "dev.json")
    with pytest.raises(InvalidInput, match="environment dev: its file names the environment mine"):
        environment("dev")
    assert environment(str(file)).name == "mine"
