"""A cluster of others, deployed to stand-ins: by an account with few rights, after one that administered, and by given keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import Pipeline, Table, Topic
from infra.confluent.managed_topic import ManagedTopic, SchemaFormat, ValueSchema
from stacks.spec.deployments import Confluent
from tests.support.composed_cloud import ComposedCloud, composed
from tests.support.standin_cloud import LOCAL, Cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(900)]

IDS = {"environment_id": "env-shared", "cluster_id": "lkc-shared"}
PIPELINES = (
    Pipeline(topic=Topic("pay.orders", value="avro"), table=Table("nyc.orders")),
    Pipeline(topic=Topic("rides", value="avro"), table=Table("nyc.rides")),
)
TOPICS = (
    ManagedTopic("pay.orders", partitions=2, schema=ValueSchema(format=SchemaFormat.AVRO, file="o.avsc")),
    ManagedTopic("rides", partitions=1),
)


@pytest.fixture
def shared(founded: Cloud, tmp_path: Path) -> Iterator[ComposedCloud]:
    founded.declare()
    founded.apply("foundation")  # tests of its removal may have run before
    yield composed(founded, tmp_path)
    if made := {topic.name for topic in TOPICS} & founded.partitions().keys():
        founded.delete_topics(*made)
    if founded.schemas("pay.orders-value"):
        founded.registry.delete_subject("pay.orders-value")
    for secret in founded.aws("secretsmanager").list_secrets()["SecretList"]:
        founded.aws("secretsmanager").delete_secret(SecretId=secret["ARN"], ForceDeleteWithoutRecovery=True)


def roles(shared: ComposedCloud) -> set[str]:
    return {binding["role_name"] for binding in shared.organization["role_binding"].values()}


def test_the_rights_on_declared_topics_and_subjects_are_enough(shared: ComposedCloud) -> None:
    shared.declare(Confluent(**IDS), PIPELINES, TOPICS)
    shared.apply()
    assert roles(shared) == {"ResourceOwner", "DeveloperRead"}
    assert shared.cloud.partitions()["pay.orders"] == 2
    assert len(shared.cloud.schemas("pay.orders-value")) == 1
    assert shared.run("plan", "-detailed-exitcode").returncode == 0
    assert not shared.organization.get("kafka_acl")


def test_a_topic_that_the_manager_does_not_own_is_refused(shared: ComposedCloud) -> None:
    shared.declare(Confluent(**IDS), PIPELINES, TOPICS)
    file = shared.stack / "cdk.tf.json"
    stack = json.loads(file.read_text())
    for name, binding in stack["resource"]["confluent_role_binding"].items():
        if name.startswith("manager_topic-rides"):
            binding["role_name"] = "DeveloperRead"
        if name.startswith("manager_subject-pay"):
            binding["crn_pattern"] = binding["crn_pattern"].replace("pay.orders-value", "rides-value")
    file.write_text(json.dumps(stack))
    ended = shared.run("apply", "-auto-approve")
    assert ended.returncode == 1
    told = " ".join(ended.stderr.replace("│", " ").split())
    assert told.count("403 Forbidden") == 2, told
    assert "/kafka=lkc-shared/topic=rides" in told
    assert "/subject=pay.orders-value" in told
    assert "rides" not in shared.cloud.partitions()


def test_an_administrator_of_before_gives_its_rights_back_and_the_topics_stay(shared: ComposedCloud) -> None:
    shared.declare(Confluent(**IDS, is_administered=True), PIPELINES, TOPICS)
    shared.apply()
    assert "CloudClusterAdmin" in roles(shared)
    assert len(shared.organization["kafka_acl"]) == 3
    shared.declare(Confluent(**IDS), PIPELINES, TOPICS)
    planned = shared.run("plan", "-out=plan")
    assert planned.returncode == 0, planned.stderr
    told = json.loads(show(shared))
    changed = {
        each["address"].partition(".")[0] for each in told["resource_changes"] if each["change"]["actions"] != ["no-op"]
    }
    assert not changed & {"confluent_kafka_topic", "confluent_schema", "aws_secretsmanager_secret_version"}, changed
    shared.apply()
    assert roles(shared) == {"ResourceOwner", "DeveloperRead"}
    assert shared.organization["kafka_acl"] == {}
    assert shared.cloud.partitions()["rides"] == 1
    assert shared.run("plan", "-detailed-exitcode").returncode == 0


def show(shared: ComposedCloud) -> str:
    """The plan as JSON: `show` takes no `-input`."""
    return shared.cloud.terraform.run(shared.stack, "show", "-json", "plan", **shared.settings).stdout


def test_with_given_keys_topics_are_made_and_nothing_else(shared: ComposedCloud) -> None:
    organization = shared.organization
    crn = "crn://confluent.cloud/organization=standin/environment=env-shared"
    key: dict[str, Any] = {"owner": [{"id": "sa-owner"}], "secret": "s3cret"}
    organization |= {
        "service_account": {"sa-owner": {"display_name": "platform"}},
        "role_binding": {
            "rb-1": {"principal": "User:sa-owner", "role_name": "EnvironmentAdmin", "crn_pattern": crn},
        },
        "api_key": {
            "KAFKA": {**key, "managed_resource": [{"id": "lkc-shared"}]},
            "REGISTRY": {**key, "managed_resource": [{"id": "lsrc-shared"}]},
        },
    }
    (shared.folder / "organization.json").write_text(json.dumps(organization))
    keys = {"kafka_key": "KAFKA", "registry_key": "REGISTRY", "kafka_secret": "s3cret", "registry_secret": "s3cret"}
    made = shared.cloud.aws("secretsmanager").create_secret(
        Name=LOCAL.names.secret("platform"), SecretString=json.dumps(keys)
    )
    given = Confluent(**IDS, reader_secret=made["ARN"], manager_secret=made["ARN"])
    shared.declare(given, PIPELINES, TOPICS)
    shared.apply()
    after = shared.organization
    for kind in ("service_account", "role_binding", "api_key"):
        assert after[kind].keys() == organization[kind].keys(), kind
    assert not after.get("kafka_acl")
    assert shared.cloud.partitions()["pay.orders"] == 2
    assert len(shared.cloud.aws("secretsmanager").list_secrets()["SecretList"]) == 1
    shown = shared.run("plan").stdout
    assert "s3cret" not in shown
    assert shared.run("plan", "-detailed-exitcode").returncode == 0
