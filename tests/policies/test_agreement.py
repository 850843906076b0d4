"""Our evaluator against another one: the same verdict on hundreds of made-up requests, and on what our roles ask for."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.policies import permission_cases
from tests.policies.cases import cases, decided, digest
from tests.support.iam_evaluation import Verdict

HERE = Path(__file__).parent / "simulator"
RECORDED: dict[str, Any] = json.loads((HERE / "verdicts.json").read_text())
SAID = {
    "Allowed": Verdict.ALLOWED,
    "ExplicitlyDenied": Verdict.EXPLICITLY_DENIED,
    "ImplicitlyDenied": Verdict.IMPLICITLY_DENIED,
}


def simulated(made: Sequence[dict[str, Any]]) -> list[str]:
    """What the other evaluator says."""
    told = json.dumps(made)
    ended = subprocess.run(["node", "simulate.mjs"], cwd=HERE, input=told, capture_output=True, text=True, check=True)
    answers: list[str] = json.loads(ended.stdout)
    return answers


def disagreements(made: Sequence[dict[str, Any]], verdicts: Sequence[str]) -> list[tuple[str, Verdict, dict[str, Any]]]:
    return [
        (said, decided(case).verdict, case)
        for case, said in zip(made, verdicts, strict=True)
        if SAID.get(said) is not decided(case).verdict
    ]


def test_two_evaluators_agree_on_every_case() -> None:
    made = cases(600, seed=1)
    assert RECORDED["of"] == digest(made), "other cases than those whose verdicts were recorded: record them again"
    assert disagreements(made, RECORDED["verdicts"]) == []


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
@pytest.mark.skipif(not (HERE / "node_modules").is_dir(), reason="simulator/README.md says how to install it")
def test_two_evaluators_agree_on_other_cases_and_on_our_own_policies() -> None:
    assert simulated(cases(600, seed=1)) == RECORDED["verdicts"]
    made = [*cases(3000, seed=2), *permission_cases.cases()]
    assert disagreements(made, simulated(made)) == []
