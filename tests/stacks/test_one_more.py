"""One more pipeline: only its own resources are created, and nothing of the others is replaced."""

from __future__ import annotations

import re
from typing import Any

import pytest

from frazil.declaration import Pipeline, Table, Tableflow, Topic
from infra.confluent.managed_topic import ManagedTopic
from stacks.spec.deployments import DEPLOYMENTS, Monitoring
from tests.stacks.synthesised import EXAMPLE, EXAMPLE_TOPICS, FLOWING_PIPELINES, named, resources, synthesised

DEV = DEPLOYMENTS["dev"]
IN_PLACE = {
    ("aws_iam_policy", "policy"),  # which topics Tableflow's role may publish
    ("aws_s3_object", "content"),  # what should run
    ("aws_scheduler_schedule", "target"),  # and with which documents
}
"""Arguments that one more pipeline changes. Providers update all of them, and replace nothing for them."""
BINDING = "reader_subjects-in-effect_210AC7AB"
DEPLOYMENT = named(DEV, monitoring=Monitoring(emails=("b@example.com", "c@example.com")))
BEFORE = (*EXAMPLE, FLOWING_PIPELINES[0])


def one_more(name: str, **more: Any) -> Pipeline:
    topic = Topic(name, value="avro", key="avro")
    return Pipeline(topic=topic, table=Table(f"nyc.{name}"), **more)


def flat(stacks: dict[str, dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {
        (what, kind, name): arguments
        for what, stack in stacks.items()
        for kind, addressed in stack["resource"].items()
        for name, arguments in addressed.items()
    }


def flowing(name: str) -> Pipeline:
    topic = Topic(name, value="avro")
    return Pipeline(topic=topic, table=Table(f"flow.{name}"), engine=Tableflow())


@pytest.fixture(scope="module")
def before() -> dict[tuple[str, str, str], dict[str, Any]]:
    return flat(synthesised(DEPLOYMENT, BEFORE, EXAMPLE_TOPICS))


@pytest.mark.parametrize(
    ("where", "new"),
    [(0, one_more("aaa")), (1, one_more("hours")), (3, one_more("zzz")), (0, flowing("aaa"))],
    ids=["first", "between", "last", "tableflow"],
)
def test_one_more_pipeline_creates_its_own_resources_and_replaces_none(
    where: int, new: Pipeline, before: dict[tuple[str, str, str], dict[str, Any]]
) -> None:
    topics = (*EXAMPLE_TOPICS[:where], ManagedTopic(new.name), *EXAMPLE_TOPICS[where:])
    after = flat(synthesised(DEPLOYMENT, (*BEFORE[:where], new, *BEFORE[where:]), topics))
    gone = before.keys() - after.keys()
    assert all(before[one]["key"].startswith("documents/") for one in gone), "and these Terraform only forgets"
    made = {address for *_, address in after.keys() - before.keys() if not address.startswith("pipelines_object-")}
    assert made
    assert all(new.name in address for address in made), made
    changed = {
        (kind, address, argument)
        for what, kind, address in before.keys() & after.keys()
        for argument in before[what, kind, address].keys() | after[what, kind, address].keys()
        if argument != "depends_on"  # an order, and no argument
        and before[what, kind, address].get(argument) != after[what, kind, address].get(argument)
    }
    waiting = {("confluent_role_binding", BINDING, "crn_pattern")}
    assert {(kind, argument) for kind, _, argument in changed - waiting} <= IN_PLACE
    is_flowing = isinstance(new.engine, Tableflow)
    assert (waiting <= changed) is not is_flowing
    names_of_policies = {address for kind, address, _ in changed if kind == "aws_iam_policy"}
    assert all(address.startswith("tableflow_") for address in names_of_policies), "policies of jobs name namespaces"


def test_subscriptions_are_named_by_their_address_and_not_by_their_place() -> None:
    def addresses(*emails: str) -> dict[str, str]:
        stack = synthesised(named(DEV, monitoring=Monitoring(emails=emails)))["foundation"]
        return {each["endpoint"]: at for at, each in resources(stack, "aws_sns_topic_subscription").items()}

    few, more = addresses("b@x.org", "b.@x.org"), addresses("a@x.org", "b@x.org", "b.@x.org", "b@x.org")
    assert len(set(few.values())) == 2
    assert few.items() < more.items()


def test_the_bindings_of_subjects_wait_once_and_together() -> None:
    bindings = resources(synthesised(DEV)["confluent"], "confluent_role_binding")
    waits = {each["crn_pattern"] for each in bindings.values() if not each.get("disable_wait_for_ready")}
    last = bindings[BINDING]
    assert [pattern for pattern in waits if "subject=frazil-" in pattern] == [last["crn_pattern"]]
    subjects = {at for at, each in bindings.items() if each.get("disable_wait_for_ready")}
    assert len(subjects) == 3
    assert set(last["depends_on"]) == {f"confluent_role_binding.{at}" for at in subjects}


def test_names_that_differ_by_a_character_are_different_resources() -> None:
    names = ("a.b", "a_b", "a-b", "ab", "A.b")
    pipelines = [
        Pipeline(topic=Topic(name, value="avro"), table=Table(f"s.t{number}"), name=f"p{number}")
        for number, name in enumerate(names)
    ]
    stack = synthesised(DEV, pipelines, [ManagedTopic(name) for name in names])["confluent"]
    subjects = {each["crn_pattern"]: at for at, each in resources(stack, "confluent_role_binding").items()}
    assert len([crn for crn in subjects if crn.endswith("-value")]) == 5
    assert len(set(subjects.values())) == len(subjects)
    assert len(resources(stack, "confluent_kafka_topic")) == 5
    assert len(resources(stack, "confluent_kafka_acl")) == 6, "one for each topic, and one for groups"
    for kind in stack["resource"].values():
        assert all(re.fullmatch("[A-Za-z_][A-Za-z0-9_-]*", address) for address in kind)
