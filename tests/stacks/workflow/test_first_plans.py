"""A review of a first deployment without Terraform shows what Terraform's plans of an empty account would."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policies.review.review import Review, Verdict
from stacks.spec.deployments import DEPLOYMENTS, Access
from stacks.workflow.deployed import read
from stacks.workflow.first_plans import NOTE, first_plans, settings_of_an_empty_account
from stacks.workflow.review import review_of
from tests.policies.reviewing import TODAY
from tests.stacks.simulated_plans import resources_of
from tests.stacks.synthesised import stacks_of

ALL = sorted(DEPLOYMENTS)


def reviewed(name: str) -> Review:
    stacks = {f"{name}-{what}": stack for what, stack in stacks_of(name).items()}
    plans = list(first_plans(stacks))
    return review_of(DEPLOYMENTS[name], plans, today=TODAY, offline=NOTE)


@pytest.mark.parametrize("name", ALL)
def test_every_declared_resource_is_created_and_nothing_refuses(name: str) -> None:
    found = reviewed(name)
    declared = [address for stack in stacks_of(name).values() for address in resources_of(stack)]
    assert sorted(change.address for change in found.changes) == sorted(declared)
    assert {change.verb for change in found.changes} == {"create"}
    assert (found.dangers, found.unchanged, found.verdict) == ((), (), Verdict.CHANGES)
    assert found.new_tables
    assert {each.outcome for each in found.effects} == {"new"}
    assert found.cost_before.total == 0
    assert found.cost_after.of("EMR Serverless")
    assert found.cost_after.of("NAT gateway")
    assert not any(policy.is_unknown for policy in found.policies)


def plan_of(stack: dict[str, Any], **others: dict[str, Any]) -> dict[str, Any]:
    [own, *_] = first_plans({"dev-own": stack, **{f"dev-{name}": other for name, other in others.items()}})
    assert own.plan is not None
    [only] = own.plan["resource_changes"][-1:]
    change: dict[str, Any] = only["change"]
    return change


def test_a_value_is_known_if_it_is_declared_or_of_a_stack_before() -> None:
    given = "data.terraform_remote_state.cross-stack-reference-input-dev-before.outputs.key"
    values = {
        "literal": "a",
        "named": "x-${aws_kms_key.k.name}",
        "later": "${aws_kms_key.k.arn}",
        "inside": [{"deep": "${aws_kms_key.k.arn}"}],
        "before": f"${{{given}}}",
        "of_local": "${local.text}",
        "later_local": "${sha256(local.later)}",
        "escaped": "$${aws:username} %%{x}",
    }
    stack = {
        "resource": {"aws_kms_key": {"k": {"name": "key"}}, "z_thing": {"z": {**values, "depends_on": ["a"]}}},
        "locals": {"text": f"of ${{{given}}}", "later": "${aws_kms_key.k.arn}"},
    }
    change = plan_of(stack, before={"output": {"key": {"value": "${aws_kms_key.theirs.arn}"}}})
    assert change["after"] == {
        "literal": "a",
        "named": "x-key",
        "before": "${aws_kms_key.theirs.arn}",
        "of_local": "of ${aws_kms_key.theirs.arn}",
        "escaped": "${aws:username} %{x}",
    }
    assert change["after_unknown"] == {"later": True, "inside": True, "later_local": True}


def test_the_account_is_empty_and_a_release_stands_in_unless_one_is_given(tmp_path: Path) -> None:
    dev = DEPLOYMENTS["dev"]
    settings = settings_of_an_empty_account(dev, tmp_path / "a", {})
    assert read(Path(settings["FRAZIL_DEPLOYED"]) / "dev.json", "dev") is not None
    assert json.loads(Path(settings["FRAZIL_RELEASE"]).read_text())["release"]["architecture"] == dev.emr.architecture
    given = settings_of_an_empty_account(dev, tmp_path / "b", {"FRAZIL_RELEASE": "none"})
    assert given["FRAZIL_RELEASE"] == "none"
    signed = replace(dev, access=Access(trusted_keys=("ab" * 32,)))
    assert "FRAZIL_RELEASE" not in settings_of_an_empty_account(signed, tmp_path / "c", {})
