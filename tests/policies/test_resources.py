"""Stacks, plans and documents, read as one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from policies.resources import NothingToReview, Reviewed, policy, read, together
from tests.policies.review.planning import change, plan
from tests.policies.reviewing import stack


def test_a_reference_finds_its_resource_and_no_other() -> None:
    two = read(stack(aws_s3_bucket__a={"bucket": "one"}, aws_s3_bucket__a_b={"bucket": "two"}))
    found = two.named("${aws_s3_bucket.a.id}")
    assert found is not None
    assert found.text("bucket") == "one"
    assert two.named("${aws_s3_bucket.c.id}") is None
    assert two.named("one") is None


def test_one_stack_refers_to_another() -> None:
    both = together([read(stack(aws_s3_bucket__a={"bucket": "one"})), read(stack(aws_s3_object__o={"key": "k"}))])
    assert {each.address for each in both.resources} == {"aws_s3_bucket.a", "aws_s3_object.o"}


def test_what_a_plan_does_not_know_yet_the_stack_tells() -> None:
    """A policy that names a key which is not made yet is unknown as a whole in the plan of a first deployment."""
    stacked = read(stack(aws_s3_bucket_policy__p={"bucket": "${aws_s3_bucket.b.id}", "policy": "text", "old": 1}))
    planned = read(plan(change("aws_s3_bucket_policy.p", "create", None, {"bucket": "b", "policy": None})))
    for both in (together([stacked, planned]), together([planned, stacked])):
        [one] = both.resources
        assert one.values == {"bucket": "b", "policy": "text", "old": 1}


def test_two_stacks_stay_two() -> None:
    twice = together([read(stack(a__x={"n": 1})), read(stack(a__x={"n": 2}))])
    assert [each.values for each in twice.resources] == [{"n": 1}, {"n": 2}]


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not installed")
def test_terraforms_own_plan_is_understood(tmp_path: Path) -> None:
    """Of a resource that needs no provider: made, then replaced by one whose argument is known later."""
    made = {"resource": {"terraform_data": {"a": {"input": "x"}, "b": {"input": "${terraform_data.a.id}"}}}}
    (tmp_path / "main.tf.json").write_text(json.dumps(made))

    def terraform(*arguments: str) -> str:
        command = ["terraform", f"-chdir={tmp_path}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout

    def planned() -> Reviewed:
        terraform("plan", "-input=false", "-out=plan")
        return read(json.loads(terraform("show", "-json", "plan")))

    terraform("init", "-input=false")
    first = planned()
    assert [(each.address, each.verb) for each in first.changes] == [
        ("terraform_data.a", "create"),
        ("terraform_data.b", "create"),
    ]
    by_address = {each.address: each for each in first.resources}
    assert first.named(by_address["terraform_data.b"].text("input")) is by_address["terraform_data.a"]
    terraform("apply", "-auto-approve", "-input=false")
    assert planned().changes == ()
    made["resource"]["terraform_data"]["a"]["triggers_replace"] = "now"
    (tmp_path / "main.tf.json").write_text(json.dumps(made))
    again = {each.address: each for each in planned().changes}
    assert (again["terraform_data.a"].verb, again["terraform_data.a"].forced_by) == ("replace", ("triggers_replace",))
    assert again["terraform_data.b"].verb == "update"
    assert "input" in again["terraform_data.b"].unknown


def test_blocks_are_several_one_or_none() -> None:
    made = read(stack(x__list={"b": [{"a": 1}, {"a": 2}]}, x__one={"b": {"a": 1}}, x__none={}))
    assert [len(each.blocks("b")) for each in made.resources] == [2, 1, 0]


def test_what_only_is_read_or_stays_is_no_change() -> None:
    read_back = read(plan(change("data.x", "read"), change("a.b", "no-op", {}, {}), change("c.d", "create", None, {})))
    assert [(each.address, each.verb) for each in read_back.changes] == [("c.d", "create")]


def test_documents_inside_objects_are_found() -> None:
    content = json.dumps({"version": 1, "pipelines": []})
    assert read(stack(aws_s3_object__o={"content": content})).documents == ({"version": 1, "pipelines": []},)
    assert read(stack(aws_s3_object__o={"content": "text"})).documents == ()


@pytest.mark.parametrize("text", [None, "", "${data.x.json}", "[]", 7])
def test_a_policy_that_is_not_known_is_none(text: object) -> None:
    assert policy(text) is None


def test_anything_else_is_refused() -> None:
    with pytest.raises(NothingToReview):
        read({"version": 4, "terraform_version": "1.11.4"})
