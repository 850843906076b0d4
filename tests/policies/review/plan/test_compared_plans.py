"""The normal form of plans: the same for the same apply, another one for any other apply, and without secrets."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from policies.review.plan.compared_plans import differences, normal_form, read_form
from tests.policies.review.planning import change, plan, stays

SECRET = "pw-1"


def example() -> dict[str, Any]:
    return plan(
        change("aws_s3_bucket.a", "create", None, {"bucket": "a", "tags": {"x": "1"}}, unknown={"id": True}),
        change("aws_sns_topic.b", "update", {"id": "arn:b", "name": "b", "tags": None}, {"id": "arn:b", "name": "b", "tags": {"x": "2"}}),
        change("confluent_kafka_topic.c", "replace", {"id": "c-1", "partitions_count": 6}, {"partitions_count": 3}, unknown={"id": True}, forced=[["partitions_count"]]),
        change("aws_eip.d", "delete", {"id": "eip-1"}, None, action_reason="delete_because_no_resource_config"),
        change("confluent_api_key.e", "update", {"id": "K", "secret": SECRET}, {"id": "K", "secret": "pw-2"}, secret={"secret": True}),
        stays("aws_vpc.f", {"id": "vpc-1"}),
        outputs={"arn": "update"},
        terraform_version="1.11.4",
        timestamp="2026-11-01T00:00:00Z",
    )  # fmt: skip


def digest(made: Any, **more: Any) -> str:
    return normal_form("dev", {"dev-foundation": made, **more}).digest


def test_time_version_order_of_resources_and_what_stays_change_nothing() -> None:
    other = copy.deepcopy(example())
    other["timestamp"], other["terraform_version"] = "2027-01-01T00:00:00Z", "1.12.0"
    other["resource_changes"].reverse()
    other["resource_changes"] = [dict(reversed(each.items())) for each in other["resource_changes"]]
    other["resource_changes"].append(stays("aws_vpc.g", {"id": "vpc-2"}))
    assert digest(other) == digest(example())


def changed(index: int, *path: str, to: Any) -> dict[str, Any]:
    made = example()
    node: Any = made["resource_changes"][index]
    for step in path[:-1]:
        node = node[step]
    assert node.get(path[-1]) != to
    node[path[-1]] = to
    return made


@pytest.mark.parametrize(
    "other",
    [
        changed(0, "change", "after", "bucket", to="b"),
        changed(0, "change", "after", "tags", to={"x": "2"}),
        changed(0, "change", "after_unknown", "id", to=False),
        changed(0, "address", to="aws_s3_bucket.z"),
        changed(0, "provider_name", to="registry.terraform.io/evil/aws"),
        changed(1, "change", "after", "tags", to={"x": "3"}),
        changed(1, "change", "before", "id", to="arn:other"),
        changed(1, "change", "actions", to=["delete", "create"]),
        changed(2, "change", "before", "id", to="c-2"),
        changed(2, "change", "replace_paths", to=[["topic_name"]]),
        changed(2, "change", "actions", to=["create", "delete"]),
        changed(3, "change", "before", "id", to="eip-2"),
        changed(3, "change", "actions", to=["forget"]),
        changed(3, "deposed", to="1f2e"),
        changed(5, "previous_address", to="aws_vpc.old"),
        changed(5, "change", "importing", to={"id": "vpc-9"}),
        {**example(), "errored": True},
        {**example(), "output_changes": {}},
        {**example(), "output_changes": {"arn": {"actions": ["update"], "before": "a", "after": "b"}}},
        None,
    ],
)  # fmt: skip
def test_any_other_apply_has_another_digest(other: Any) -> None:
    assert digest(other) != digest(example())


def test_the_environment_and_the_number_of_stacks_count() -> None:
    assert normal_form("prod", {"dev-foundation": example()}).digest != digest(example())
    assert digest(example(), **{"dev-confluent": None}) != digest(example())


def test_no_secret_is_in_the_form_nor_a_hash_of_it() -> None:
    """A short secret in a hash could be guessed: another secret gives the same form, as long as it changes."""
    form = normal_form("dev", {"dev-foundation": example()})
    assert SECRET not in form.text
    assert digest(changed(4, "change", "after", "secret", to="pw-3")) == form.digest
    assert digest(changed(4, "change", "after", "secret", to=SECRET)) != form.digest


def test_a_form_is_read_back_and_anything_else_is_refused() -> None:
    form = normal_form("dev", {"dev-foundation": example()})
    assert read_form(form.text).digest == form.digest
    for text in ("[]", "{}", "nonsense", json.dumps({**form.content, "version": 2})):
        with pytest.raises(ValueError, match="."):
            read_form(text)


def test_a_difference_names_stack_and_address() -> None:
    one = normal_form("dev", {"dev-foundation": example(), "dev-confluent": plan()})
    other_plan = changed(1, "change", "after", "tags", to={"x": "3"})
    del other_plan["resource_changes"][3]
    other_plan["resource_changes"][0]["change"]["actions"] = ["update"]
    other = normal_form("dev", {"dev-foundation": other_plan, "dev-confluent": None})
    assert differences(one, other) == [
        "dev-confluent: the plan",
        "dev-foundation: aws_eip.d",
        "dev-foundation: aws_s3_bucket.a",
        "dev-foundation: aws_sns_topic.b",
    ]
    assert differences(one, one) == []


def test_a_change_between_secrets_that_another_resource_marks_is_a_change() -> None:
    key = change(
        "confluent_api_key.e", "update", {"secret": "secret-one"}, {"secret": "secret-two"}, secret={"secret": True}
    )
    here = {"policy": "allow secret-one"}
    one, other = (
        plan(key, change("aws_iam_policy.p", "update", here, {"policy": text})) for text in ("allow secret-two", "allow secret-one")
    )  # fmt: skip
    assert digest(one) != digest(other)
    assert "secret-" not in normal_form("dev", {"dev-foundation": one}).text


def test_a_plan_that_ended_early_is_not_whole_and_one_of_an_older_terraform_says_nothing_of_it() -> None:
    older = {key: value for key, value in plan().items() if key not in ("complete", "errored")}
    for made, is_complete in (
        (plan(), True),
        ({**plan(), "errored": True}, False),
        ({**plan(), "complete": False}, False),
        (older, True),
    ):
        assert normal_form("dev", {"s": made}).stacks["s"]["is_complete"] is is_complete
