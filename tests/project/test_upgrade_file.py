"""`frazil check --upgrade` rewrites a document of version 1, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.declaration import InvalidDeclaration, canonical, parse
from frazil.declaration.document import document
from frazil.errors import InvalidInput
from frazil.project.upgrade_file import upgrade

WRITTEN = Path(__file__).parents[1] / "compat" / "0.1.0" / "documents" / "declaration.json"
BY_HAND = """{
    "$schema": "docs/document.schema.json",
    "version": 1,
    "pipelines": [
        {
            "topic": {"name": "Ä", "value_format": "text", "on_error": "skip"},
            "table": {"identifier": "shop.a"}
        }
    ]
}
""".replace("Ä", "a")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "mine.json"
    made.write_text(BY_HAND)
    return made


def test_a_document_of_0_1_0_says_the_same_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "declaration.json"
    file.write_bytes(WRITTEN.read_bytes())
    assert upgrade(file)[0] == ("version 1", "version 2")
    assert parse(file.read_bytes()) == parse(WRITTEN.read_bytes())
    assert file.read_bytes() == canonical(document(parse(WRITTEN.read_bytes()))), "it was canonical, and still is"


def test_only_what_has_moved_is_changed(file: Path) -> None:
    assert [*upgrade(file)] == [("version 1", "version 2"), ("pipelines[0].topic.on_error", "pipelines[0].on_error")]
    assert json.loads(file.read_text()) == {
        "$schema": "docs/document.schema.json",
        "version": 2,
        "pipelines": [
            {
                "topic": {"name": "a", "value_format": "text"},
                "table": {"identifier": "shop.a"},
                "on_error": "skip",
            }
        ],
    }
    assert file.read_text().startswith('{\n    "$schema"'), "it is indented as before"
    assert os.listdir(file.parent) == ["mine.json"]


def test_a_file_of_version_2_is_left_alone(file: Path) -> None:
    upgrade(file)
    before = file.stat().st_mtime_ns, file.stat().st_ino
    assert upgrade(file) == ()
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before


def test_a_link_stays_a_link_and_the_mode_stays(file: Path, tmp_path: Path) -> None:
    file.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    assert upgrade(link)
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert json.loads(file.read_text())["version"] == 2


@pytest.mark.parametrize(
    ("old", "new"), [('"skip"', '"skp"'), ('"version": 1', '"version": 7'), ("shop.a", "Shop"), ("{", "[")]
)
def test_an_invalid_file_is_untouched(file: Path, old: str, new: str) -> None:
    file.write_text(BY_HAND.replace(old, new))
    before = file.read_bytes()
    with pytest.raises(InvalidDeclaration):
        upgrade(file)
    assert file.read_bytes() == before


def test_a_python_file_has_no_version(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("pipelines = []\n")
    with pytest.raises(InvalidInput, match="only a JSON document has a version"):
        upgrade(file)
    with pytest.raises(InvalidInput, match="the file does not exist"):
        upgrade(tmp_path / "none.json")


@pytest.mark.parametrize("name", ["none.json", "none.py", "x" * 5000, f"{'x' * 5000}.json"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="the file does not exist|it cannot be read"):
        upgrade(tmp_path / name)


def test_the_command_prints_what_it_moved(file: Path) -> None:
    ended = CliRunner().invoke(app, ["check", str(file), "--upgrade"])
    assert ended.exit_code == 0, ended.output
    assert "pipelines[0].topic.on_error -> pipelines[0].on_error\n" in ended.stdout
    again = CliRunner().invoke(app, ["check", str(file), "--upgrade"])
    assert (again.exit_code, "already version 2" in again.stdout.replace("\n", " ")) == (0, True)
    as_json = json.loads(CliRunner().invoke(app, ["check", str(file), "--upgrade", "--json"]).stdout)
    assert as_json["upgraded"] == []


def test_the_command_refuses_an_invalid_file_with_its_problems(file: Path) -> None:
    file.write_text(BY_HAND.replace('"skip"', '"skp"'))
    ended = CliRunner().invoke(app, ["check", str(file), "--upgrade"])
    assert ended.exit_code == 2
    assert "mine.json: pipelines[0].topic.on_error: 'skp' is not one of its values" in ended.stderr
    assert json.loads(file.read_text())["version"] == 1


def test_what_was_moved_is_printed_even_if_the_check_then_fails(file: Path) -> None:
    ended = CliRunner().invoke(app, ["check", str(file), "--upgrade", "--env", "nowhere"])
    assert ended.exit_code == 2
    assert "pipelines[0].topic.on_error -> pipelines[0].on_error\n" in ended.stdout
    assert json.loads(file.read_text())["version"] == 2


@pytest.mark.parametrize("schema", ["1.5", '"\\ud800"', "null"])
def test_a_schema_that_is_no_text_is_a_problem(file: Path, schema: str) -> None:
    file.write_text(BY_HAND.replace('"docs/document.schema.json"', schema))
    before = file.read_bytes()
    with pytest.raises(InvalidDeclaration, match="this is no text"):
        upgrade(file)
    assert file.read_bytes() == before


def test_a_file_that_may_not_be_written_is_untouched(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InvalidInput, match="[Pp]ermission denied"):
        upgrade(file)
    assert json.loads(file.read_text())["version"] == 1
    assert os.listdir(file.parent) == ["mine.json"]


def test_a_draft_of_somebody_else_is_neither_used_nor_changed(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("kept")
    (tmp_path / ".mine.json.upgrade").symlink_to(other)
    assert upgrade(file)
    assert other.read_text() == "kept"
    assert not file.is_symlink()
