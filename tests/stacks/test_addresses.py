"""The resource addresses of each stack, compared with those that 0.1.0 (commit 247cde7) deployed.

A deployed resource whose address changes is deleted and created, unless a `moved` block names both addresses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from policies.holds_data import HOLDS_DATA
from tests.stacks.synthesised import ALL, stacks_of

DEPLOYED = Path(__file__).parent / "addresses_0_1_0.txt"
"""A stack and an address per line, sorted; written once by the `stacks_of` of 0.1.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Addresses of 0.1.0 that a stack no longer has, and those that it has instead, as patterns."""

    stack: str
    old: str
    new: str
    is_moved: bool
    reason: str
    environments: tuple[str, ...] = tuple(sorted({name for name, _ in ALL}))


DIFFERENCES = (
    Difference(
        stack="confluent",
        old=r"confluent_role_binding\.reader_subject-\d+_\w+",
        new=r"confluent_role_binding\.reader_subject-[a-z]+-(key|value)_\w+",
        is_moved=True,
        reason="Numbered ids made one more pipeline replace the bindings after it; a subject's name is stable.",
    ),
    Difference(
        stack="confluent",
        old=r"confluent_kafka_acl\.reader_topic-[a-z]+-(describe|group)_\w+",
        new=r"confluent_kafka_acl\.reader_groups_\w+|confluent_role_binding\.reader_subjects-in-effect_\w+",
        is_moved=False,
        reason="READ includes DESCRIBE, and one ACL covers all groups. Runs join no group, so the order does not matter. "
        "One binding more waits for all others.",
    ),
    Difference(
        stack="confluent",
        old=r"confluent_role_binding\.manager_(cluster-admin|subject-owner)_\w+|confluent_api_key\.manager_registry_\w+"
        r"|confluent_kafka_acl\.reader_topic-[a-z]+-read_\w+",
        new=r"confluent_role_binding\.(manager|reader)_topic(-[a-z]+|s-in-effect)_\w+|confluent_role_binding\.reader_groups_\w+",
        is_moved=False,
        reason="On a cluster of others, Frazil's account owns the declared topics and administers nothing. ACLs need an administrator.",
        environments=("prod",),
    ),
    Difference(
        stack="foundation",
        old=r"aws_sns_topic_subscription\.alarms_email-\d+_\w+",
        new=r"aws_sns_topic_subscription\.alarms_email-[0-9a-f]{16}_\w+",
        is_moved=True,
        reason="As for the bindings: one more address of e-mail moved the others, and each had to confirm again.",
    ),
    Difference(
        stack="ingestion",
        old=r"aws_s3_object\.(environment|pipelines_object_\w+)",
        new=r"aws_s3_object\.(environment-[0-9a-f]{16}|pipelines_object-[0-9a-f]{16}_\w+)",
        is_moved=False,
        reason="A document is named by its content; at an address of its own, Terraform forgets it while runs may read it.",
    ),
    Difference(
        stack="ingestion",
        old=r"aws_cloudwatch_metric_alarm\.alarms-[a-z]+_\w+",
        new=r"aws_cloudwatch_metric_alarm\.alarms_[a-z-]+_\w+",
        is_moved=False,
        reason="A group has one alarm of a kind for all of its pipelines. With alarms=AlarmsOf.PIPELINE, those of 0.1.0 stay.",
    ),
)

NEW = (
    r"aws_(iam_role|iam_policy|iam_role_policy_attachment)\.ingest-reconciler-role_.*",
    r"aws_(lambda_function|lambda_permission|cloudwatch_event_rule|cloudwatch_event_target|cloudwatch_log_group)\.ingest-reconciler_.*",
    r"aws_cloudwatch_metric_alarm\.ingest-reconciler-alarms_.*",
    r"aws_scheduler_schedule\.ingest-reconcile-schedule_.*",
)
"""Addresses of ingestion that 0.1.0 had nothing like: the deployed reconciler."""


def deployed(stack: str) -> set[str]:
    """Return the addresses that 0.1.0 gave to the resources of a stack."""
    pairs = (line.split(" ") for line in DEPLOYED.read_text().splitlines())
    return {address for name, address in pairs if name == stack}


def synthesised_now(environment: str, what: str) -> set[str]:
    """Return the addresses of a stack's resources."""
    return {f"{kind}.{name}" for kind, each in stacks_of(environment)[what]["resource"].items() for name in each}


def expected(environment: str, what: str, pattern: str, addresses: set[str]) -> set[str]:
    """Return the addresses that a listed difference explains; `pattern` is `old` or `new`."""
    patterns = [
        getattr(each, pattern) for each in DIFFERENCES if each.stack == what and environment in each.environments
    ]
    return {address for address in addresses if any(re.fullmatch(each, address) for each in patterns)}


@pytest.mark.parametrize(("environment", "what"), ALL)
def test_a_stack_has_the_addresses_of_0_1_0_but_for_the_listed_differences(environment: str, what: str) -> None:
    before, now = deployed(f"{environment}-{what}"), synthesised_now(environment, what)
    assert before, "the list does not name this stack"
    assert before - now == expected(environment, what, "old", before)
    new = {each for each in now if what == "ingestion" and any(re.fullmatch(pattern, each) for pattern in NEW)}
    assert now - before - new == expected(environment, what, "new", now)
    assert bool(new) == (what == "ingestion")


@pytest.mark.parametrize(("environment", "what"), ALL)
def test_moved_blocks_name_the_addresses_that_must_not_be_replaced(environment: str, what: str) -> None:
    before, now = deployed(f"{environment}-{what}"), synthesised_now(environment, what)
    moved = {each["from"]: each["to"] for each in stacks_of(environment)[what].get("moved", [])}
    listed = [each for each in DIFFERENCES if each.stack == what and each.is_moved]
    assert set(moved) == {address for address in before for each in listed if re.fullmatch(each.old, address)}
    assert set(moved.values()) == {address for address in now for each in listed if re.fullmatch(each.new, address)}


@pytest.mark.parametrize(("environment", "what"), ALL)
def test_no_resource_that_holds_data_leaves_its_address(environment: str, what: str) -> None:
    left = deployed(f"{environment}-{what}") - synthesised_now(environment, what)
    assert not {address for address in left if address.partition(".")[0] in HOLDS_DATA}


def test_each_listed_difference_occurs() -> None:
    removed = {
        (what, address) for name, what in ALL for address in deployed(f"{name}-{what}") - synthesised_now(name, what)
    }
    for each in DIFFERENCES:
        assert any(what == each.stack and re.fullmatch(each.old, address) for what, address in removed), each.reason
