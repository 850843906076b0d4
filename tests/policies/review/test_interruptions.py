"""Changes that interrupt running jobs are dangers; new ones of their kind are not."""

from __future__ import annotations

from typing import Any

import pytest

from policies.review.markdown.page import markdown
from tests.policies.review.cases import APPLICATION, DEPLOYED
from tests.policies.review.planning import change, plan, reviewed


def binding(subject: str) -> dict[str, Any]:
    return {"principal": "User:sa-1", "role_name": "DeveloperRead", "crn_pattern": f"crn://x/subject={subject}"}


def rules(*changes: dict[str, Any]) -> list[str]:
    """The dangers but for new permissions, for which these plans lack the stack (`tests/policies/rules/test_kafka_permissions.py`)."""
    return [each.rule for each in reviewed(plan(DEPLOYED, *changes)).dangers if each.rule != "policy_widened"]


def test_replaced_permissions_are_one_danger_with_the_first_five_and_a_count() -> None:
    churn = [
        change(
            f"confluent_role_binding.subject-{n}",
            "replace",
            binding(f"t{n}"),
            binding(f"t{(n + 1) % 18}"),
            forced=[["crn_pattern"]],
        )
        for n in range(18)
    ]
    made = reviewed(plan(DEPLOYED, *churn))
    [danger] = made.dangers
    assert (danger.rule, len(danger.touches)) == ("access_interrupted", 18)
    page = markdown(made)
    assert "18 permissions are deleted and created again" in page
    assert "subject=t4 and 13 more." in page
    assert "subject=t5" not in page.partition("<details>")[0]


@pytest.mark.parametrize("kind", ["subject", "topic"])
def test_the_binding_that_opens_nothing_may_be_replaced(kind: str) -> None:
    """One more pipeline replaces it, so that the provider waits once for all new bindings."""
    waited = ("frazil-waited-99e3b784608803ce", "frazil-waited-3edff834782f142d")
    before, after = (
        {**binding(each), "crn_pattern": binding(each)["crn_pattern"].replace("subject=", f"{kind}=")}
        for each in waited
    )
    assert rules(change("confluent_role_binding.r", "replace", before, after, forced=[["crn_pattern"]])) == []
    after = binding("t")
    assert rules(change("confluent_role_binding.r", "replace", after, before, forced=[["crn_pattern"]])) == [
        "access_interrupted"
    ]


def test_a_permission_that_is_deleted_here_and_created_there_is_interrupted_too() -> None:
    gone = change("confluent_role_binding.a", "delete", binding("t"))
    assert rules(gone, change("confluent_role_binding.b", "create", None, binding("t"))) == ["access_interrupted"]
    assert rules(gone, change("confluent_role_binding.b", "create", None, binding("u"))) == []
    assert rules(gone) == [], "that of a removed pipeline"
    assert rules(change("confluent_role_binding.b", "create", None, binding("u"))) == []


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"release_label": "emr-8.2.0"}, "Release_label changes"),
        ({"maximum_capacity": [{"cpu": "16 vCPU", "memory": "64 GB"}]}, "Maximum_capacity changes"),
        ({"network_configuration": [{"subnet_ids": ["b"]}]}, "Network_configuration changes"),
        ({"auto_stop_configuration": [{"idle_timeout_minutes": 5}]}, "Auto_stop_configuration changes"),
    ],
)
def test_each_change_of_the_application_is_a_danger(after: dict[str, Any], said: str) -> None:
    address = "aws_emrserverless_application.spark"
    found = reviewed(plan(DEPLOYED, change(address, "update", APPLICATION, {**APPLICATION, **after})))
    [danger] = [each for each in found.dangers if each.rule == "application_change"]
    assert danger.what.startswith(said.lower())
    forced = change(
        address, "replace", APPLICATION, {**APPLICATION, "architecture": "X86_64"}, forced=[["architecture"]]
    )
    assert "application_change" in rules(forced)
    assert "keep this one in emr.former" in danger.do
    gone = reviewed(plan(DEPLOYED, change(address, "delete", APPLICATION)))
    [danger] = [each for each in gone.dangers if each.rule == "application_change"]
    assert "Run frazil deploy move-application before you remove it" in danger.do
    assert "application_change" not in rules(change(address, "create", None, APPLICATION))


def test_a_changed_network_is_one_danger() -> None:
    subnets = [
        change(f"aws_subnet.{n}", "replace", {"cidr_block": "a"}, {"cidr_block": "b"}, forced=[["cidr_block"]])
        for n in range(2)
    ]
    group = change(
        "aws_security_group.jobs", "update", {"name": "x", "description": "a"}, {"name": "x", "description": "b"}
    )
    found = reviewed(plan(DEPLOYED, *subnets, group))
    [danger] = found.dangers
    assert (danger.rule, danger.what) == (
        "network_change",
        "3 parts of the network of running jobs change: replace 2, update 1",
    )
    assert rules(change("aws_subnet.c", "create", None, {"cidr_block": "a"})) == []


def test_the_removal_of_the_only_way_out_is_named_as_such_and_once() -> None:
    gone = (change("aws_nat_gateway.nat", "delete", {"id": "n"}), change("aws_eip.nat", "delete", {"id": "e"}))
    assert rules(*gone) == ["access_lost"]


def test_fewer_partitions_are_one_danger_and_another_cause_is_named_too() -> None:
    was, will = {"topic_name": "flights", "partitions_count": 6}, {"topic_name": "flights", "partitions_count": 3}
    address = "confluent_kafka_topic.t"
    assert rules(change(address, "replace", was, will, forced=[["partitions_count"]])) == ["partitions_lowered"]
    both = [["partitions_count"], ["topic_name"]]
    assert rules(change(address, "replace", was, {**will, "topic_name": "u"}, forced=both)) == [
        "data_lost",
        "partitions_lowered",
    ]
