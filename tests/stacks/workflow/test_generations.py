"""The generation follows the deployed desired state: it is raised by a change, by nothing else, and never lowered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stacks.workflow.generations import expect_generations, has_generations, raise_generations


def content(number: int, release: str = "a") -> str:
    return json.dumps({"generation": number, "job": "ingest", "release": release}, separators=(",", ":"))


def stack(folder: Path, **contents: str) -> Path:
    objects = {name: {"key": f"desired/{name}.json", "content": text} for name, text in contents.items()}
    other = {"key": "documents/1.json", "content": content(1)}
    folder.joinpath("cdk.tf.json").write_text(json.dumps({"resource": {"aws_s3_object": {**objects, "other": other}}}))
    return folder


def plan(before: str | None, after: str | None, name: str = "desired") -> dict[str, Any]:
    sides = {"before": None if before is None else {"content": before}, "after": {"content": after} if after else {}}
    return {"resource_changes": [{"address": f"aws_s3_object.{name}", "change": sides}]}


def state(deployed: str | None, name: str = "desired") -> dict[str, Any]:
    """Return a state as Terraform writes it."""
    one = {"type": "aws_s3_object", "name": name, "instances": [{"attributes": {"content": deployed}}]}
    return (
        {"resources": [{"type": "aws_s3_bucket", "name": name, "instances": [{"attributes": {}}]}, one]}
        if deployed
        else {}
    )


def numbers(folder: Path) -> dict[str, int]:
    objects = json.loads((folder / "cdk.tf.json").read_text())["resource"]["aws_s3_object"]
    return {name: int(re.findall(r'"generation":(\d+)', each["content"])[0]) for name, each in objects.items()}


@pytest.mark.parametrize(
    ("before", "after", "is_again", "number"),
    [
        pytest.param(None, content(1), False, 1, id="first"),
        pytest.param(content(7), content(1), False, 7, id="nothing differs"),
        pytest.param(content(7), content(1, "b"), False, 8, id="another release"),
        pytest.param(content(7), None, False, 8, id="not known before the apply"),
        pytest.param(content(7), content(1), True, 8, id="again"),
        pytest.param(content(1), content(1, "b"), False, 2, id="second"),
    ],
)
def test_a_number_is_raised_by_a_change(
    tmp_path: Path, before: str | None, after: str | None, is_again: bool, number: int
) -> None:
    folder = stack(tmp_path, desired=content(1))
    assert raise_generations(folder, plan(before, after), is_again=is_again) is (number != 1)
    assert numbers(folder) == {"desired": number, "other": 1}, "only desired states have generations"


COMPUTED = '{"application":"${aws_emrserverless_application.main.id}","generation":1,"job":"ingest","release":"a"}'
QUOTED = COMPUTED.replace("main.id", 'main["a"].id')
DEPLOYED = json.dumps({"application": "app1", "generation": 7, "job": "ingest", "release": "a"}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("declared", "deployed", "is_again", "number"),
    [
        pytest.param(content(1), None, False, 1, id="first"),
        pytest.param(content(1), content(7), False, 7, id="nothing differs"),
        pytest.param(content(1, "b"), content(7), False, 8, id="another release"),
        pytest.param(content(1), content(7), True, 8, id="again"),
        pytest.param(content(20), content(7), False, 20, id="declared higher"),
        pytest.param(COMPUTED, DEPLOYED, False, 7, id="computed: the plan decides"),
        pytest.param(QUOTED, DEPLOYED, False, 7, id="computed: no JSON"),
        pytest.param(COMPUTED.replace('"a"', '"b"'), DEPLOYED, False, 8, id="computed, and another release"),
    ],
)
def test_the_state_says_the_number_before_the_plan(
    tmp_path: Path, declared: str, deployed: str | None, is_again: bool, number: int
) -> None:
    folder = stack(tmp_path, desired=declared)
    expect_generations(folder, state(deployed), is_again=is_again)
    assert numbers(folder) == {"desired": number, "other": 1}
    written = json.loads((folder / "cdk.tf.json").read_text())["resource"]["aws_s3_object"]["desired"]["content"]
    after = re.sub(r"\$\{.*?\}", "app1", written)
    assert not raise_generations(folder, plan(deployed, after), is_again=is_again), "the plan agrees"


def test_the_plan_raises_what_the_state_could_not_see(tmp_path: Path) -> None:
    folder = stack(tmp_path, desired=COMPUTED)
    expect_generations(folder, state(DEPLOYED))
    assert raise_generations(folder, plan(DEPLOYED, None)), "the application is replaced"
    assert numbers(folder)["desired"] == 8


def test_only_stacks_of_jobs_have_generations(tmp_path: Path) -> None:
    assert not has_generations(stack(tmp_path))
    assert has_generations(stack(tmp_path, desired=content(1)))


def test_each_job_has_its_own_number(tmp_path: Path) -> None:
    folder = stack(tmp_path, desired=content(1), payments=content(1))
    changes = [
        *plan(content(3), content(1))["resource_changes"],
        *plan(content(5), content(1, "b"), "payments")["resource_changes"],
    ]
    assert raise_generations(folder, {"resource_changes": changes})
    assert numbers(folder) == {"desired": 3, "payments": 6, "other": 1}


def test_a_second_plan_changes_no_number(tmp_path: Path) -> None:
    folder = stack(tmp_path, desired=content(1))
    raise_generations(folder, plan(content(7), content(1, "b")))
    assert not raise_generations(folder, plan(content(7), content(8, "b")))


def test_the_number_of_a_synthesised_stack_is_found_once(root: Path) -> None:
    """In the golden of a deployed stack, the desired state alone has a generation."""
    golden = (root / "tests" / "stacks" / "golden" / "dev-ingestion.json").read_text()
    assert golden.count('"generation": ') == 1
