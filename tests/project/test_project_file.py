"""The project file is found from any folder of the project, and its problems have their place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration, LocalCatalog, Secret
from frazil.errors import InvalidInput
from frazil.project import environments
from frazil.project.project_file import (
    Project,
    parse_project,
    project_file,
    project_folder,
    state_folder,
    stated_environments,
    stated_pipelines,
)

FILE = """
pipelines = "pipelines.py"
environment = "dev"

[environments.dev]
kafka.bootstrap = "127.0.0.1:9092"
catalog = { type = "local", path = "./lake/catalog.db", warehouse = "./lake" }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "frazil.toml").write_text(FILE)
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_a_file_the_working_folder_is_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (project_folder(), state_folder(), project_file()) == (Path(), Path(".frazil"), None)
    assert (stated_pipelines(), stated_environments()) == (None, ())


def test_it_is_found_from_a_folder_below(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "a" / "b")
    found = project_file()
    assert found is not None
    assert (found.pipelines, state_folder()) == (Path("../../pipelines.py"), Path("../../.frazil"))
    catalog = found.content.environments["dev"].catalog
    assert catalog.warehouse == str(folder / "lake")


def test_the_nearest_one_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a" / "frazil.toml").write_text("")
    monkeypatch.chdir(folder / "a" / "b")
    assert project_folder() == Path("..")


def test_a_deleted_working_folder_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert project_folder() == Path()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"pipelines = ", "this is not TOML: Invalid value"),
        (b"pipelines = '\xff'", "byte 13 is not UTF-8"),
        (b"a = 1" + b"0" * 5000, "this is not TOML"),
        (b"a = " + b"[" * 100_000, "the TOML is nested too deep"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(folder: Path, content: bytes, what: str) -> None:
    (folder / "frazil.toml").write_bytes(content)
    with pytest.raises(InvalidDeclaration, match=f"frazil.toml: {what}"):
        project_file()
    assert (stated_pipelines(), stated_environments()) == (None, ())


def test_problems_name_the_file_and_names_complete_nevertheless(folder: Path) -> None:
    with (folder / "frazil.toml").open("a") as file:
        file.write("nothing = 1\n")
    with pytest.raises(InvalidDeclaration, match=r"^frazil\.toml: environments\.dev\.nothing: "):
        project_file()
    assert (stated_pipelines(), stated_environments()) == (Path("pipelines.py"), ("dev",))


def test_an_environment_is_in_one_place(folder: Path) -> None:
    assert environments.environment("dev").name == "dev"
    assert environments.known() == ("dev",)
    documents = folder / ".frazil" / "environments"
    documents.mkdir(parents=True)
    (documents / "dev.json").write_text("{}")
    with pytest.raises(
        InvalidInput, match=r"frazil\.toml: environments\.dev: \.frazil/environments/dev\.json has the same"
    ):
        environments.environment("dev")
    (documents / "local.json").write_text("{}")
    assert environments.known() == ("dev", "local")


def test_a_missing_environment_names_both_places(folder: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"\[environments\.prod\] into frazil\.toml, or \.frazil/environments/prod\.json"
    ):
        environments.environment("prod")


def test_a_byte_order_mark_is_ignored(folder: Path) -> None:
    (folder / "frazil.toml").write_bytes(b"\xef\xbb\xbf" + FILE.encode())
    found = project_file()
    assert found is not None
    assert found.pipelines == Path("pipelines.py")


def test_a_pipe_of_that_name_is_no_project_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("frazil.toml")
    assert (project_file(), stated_pipelines(), stated_environments()) == (None, None, ())


LOCAL: dict[str, Any] = {
    "kafka": {"bootstrap": "127.0.0.1:9092"},
    "catalog": {"type": "local", "path": "/lake/catalog.db", "warehouse": "/lake"},
}


def parsed(document: dict[str, Any]) -> Project:
    return parse_project(document, lambda path: f"/project/{path.removeprefix('./')}")


def problems(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidDeclaration) as raised:
        parsed(document)
    return {problem.path: f"{problem.what}. {problem.do}" for problem in raised.value.problems}


def test_an_environment_has_the_name_of_its_table() -> None:
    project = parsed({"pipelines": "pipelines.py", "environment": "dev", "environments": {"dev": LOCAL}})
    assert (project.pipelines, project.environment) == ("pipelines.py", "dev")
    assert project.environments["dev"].name == "dev"


def test_an_empty_file_is_a_project() -> None:
    assert parsed({}) == Project()


def test_all_problems_are_found_at_once() -> None:
    found = problems(
        {
            "pipeline": "x.py",
            "environment": "Dev",
            "environments": {
                "dev": {**LOCAL, "name": "other", "kafka": {"bootstap": "k:9092"}},
                "two\nlines": LOCAL,
                "prod": 1,
            },
        }
    )
    assert set(found) == {
        "pipeline",
        "environment",
        "environments.dev.name",
        "environments.dev.kafka.bootstap",
        "environments.dev.kafka.bootstrap",
        "environments['two\\nlines'].name",
        "environments.prod",
    }
    assert "Did you mean pipelines?" in found["pipeline"]
    assert "Did you mean bootstrap?" in found["environments.dev.kafka.bootstap"]


def test_a_secret_that_is_written_out_is_refused_and_not_shown() -> None:
    kafka = {"bootstrap": "k:9092", "security": "SASL_SSL", "mechanism": "PLAIN", "username": "hunter2"}
    found = problems({"environments": {"dev": {**LOCAL, "kafka": {**kafka, "password": {"env": "not a name"}}}}})
    assert set(found) == {"environments.dev.kafka.username", "environments.dev.kafka.password.env"}
    assert "hunter2" not in str(found)
    assert "not a name" not in str(found)


def test_paths_with_a_point_are_relative_to_the_file() -> None:
    catalog = {"type": "local", "path": "./lake/catalog.db", "warehouse": "./lake"}
    kafka = {
        "bootstrap": "k:9092",
        "security": "SSL",
        "ca": "./ca.pem",
        "certificate": {"file": "./c"},
        "key": {"file": "/k"},
    }
    found = parsed({"environments": {"dev": {"kafka": kafka, "catalog": catalog}}}).environments["dev"]
    assert found.catalog == LocalCatalog(path="/project/lake/catalog.db", warehouse="/project/lake")
    assert found.kafka.ca == "/project/ca.pem"
    assert (found.kafka.certificate, found.kafka.key) == (Secret(file="/project/c"), Secret(file="/k"))


def test_a_path_without_a_point_may_lack_its_slash() -> None:
    found = problems({"environments": {"dev": {**LOCAL, "catalog": {**LOCAL["catalog"], "warehouse": "lake"}}}})
    assert set(found) == {"environments.dev.catalog.warehouse"}
