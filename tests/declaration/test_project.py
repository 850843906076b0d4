"""The content of a project file: all problems at once, with the paths that TOML has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration, LocalCatalog, Secret
from frazil.declaration.project import Project, parse_project

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


def test_an_editor_knows_relative_paths_and_no_name(root: Path) -> None:
    schema = json.loads((root / "docs" / "project.schema.json").read_text())
    definitions = schema["$defs"]
    assert "name" not in definitions["environment"]["properties"]
    assert definitions["environment"]["required"] == ["kafka", "catalog"]
    path = definitions["local_catalog"]["properties"]["path"]
    assert path["pattern"].startswith(r"^\.\.?/|^(?:/")
