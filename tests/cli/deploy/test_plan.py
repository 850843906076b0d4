"""`frazil deploy plan`: what it asks of the checkout, and how it ends."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from frazil.cli.main import app
from stacks.workflow import review as stacks_review


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A checkout in which the review is only noted, and ends as `status` says."""
    (tmp_path / "stacks" / "workflow").mkdir(parents=True)
    (tmp_path / "stacks" / "workflow" / "review.py").touch()
    below = tmp_path / "docs"
    below.mkdir()
    monkeypatch.chdir(below)
    told: dict[str, Any] = {"status": 0, "root": tmp_path}

    def run(command: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
        told.update(command=command, **more)
        return subprocess.CompletedProcess(command, told["status"])

    monkeypatch.setattr(subprocess, "run", run)
    return told


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["deploy", "plan", *arguments])


def test_the_checkouts_own_review_is_asked_by_the_same_python(asked: dict[str, Any]) -> None:
    assert ran("dev").exit_code == 0
    assert asked["command"] == [sys.executable, "-m", "stacks.workflow.review", "--", "dev"]
    assert asked["cwd"] == asked["root"]


def test_without_credentials_nothing_is_taken_that_needs_a_plan(asked: dict[str, Any]) -> None:
    assert ran("dev", "--offline").exit_code == 0
    assert asked["command"][3:] == ["--offline", "--", "dev"]
    for option in (("--form", "f.json"), ("--acceptances", "a.json"), ("--synthesised", "x")):
        ended = ran("dev", "--offline", *option)
        assert (ended.exit_code, "--offline: it has no plan of Terraform" in ended.stderr) == (2, True)


def test_the_environment_is_an_option_too(asked: dict[str, Any]) -> None:
    assert ran("--env", "dev").exit_code == 0
    assert asked["command"][3:] == ["--", "dev"]
    for wrong in (("dev", "--env", "prod"), ()):
        assert ran(*wrong).exit_code == 2


def test_all_options_are_handed_on_and_files_as_seen_from_here(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Path.cwd()
    told = ran(
        "dev", "--assumptions", "c.json",
        "--accept-danger", "it is empty; $(touch x)", "--pipelines", "mine.py", "--release", "manifest.json",
    )  # fmt: skip
    assert told.exit_code == 0
    assert asked["command"][3:] == [
        "--accept-danger=it is empty; $(touch x)", f"--assumptions={here}/c.json", "--", "dev",
    ]  # fmt: skip
    assert asked["env"]["FRAZIL_PIPELINES"] == f"{here}/mine.py"
    assert asked["env"]["FRAZIL_RELEASE"] == f"{here}/manifest.json"


@pytest.mark.parametrize("odd", ["--help", "-h", "--json", "-"])
def test_a_value_that_looks_like_an_option_is_handed_on_as_a_value(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str], odd: str
) -> None:
    assert ran(f"--accept-danger={odd}", "--form", odd, "--", odd).exit_code == 0
    parsed = stacks_review._arguments(asked["command"][3:])
    assert (parsed.environment, parsed.accept_danger) == (odd, odd)
    assert parsed.form == Path.cwd() / odd
    assert stacks_review.main(["--", odd], {}, date(2026, 1, 1)) == 2
    assert f"the environment {odd} does not exist. Name one of" in capsys.readouterr().err


def test_that_nothing_is_to_run_is_handed_on_and_is_no_file(asked: dict[str, Any]) -> None:
    assert ran("dev", "--release", "none").exit_code == 0
    assert asked["env"]["FRAZIL_RELEASE"] == "none"


@pytest.mark.parametrize(("status", "wanted"), [(0, 0), (1, 1), (2, 2), (4, 4), (5, 5), (143, 5), (-9, 5)])
def test_it_ends_as_the_review_ends(asked: dict[str, Any], status: int, wanted: int) -> None:
    asked["status"] = status
    assert ran("dev").exit_code == wanted


@pytest.mark.usefixtures("folder")
def test_outside_of_a_checkout_it_is_invalid_input() -> None:
    told = ran("dev")
    assert told.exit_code == 2
    assert "no deployment is declared here" in told.stderr
