"""Stacks, plans and documents, read as one."""

from __future__ import annotations

import json

import pytest

from policies.reading import NothingToReview, policy, read, together
from tests.policies.reviewing import change, plan, stack


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
