"""What is said of a plan that Terraform does not make: nothing of its text for a stack of another checkout, and no secret."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.review.plan.plan_gaps import StackPlan
from stacks.workflow.terraform_command import NotPlanned
from stacks.workflow.terraform_plans import plans
from tests.policies.review.planning import change, plan

SECRET = "cflt0123456789abcdefSECRET"
SPELT = "-".join(SECRET)
ERROR = f"""
Error: error reading environment "{SPELT}": 403 {SECRET}

  with data.confluent_environment.x,
  on cdk.tf.json line 3, in data.confluent_environment.x:
   3:     "id": "${{replace(confluent_api_key.k.secret)}}"

with confluent_service_account.{SECRET},

Error: Instance cannot be destroyed

  on cdk.tf.json line 9, in resource.confluent_kafka_topic.t:
"""
STACK = {
    "data": {"confluent_environment": {"x": {}, "y": {}}},
    "resource": {"confluent_kafka_topic": {"t": {}, "u": {}}},
}
PROGRAM = """#!/bin/sh
case "$1" in
    init) if [ -f fails ]; then cat error >&2; exit 1; fi ;;
    plan) cp made plan 2>/dev/null; cat error >&2; [ ! -s error ]; exit $? ;;
    show) if [ $# = 3 ]; then cat plan; else cat state; fi ;;
    state) echo '{}' ;;
esac
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A stand-in of Terraform that says what the files of a stack's folder hold."""
    made = tmp_path / "bin" / "terraform"
    made.parent.mkdir()
    made.write_text(PROGRAM)
    made.chmod(0o755)
    return made


Stack = Callable[..., dict[str, Path]]


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """Make the folder of a stack: what Terraform prints, the plan that it makes all the same, and the state."""

    def made(name: str = "dev-one", **files: Any) -> dict[str, Path]:
        folder = tmp_path / "out" / "stacks" / name
        folder.mkdir(parents=True)
        for file, content in {"cdk.tf.json": STACK, "error": ERROR, "state": {}, **files}.items():
            (folder / file).write_text(content if isinstance(content, str) else json.dumps(content))
        return {name: folder}

    return made


def planned(folders: dict[str, Path], program: Path) -> list[StackPlan]:
    return list(plans(folders, {"PATH": os.environ["PATH"]}, str(program)))


def holding(secret: str) -> dict[str, Any]:
    return plan(change("confluent_api_key.k", "create", None, {"secret": secret}, secret={"secret": True}))


def test_a_stack_with_a_partial_plan_shows_the_headings_of_errors(stack: Stack, program: Path) -> None:
    [found] = planned(stack(made=holding("another secret")), program)
    assert found.plan is not None
    assert found.why_not.startswith("Terraform refuses this plan: ")


def test_a_stack_after_one_that_is_not_planned_names_that(stack: Stack, program: Path) -> None:
    folders = {**stack(made=holding("another secret")), **stack("dev-two")}
    first = json.loads((folders["dev-one"] / "made").read_text())
    first["output_changes"] = {"o": {"actions": ["create"]}}
    (folders["dev-one"] / "made").write_text(json.dumps(first))
    [_, second] = planned(folders, program)
    assert second.plan is None
    assert "Outputs of dev-one do not exist yet" in second.why_not


def test_an_own_stack_without_a_plan_hides_what_the_state_and_the_other_plans_mark(stack: Stack, program: Path) -> None:
    """No plan says what is secret, and the state does."""
    resource = {"values": {"secret": SECRET}, "sensitive_values": {"secret": True}}
    state = {"values": {"root_module": {"resources": [resource]}}}
    other = "of-another-stack-4711"
    text = f"Error: bad {SECRET} and {other}"
    folders = {**stack("dev-zero", error="", made=holding(other)), **stack(error=text, state=state)}
    with pytest.raises(NotPlanned) as refused:
        planned(folders, program)
    assert str(refused.value) == "dev-one: Error: bad (secret) and (secret)"


def test_a_state_that_cannot_be_read_hides_nothing_and_the_error_is_shown(stack: Stack, program: Path) -> None:
    with pytest.raises(NotPlanned, match="dev-one: Error: no credentials"):
        planned(stack(error="Error: no credentials", state="no JSON"), program)
