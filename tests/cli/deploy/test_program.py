"""Commands about deployments ask the nearest program: that of a project, or that of a checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from frazil.cli.deploy import program
from frazil.cli.deploy.program import deployment_program
from frazil.errors import LocalPartFailed


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_a_project_has_one_program_for_all_verbs(tmp_path: Path) -> None:
    project = touched(tmp_path / "shop", "frazil.toml", "infra_app.py", "tests/x.py")
    found = deployment_program(project / "tests", "describe")
    assert found is not None
    assert (found.root, found.command) == (project, (sys.executable, "infra_app.py", "describe"))


def test_a_checkout_has_a_module_for_each(tmp_path: Path) -> None:
    touched(tmp_path, "frazil.toml", "stacks/workflow/describe.py", "docs/x.md")
    found = deployment_program(tmp_path / "docs", "describe")
    assert found is not None
    assert (found.root, found.command) == (tmp_path, (sys.executable, "-m", "stacks.workflow.describe"))


def test_a_project_that_does_not_deploy_has_none(tmp_path: Path) -> None:
    assert deployment_program(touched(tmp_path, "frazil.toml"), "review") is None


def test_a_file_of_that_name_alone_is_no_project(tmp_path: Path) -> None:
    assert deployment_program(touched(tmp_path, "infra_app.py"), "review") is None


def test_a_project_needs_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editable install has no package of deployment: one error instead of a traceback."""
    project = touched(tmp_path, "frazil.toml", "infra_app.py")
    (project / "infra_app.py").write_text("from frazil_deploy.stacks.workflow.program import run\n")
    monkeypatch.setattr(program, "find_spec", lambda name: None if name == "frazil_deploy" else object())
    with pytest.raises(LocalPartFailed, match="which has no frazil_deploy. Install the wheel"):
        deployment_program(project, "review")
