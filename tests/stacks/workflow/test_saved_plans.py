"""Saved plans, by Terraform itself: applied as they were made, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.review.plan.compared_plans import normal_form
from stacks.workflow.saved_plans import Applied, PlanDiffers, SavedPlans, apply_saved, planned
from stacks.workflow.terraform_command import PLAN

TERRAFORM = shutil.which("terraform") or ""
pytestmark = pytest.mark.skipif(not TERRAFORM, reason="terraform is not installed")
SETTINGS = dict(os.environ)


def data(value: str, **more: Any) -> dict[str, Any]:
    return {"resource": {"terraform_data": {"a": {"input": value}}}, **more}


def plan_of(folders: dict[str, Path]) -> SavedPlans:
    return planned(folders, SETTINGS, TERRAFORM)


def applied(saved: SavedPlans, on_stack: Callable[[str], None] = lambda stack: None) -> Applied:
    form = normal_form("dev", {each.name: each.plan for each in saved.stacks})
    return apply_saved(saved, form, SETTINGS, TERRAFORM, on_stack=on_stack)


def state(folder: Path) -> Any:
    file = folder / "terraform.tfstate"
    if not file.exists():
        return None
    managed = [each for each in json.loads(file.read_text())["resources"] if each["mode"] == "managed"]
    return [each["instances"][0]["attributes"]["input"]["value"] for each in managed]


def test_the_saved_plans_are_applied_in_order_and_then_nothing_is_left(stack: Callable[..., dict[str, Path]]) -> None:
    made = stack(one=data("x"), two=data("y"))
    seen: list[str] = []
    found = applied(plan_of(made), seen.append)
    assert (found.stacks, dict(found.left), found.failed) == (("one", "two"), {}, "")
    assert seen == ["one", "two"]
    assert [state(folder) for folder in made.values()] == [["x"], ["y"]]
    again = applied(plan_of(made))
    assert (again.stacks, dict(again.left)) == ((), {})


def test_what_was_planned_is_applied_whatever_is_declared_by_then(stack: Callable[..., dict[str, Path]]) -> None:
    made = stack(one=data("reviewed"))
    saved = plan_of(made)
    stack(one=data("changed after the review"))
    applied(saved)
    assert state(made["one"]) == ["reviewed"]


def test_a_saved_plan_that_was_exchanged_is_refused(stack: Callable[..., dict[str, Path]]) -> None:
    made = stack(one=data("x"))
    other = plan_of(stack(one=data("evil")))
    shutil.copy(other.folders["one"] / PLAN, made["one"] / "evil")
    saved = plan_of(stack(one=data("x")))
    shutil.copy(made["one"] / "evil", made["one"] / PLAN)
    with pytest.raises(PlanDiffers, match="one: the saved plan was changed"):
        applied(saved)
    assert state(made["one"]) is None


def test_terraform_refuses_a_plan_of_an_older_state(stack: Callable[..., dict[str, Path]]) -> None:
    made = stack(one=data("x"))
    saved = plan_of(made)
    subprocess.run([TERRAFORM, "apply", "-auto-approve"], cwd=made["one"], check=True, capture_output=True)
    found = applied(saved)
    assert (found.failed, found.errors) == ("one", "Saved plan is stale")


def test_a_failure_ends_the_deployment_and_shows_headings_only(stack: Callable[..., dict[str, Path]]) -> None:
    check = {
        "postcondition": [{"condition": "${self.output == self.input && false}", "error_message": "no: hunter2-secret"}]
    }
    failing = data("x")
    failing["resource"]["terraform_data"]["a"]["lifecycle"] = check
    made = stack(one=failing, two=data("y"))
    found = applied(plan_of(made))
    assert (found.stacks, found.failed, found.errors) == ((), "one", "Resource postcondition failed")
    assert state(made["two"]) is None


def test_a_stack_whose_inputs_change_is_left_for_another_review(
    stack: Callable[..., dict[str, Path]], tmp_path: Path
) -> None:
    """Its plan was made with the outputs of before, so it is not what a new plan would be."""
    place = tmp_path / "out" / "stacks" / "one" / "terraform.tfstate"
    remote = {"terraform_remote_state": {"r": {"backend": "local", "config": {"path": str(place)}}}}

    def stacks(value: str) -> dict[str, Path]:
        first = data(value, output={"o": {"value": "${terraform_data.a.output}"}})
        return stack(one=first, two={**data("${data.terraform_remote_state.r.outputs.o}"), "data": remote})

    first = applied(plan_of(stacks("x")))
    assert first.stacks == ("one",)
    assert "Unable to find remote state" in first.left["two"]
    made = stacks("x")
    assert applied(plan_of(made)).stacks == ("two",)
    second = applied(plan_of(stacks("y")))
    assert second.stacks == ("one",)
    assert second.left == {"two": "it was planned with outputs that one has changed"}
    assert state(made["two"]) == ["x"]
    assert applied(plan_of(made)).stacks == ("two",)
    assert state(made["two"]) == ["y"]


EARLY = """
import os, signal, subprocess
from pathlib import Path

class Popen(subprocess.Popen):
    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        Path({ready!r}).read_text()
        os.kill(os.getpid(), signal.SIGTERM)

subprocess.Popen = Popen
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "is_early",
    [
        pytest.param(False, id="while it waits"),
        pytest.param(True, id="before Popen has returned"),
    ],
)
def test_a_process_that_is_asked_to_end_waits_until_terraform_has_written_the_state(
    tmp_path: Path, is_early: bool
) -> None:
    """Terraform is a stand-in that notes the signal and then finishes. Its child ends in any case."""
    program, ready, noted = tmp_path / "terraform", tmp_path / "ready", tmp_path / "noted"
    os.mkfifo(ready)
    program.write_text(
        f'#!/usr/bin/env bash\nsleep 100 &\ntrap \'echo interrupted > "{noted}"; kill $!; exit 1\' INT\necho go > "{ready}"\nwait\n'
    )
    program.chmod(0o700)
    script = (
        "import sys\nfrom pathlib import Path\nfrom stacks.workflow.review import ended_by_signals\n"
        "from stacks.workflow.terraform_command import TerraformCommand\n"
        f"{EARLY.format(ready=str(ready)) if is_early else ''}"
        f"run = TerraformCommand(Path({str(tmp_path / 'a' / 'b' / 'c')!r}), {{'PATH': '/usr/bin:/bin', 'TF_PLUGIN_CACHE_DIR': 'x'}}, {str(program)!r})\n"
        "sys.exit(ended_by_signals(lambda: run.applied()[0]))\n"
    )
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    process = subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": ".:jobs"})
    try:
        if not is_early:
            ready.read_text()
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert noted.read_text() == "interrupted\n"
    finally:
        process.kill()
        process.wait()
