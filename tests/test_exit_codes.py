"""Exit codes mean the same in every command and every job."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from frazil import errors
from frazil.declaration import InvalidDeclaration
from frazil.exit_codes import Exit, exit_of, exit_of_all


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidDeclaration([]), Exit.INVALID_INPUT),
        (errors.InvalidInput("no such pipeline"), Exit.INVALID_INPUT),
        (errors.KafkaUnavailable("silent"), Exit.SERVICE_UNAVAILABLE),
        (errors.RegistryUnavailable("silent"), Exit.SERVICE_UNAVAILABLE),
        (errors.SecretUnavailable("unset"), Exit.SERVICE_UNAVAILABLE),
        (errors.EmrUnavailable("silent"), Exit.SERVICE_UNAVAILABLE),
        (errors.LockHeld("another one"), Exit.SERVICE_UNAVAILABLE),
        (errors.RolloutFailed("all failed"), Exit.DECISION_REQUIRED),
        (errors.ReleaseIncomplete("no wheel"), Exit.DECISION_REQUIRED),
        (errors.TopicRecreated.of("p", "t", topic_id="2", committed_id="1"), Exit.DECISION_REQUIRED),
        (errors.FenceUnproven("both committed"), Exit.DECISION_REQUIRED),
        (errors.IncompatibleSchema("int to string"), Exit.FAILED),
        (errors.SparkFailed("a worker died"), Exit.FAILED),
        (errors.TableReplaced("another uuid"), Exit.FAILED),
        (errors.JvmEnded("killed"), Exit.FAILED),
        (errors.Fault("ValueError"), Exit.FAULT),
        (errors.FrazilError("no class of its own"), Exit.FAULT),
        (ValueError("not ours"), Exit.FAULT),
    ],
    ids=repr,
)
def test_an_error_has_its_exit_code(error: BaseException, code: Exit) -> None:
    assert exit_of(error) is code


def test_of_several_errors_the_one_that_needs_a_person_counts() -> None:
    outage, failed, decision = (
        errors.KafkaUnavailable(""),
        errors.SparkFailed(""),
        errors.OffsetsLost.of("p", "t", partition=0, first=0, earliest=1),
    )
    assert exit_of_all([None, None]) is Exit.SUCCESS
    assert exit_of_all([outage, None, failed]) is Exit.FAILED
    assert exit_of_all([outage, decision, failed]) is Exit.DECISION_REQUIRED


def test_the_page_has_every_code(root: Path) -> None:
    page = (root / "docs" / "running.md").read_text().partition("## Exit codes")[2].partition("## ")[0]
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")]
    assert rows[2:] == [str(int(code)) for code in Exit]


def test_no_code_raises_an_error_without_a_class(root: Path) -> None:
    for module in (root / "jobs").rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            is_bare = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "FrazilError"
            assert not is_bare, f"{module}:{node.lineno}"  # type: ignore[attr-defined]
