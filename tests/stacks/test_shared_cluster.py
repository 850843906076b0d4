"""A cluster that others own: what Frazil may do there, and what it makes if its keys are given."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import Hmac, Pipeline, Secret, Shape, Table, Topic
from infra.confluent.managed_topic import ManagedTopic, SchemaFormat, ValueSchema
from stacks.spec.deployments import DEPLOYMENTS, Confluent, Deployment
from stacks.stacks.compose import compose
from stacks.stacks.quotas import exceeded
from tests.declaration.problems_of import problems_of
from tests.infra.provider_schema import misfits
from tests.stacks.synthesised import (
    EXAMPLE,
    EXAMPLE_TOPICS,
    FLOWING_PIPELINES,
    FLOWING_TOPICS,
    named,
    resources,
    stacks_of,
    synthesised,
)

PROD = DEPLOYMENTS["prod"]
SECRET = f"arn:aws:secretsmanager:{PROD.region}:{PROD.account}:secret:frazil/prod/kafka-Ab1Cd2"
WITH_SCHEMA = (*EXAMPLE_TOPICS, ManagedTopic("pay.orders", schema=ValueSchema(format=SchemaFormat.AVRO, file="o.avsc")))


def prod(**changed: Any) -> Deployment:
    return named(PROD, confluent=replace(PROD.confluent, **changed))


def bindings(stack: dict[str, Any], account: str = "") -> set[tuple[str, str]]:
    """Role and the end of the CRN of each binding, without those that only wait; of the accounts with this name."""
    return {
        (each["role_name"], re.sub(r"\$\{[^}]+\}", "", each["crn_pattern"]))
        for name, each in resources(stack, "confluent_role_binding").items()
        if name.startswith(account) and "frazil-waited-" not in each["crn_pattern"]
    }


def test_the_manager_owns_the_declared_topics_and_subjects_and_nothing_else() -> None:
    stack = synthesised(PROD, EXAMPLE, WITH_SCHEMA)["confluent"]
    assert bindings(stack, "manager") == {
        ("ResourceOwner", "/kafka=/topic=flights"),
        ("ResourceOwner", "/kafka=/topic=planes"),
        ("ResourceOwner", "/kafka=/topic=pay.orders"),
        ("ResourceOwner", "/subject=pay.orders-value"),
    }
    assert bindings(stack, "reader") == {
        ("DeveloperRead", "/kafka=/group=frazil-*"),
        ("DeveloperRead", "/kafka=/topic=flights"),
        ("DeveloperRead", "/kafka=/topic=planes"),
        ("DeveloperRead", "/subject=flights-value"),
        ("DeveloperRead", "/subject=planes-key"),
        ("DeveloperRead", "/subject=planes-value"),
    }
    assert not resources(stack, "confluent_kafka_acl"), "an ACL needs an administrator of the cluster"
    assert "Admin" not in json.dumps(stack["resource"])


def test_a_key_waits_until_the_rights_that_its_probe_needs_are_in_effect() -> None:
    stack = synthesised(PROD, EXAMPLE, WITH_SCHEMA)["confluent"]
    keys = resources(stack, "confluent_api_key")
    for what in ("kafka", "registry"):
        [key] = [key for name, key in keys.items() if name.startswith(f"manager_{what}_")]
        [waited] = key["depends_on"]
        kind = "topics" if what == "kafka" else "subjects"
        assert waited.startswith(f"confluent_role_binding.manager_{kind}-in-effect_")
        [in_effect] = [resources(stack, "confluent_role_binding")[waited.partition(".")[2]]]
        assert in_effect["role_name"] == "DeveloperRead", "the object that does not exist is not the manager's"
        assert "disable_wait_for_ready" not in in_effect


def test_what_needs_no_key_has_none() -> None:
    stack = synthesised(PROD, EXAMPLE, ())["confluent"]
    assert {name.partition("_")[0] for name in resources(stack, "confluent_api_key")} == {"reader"}
    assert len(resources(stack, "confluent_service_account")) == 1
    assert {name.rpartition("_")[0] for name in resources(stacks_of("prod")["confluent"], "confluent_api_key")} == {
        "manager_kafka",
        "reader_kafka",
        "reader_registry",
    }


def test_a_prefix_has_one_binding_for_its_topics_and_one_for_its_subjects() -> None:
    deployment = prod(topic_prefixes=("pay.",), subject_prefixes=("pay.",))
    pipeline = Pipeline(topic=Topic("pay.orders", value="avro"), table=Table("pay.orders"))
    stack = synthesised(deployment, (pipeline,), WITH_SCHEMA[-1:])["confluent"]
    assert bindings(stack, "manager") == {
        ("ResourceOwner", "/kafka=/topic=pay.*"),
        ("ResourceOwner", "/subject=pay.*"),
    }
    assert ("DeveloperRead", "/kafka=/topic=pay.*") in bindings(stack, "reader")


def test_an_administrator_of_a_cluster_of_others_has_what_it_had_before() -> None:
    """The addresses of a cluster that Frazil made; only the objects that it looks up differ."""
    shared = synthesised(prod(is_administered=True))["confluent"]
    made = stacks_of("staging")["confluent"]
    for kind in ("confluent_api_key", "confluent_kafka_acl", "confluent_role_binding", "confluent_service_account"):
        assert resources(shared, kind).keys() == resources(made, kind).keys(), kind


def test_the_quota_counts_the_bindings_that_are_synthesised() -> None:
    stack = synthesised(PROD, EXAMPLE, WITH_SCHEMA)["confluent"]
    count = len(resources(stack, "confluent_role_binding"))
    assert not list(exceeded(prod(most_role_bindings=count), EXAMPLE, WITH_SCHEMA))
    [problem] = exceeded(prod(most_role_bindings=count - 1), EXAMPLE, WITH_SCHEMA)
    assert f"{count} role bindings would be needed" in problem.what
    assert "topic_prefixes" in problem.do


def secrets_read(ingestion: dict[str, Any]) -> set[str]:
    """Return the secrets that the jobs of a stack may read."""
    return {
        resource
        for policy in resources(ingestion, "aws_iam_policy").values()
        for statement in json.loads(policy["policy"])["Statement"]
        if "secretsmanager:GetSecretValue" in statement["Action"]
        for resource in statement["Resource"]
    }


def test_jobs_may_read_the_secrets_of_their_masks() -> None:
    def masked(name: str) -> tuple[Pipeline, ...]:
        return tuple(replace(each, shape=Shape(mask={"x": Hmac(Secret(secretsmanager=name))})) for each in EXAMPLE)

    stacks = synthesised(prod(reader_secret=SECRET), masked(SECRET.replace("kafka", "mask")), ())
    assert secrets_read(stacks["ingestion"]) == {SECRET, SECRET.replace("kafka", "mask")}
    problems = problems_of(lambda: synthesised(PROD, masked("frazil/prod/mask"), ()))
    assert f"which begins with {SECRET.partition('kafka')[0]}" in problems["pipelines.shape"]


def test_with_a_given_reader_nothing_is_made_for_it_and_jobs_may_read_that_secret_only() -> None:
    stacks = synthesised(prod(reader_secret=SECRET), EXAMPLE, ())
    assert "resource" not in stacks["confluent"], "no account, key, ACL, binding or secret"
    assert secrets_read(stacks["ingestion"]) == {SECRET}
    [text] = [value for name, value in stacks["ingestion"]["locals"].items() if name == "environment-text"]
    assert json.loads(text)["kafka"]["password"] == {"field": "kafka_secret", "secretsmanager": SECRET}
    assert not [name for name in stacks["confluent"].get("output", {}) if "secret" in name]


def test_with_a_given_manager_topics_are_made_by_its_keys_and_it_gets_no_right() -> None:
    stack = synthesised(prod(reader_secret=SECRET, manager_secret=SECRET), EXAMPLE, WITH_SCHEMA)["confluent"]
    assert stack["resource"].keys() == {"confluent_kafka_topic", "confluent_schema"}
    assert misfits(stack) == []
    [source] = stack["data"]["aws_secretsmanager_secret_version"].values()
    assert source["secret_id"] == SECRET
    for topic in resources(stack, "confluent_kafka_topic").values():
        assert topic["credentials"]["key"].endswith(".secret_string).kafka_key}")
        assert topic["credentials"]["secret"].endswith(".secret_string).kafka_secret}")
    [schema] = resources(stack, "confluent_schema").values()
    assert schema["credentials"]["secret"].endswith(".secret_string).registry_secret}")


def refused(deployment: Deployment, *pipelines: Pipeline) -> dict[str, str]:
    from infra.tf import App

    topics = (*EXAMPLE_TOPICS, *FLOWING_TOPICS)
    return problems_of(lambda: compose(App(), deployment, pipelines or EXAMPLE, topics, text_of=lambda file: "{}"))


@pytest.mark.parametrize(
    "arn",
    [
        SECRET.replace("eu-central-1", "us-east-1"),
        SECRET.replace("arn:aws:", "arn:aws-cn:"),
        SECRET.replace(PROD.account, "999999999999"),
        SECRET.replace("frazil/prod/", "frazil/staging/"),
        SECRET.replace("kafka-", "confluent-reader-"),
    ],
)
@pytest.mark.parametrize("field", ["reader_secret", "manager_secret"])
def test_a_secret_that_no_role_may_read_is_refused(arn: str, field: str) -> None:
    assert list(refused(prod(**{field: arn}))) == [f"deployment.confluent.{field}"]


def test_tableflow_needs_an_administrator_and_says_so() -> None:
    told = refused(PROD, *FLOWING_PIPELINES)
    assert list(told) == ["deployment.confluent.is_administered"]
    stack = synthesised(prod(is_administered=True), FLOWING_PIPELINES[:1], FLOWING_TOPICS)["confluent"]
    assert len(resources(stack, "confluent_tableflow_topic")) == 1


@pytest.mark.parametrize(
    ("values", "paths"),
    [
        ({"is_administered": True}, ["confluent.is_administered"]),
        ({"reader_secret": SECRET}, ["confluent.reader_secret"]),
        ({"topic_prefixes": ("a.",)}, ["confluent.topic_prefixes"]),
        (
            {"environment_id": "env-1", "cluster_id": "lkc-1", "is_administered": True, "topic_prefixes": ("a.",)},
            ["confluent.topic_prefixes"],
        ),
        (
            {"environment_id": "env-1", "cluster_id": "lkc-1", "is_administered": True, "manager_secret": SECRET},
            ["confluent.manager_secret"],
        ),
        ({"environment_id": "env-1", "cluster_id": "lkc-1", "reader_secret": SECRET[:-7]}, ["confluent.reader_secret"]),
    ],
)
def test_contradictions_of_a_cluster_are_found(values: dict[str, Any], paths: list[str]) -> None:
    assert list(problems_of(lambda: Confluent(**values))) == paths
