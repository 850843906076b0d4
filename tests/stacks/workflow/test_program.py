"""The program of a project: what it does for its own deployments, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stacks.spec.deployments import DEPLOYMENTS, SMALL
from stacks.workflow import app, apply, review
from stacks.workflow.program import main, run

MINE = replace(DEPLOYMENTS["dev"], name="mine", runs=SMALL)


@pytest.fixture
def synthesised(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The settings and deployments of a synthesis, which is only noted."""
    noted: dict[str, Any] = {}

    def note(settings: Any, deployments: Any) -> int:
        noted.update(settings=settings, deployments=deployments)
        return 0

    monkeypatch.setattr(app, "main", note)
    return noted


def test_without_arguments_all_deployments_are_synthesised(
    synthesised: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FRAZIL_ENVIRONMENTS", "FRAZIL_RELEASE"):
        monkeypatch.delenv(name, raising=False)
    prod = DEPLOYMENTS["prod"]
    monkeypatch.setattr("sys.argv", ["infra_app.py"])
    with pytest.raises(SystemExit) as ended:
        run(MINE, prod, release="none")
    assert ended.value.code == 0
    assert synthesised["deployments"] == {"mine": MINE, "prod": prod}
    assert {name: synthesised["settings"][name] for name in ("FRAZIL_ENVIRONMENTS", "FRAZIL_RELEASE")} == {
        "FRAZIL_ENVIRONMENTS": "mine,prod",
        "FRAZIL_RELEASE": "none",
    }


def test_a_synthesis_by_hand_says_what_is_next(
    synthesised: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FRAZIL_ENVIRONMENTS", "FRAZIL_RELEASE", "CDKTF_OUTDIR"):
        monkeypatch.delenv(name, raising=False)
    assert main(["infra_app.py"], [MINE], "none") == 0
    assert capsys.readouterr().out == "mine: synthesised into cdktf.out. Next: frazil deploy plan mine --offline\n"
    monkeypatch.setenv("CDKTF_OUTDIR", "elsewhere")
    assert main(["infra_app.py"], [MINE], "none") == 0
    assert capsys.readouterr().out == ""


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(settings: Any, deployments: Any) -> int:
        raise ModuleNotFoundError("No module named 'jsii'", name="jsii")

    monkeypatch.setattr(app, "main", broken)
    assert main(["infra_app.py"], [MINE], "none") == 3
    assert capsys.readouterr().err == "error: the package jsii is not installed. pip install 'frazil[infra]'\n"


def test_variables_count_more_than_the_file_and_empty_ones_do_not(
    synthesised: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_RELEASE", "mine.json")
    monkeypatch.setenv("FRAZIL_ENVIRONMENTS", " ")
    assert main(["infra_app.py"], [MINE], "none") == 0
    assert synthesised["settings"]["FRAZIL_RELEASE"] == "mine.json"
    assert synthesised["settings"]["FRAZIL_ENVIRONMENTS"] == "mine"


@pytest.mark.parametrize(("command", "option"), [(review, "--offline"), (apply, "--reviewed=f")])
def test_a_command_synthesises_by_the_same_program(
    monkeypatch: pytest.MonkeyPatch, command: ModuleType, option: str
) -> None:
    noted: list[Any] = []

    def note(*given: Any) -> int:
        noted.extend(given)
        return 4

    monkeypatch.setattr(command, "run", note)
    assert main(["infra_app.py", command.__name__.rpartition(".")[2], option, "--", "mine"], [MINE], "none") == 4
    assert noted == [[option, "--", "mine"], {"mine": MINE}, (str(Path.cwd() / "infra_app.py"),)]


def test_a_release_is_asked_for_its_own_deployments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infra_app.py", "describe", "mine"], [MINE], "none") == 0
    assert json.loads(capsys.readouterr().out)["architecture"] == MINE.emr.architecture
    assert main(["infra_app.py", "describe", "dev"], [MINE], "none") == 3
    assert "dev does not exist. Name one of mine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["describe"], "describe takes one environment"),
        (["destroy"], "destroy does not exist. Write one of review, apply, deploy, lock, describe"),
    ],
)
def test_wrong_arguments_are_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infra_app.py", *arguments], [MINE], "none") == 2
    assert said in capsys.readouterr().err


def test_two_deployments_of_one_name_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infra_app.py"], [MINE, MINE], "none") == 2
    assert "mine is declared twice" in capsys.readouterr().err
