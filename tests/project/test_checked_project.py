"""A project is checked as one: declarations, project file, and each environment with the declarations."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.declaration import InvalidDeclaration
from frazil.project.checked_project import checked_pipelines

PIPELINES = """
from frazil import Pipeline, Table, Topic

pipelines = [Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"))]
"""
DEV = """
[environments.dev]
kafka.bootstrap = "127.0.0.1:9092"
catalog = { type = "local", path = "/lake/catalog.db", warehouse = "/lake" }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipelines.py").write_text(PIPELINES)
    (tmp_path / "frazil.toml").write_text(f'pipelines = "pipelines.py"\n{DEV}registry.url = "http://127.0.0.1:8081"\n')
    return tmp_path


def paths(*, with_project: bool = True, choice: str | None = None) -> list[str]:
    with pytest.raises(InvalidDeclaration) as raised:
        checked_pipelines(Path("pipelines.py"), choice=choice, with_project=with_project)
    return [problem.path for problem in raised.value.problems]


@pytest.mark.usefixtures("folder")
def test_a_project_without_problems_gives_its_pipelines() -> None:
    (listed,) = checked_pipelines(Path("pipelines.py"), choice="dev", with_project=True).listed
    assert listed.pipeline.name == "orders"


def test_both_files_are_checked_at_once(folder: Path) -> None:
    (folder / "pipelines.py").write_text(PIPELINES.replace('"avro"', '"avor"'))
    (folder / "frazil.toml").write_text("nothing = 1\n")
    assert paths() == ["pipelines.py:4: topic.value", "frazil.toml: nothing"]


def test_pipelines_must_fit_each_environment(folder: Path) -> None:
    (folder / "frazil.toml").write_text(DEV)
    assert paths() == ["environment dev: pipelines.py: pipelines[0].topic.value"]
    assert checked_pipelines(Path("pipelines.py"), choice=None, with_project=False)
    assert paths(with_project=False, choice="dev") == ["pipelines.py: pipelines[0].topic.value"]


def test_a_project_file_that_names_no_declarations_is_the_problem(folder: Path) -> None:
    (folder / "pipelines.py").unlink()
    (folder / "frazil.toml").write_text("pipelines = 3\n")
    assert paths() == ["frazil.toml: pipelines"]
