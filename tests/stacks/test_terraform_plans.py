"""What is said of a plan that Terraform does not make: nothing of its text for a stack of another checkout, and no secret."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.review.plan_gaps import StackPlan
from stacks import foreign_stacks, review
from stacks.deployments import Deployment
from stacks.terraform_command import NotPlanned
from stacks.terraform_plans import plans
from tests.policies.review.planning import change, plan
from tests.policies.reviewing import TODAY
from tests.stacks.synthesised import stacks_of

TERRAFORM = shutil.which("terraform")
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
NAMED = "its errors are at confluent_kafka_topic.t, data.confluent_environment.x"
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


def planned(folders: dict[str, Path], program: Path, *, is_foreign: bool) -> list[StackPlan]:
    return list(plans(folders, {"PATH": os.environ["PATH"]}, str(program), is_foreign=is_foreign))


def holding(secret: str) -> dict[str, Any]:
    return plan(change("confluent_api_key.k", "create", None, {"secret": secret}, secret={"secret": True}))


def assert_nothing_is_shown(text: str) -> None:
    assert NAMED in text
    assert "run `frazil deploy plan` there" in text, "the remedy"
    for each in (SECRET, SPELT, "403", "Instance cannot", "replace(", "confluent_service_account"):
        assert each not in text


def test_of_a_foreign_stack_without_a_plan_only_addresses_are_shown(stack: Stack, program: Path) -> None:
    with pytest.raises(NotPlanned, match="^dev-one: ") as refused:
        planned(stack(), program, is_foreign=True)
    assert_nothing_is_shown(str(refused.value))


def test_of_a_foreign_stack_with_a_partial_plan_only_addresses_are_shown(stack: Stack, program: Path) -> None:
    [found] = planned(stack(made=holding("another secret")), program, is_foreign=True)
    assert found.plan is not None
    assert_nothing_is_shown(found.why_not)


def test_of_a_foreign_stack_behind_one_that_is_not_planned_only_addresses_are_shown(
    stack: Stack, program: Path
) -> None:
    folders = {**stack(made=holding("another secret")), **stack("dev-two")}
    first = json.loads((folders["dev-one"] / "made").read_text())
    first["output_changes"] = {"o": {"actions": ["create"]}}
    (folders["dev-one"] / "made").write_text(json.dumps(first))
    [_, second] = planned(folders, program, is_foreign=True)
    assert second.plan is None
    assert "Outputs of dev-one do not exist yet" in second.why_not
    assert_nothing_is_shown(second.why_not)


@pytest.mark.parametrize("is_foreign", [True, False])
def test_an_error_that_names_no_block_has_the_remedy_or_the_text(
    stack: Stack, program: Path, *, is_foreign: bool
) -> None:
    with pytest.raises(NotPlanned) as refused:
        planned(stack(error=f"Error: no credentials {SPELT}"), program, is_foreign=is_foreign)
    assert ("its errors name no block" in str(refused.value)) is is_foreign
    assert (SPELT in str(refused.value)) is not is_foreign


@pytest.mark.parametrize("is_foreign", [True, False])
def test_another_command_that_fails_shows_its_text_for_an_own_stack_only(
    stack: Stack, program: Path, *, is_foreign: bool
) -> None:
    with pytest.raises(NotPlanned, match="^dev-one: ") as refused:
        planned(stack(fails="yes"), program, is_foreign=is_foreign)
    assert (SPELT in str(refused.value)) is not is_foreign


@pytest.mark.skipif(TERRAFORM is None, reason="terraform is not installed")
def test_the_addresses_are_read_from_terraforms_own_errors(stack: Stack) -> None:
    refusing = {"precondition": [{"condition": '${terraform.workspace == "x"}', "error_message": f"no {SPELT}"}]}
    content = {
        "resource": {"terraform_data": {"a": {"lifecycle": refusing}, "b": {}}},
        "data": {"terraform_remote_state": {"r": {"backend": "local", "config": {"path": "none.tfstate"}}}},
    }
    [found] = plans(stack(**{"cdk.tf.json": content}), dict(os.environ), TERRAFORM or "", is_foreign=True)
    assert "its errors are at data.terraform_remote_state.r, terraform_data.a. Their text is" in found.why_not
    assert SPELT not in found.why_not


def test_an_own_stack_without_a_plan_hides_what_the_state_and_the_other_plans_mark(stack: Stack, program: Path) -> None:
    """No plan says what is secret, and the state does."""
    resource = {"values": {"secret": SECRET}, "sensitive_values": {"secret": True}}
    state = {"values": {"root_module": {"resources": [resource]}}}
    other = "of-another-stack-4711"
    text = f"Error: bad {SECRET} and {other}"
    folders = {**stack("dev-zero", error="", made=holding(other)), **stack(error=text, state=state)}
    with pytest.raises(NotPlanned) as refused:
        planned(folders, program, is_foreign=False)
    assert str(refused.value) == "dev-one: Error: bad (secret) and (secret)"


def test_a_state_that_cannot_be_read_hides_nothing_and_the_error_is_shown(stack: Stack, program: Path) -> None:
    with pytest.raises(NotPlanned, match="dev-one: Error: no credentials"):
        planned(stack(error="Error: no credentials", state="no JSON"), program, is_foreign=False)


def test_a_review_of_another_checkout_shows_no_text_of_terraform(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the command line on: neither the comment nor the log of the job has it."""

    def foreign(folder: Path) -> Path:
        for what, content in stacks_of("dev").items():
            (folder / f"dev-{what}").mkdir(parents=True)
            (folder / f"dev-{what}" / "cdk.tf.json").write_text(json.dumps(content))
        return folder

    def done(deployment: Deployment, folder: Path, settings: Any, app: Any) -> dict[str, Path]:
        return {each.name: each for each in foreign(folder / "cdktf.out" / "stacks").iterdir()}

    monkeypatch.setattr(foreign_stacks, "synthesise", done)
    program.write_text(f"#!/bin/sh\necho 'Error: {SPELT}' >&2\nexit 1\n")
    arguments = ["dev", "--synthesised", str(foreign(tmp_path / "given"))]
    assert review.main(arguments, {"PATH": f"{program.parent}:{os.environ['PATH']}"}, TODAY) == 5
    said = capsys.readouterr()
    assert SPELT not in said.out + said.err
    assert "dev-foundation: " in said.err
