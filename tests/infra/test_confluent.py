"""Arguments of Confluent's resources are checked when they are given."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from infra import tf
from infra.confluent import cloud, tableflow
from infra.confluent import kafka_topic as kafka_resources
from infra.confluent.checks import is_token, plain
from infra.confluent.resource import Arguments, Block, Credentials, Id, Provider
from infra.tf import TerraformStack
from tests.declaration.problems_of import problems_of
from tests.infra.provider_schema import schema

KEY = Credentials(key="k", secret="s")
PLACE = {"kafka_cluster": Id(id="lkc-1"), "rest_endpoint": "https://host:443", "credentials": KEY}


def acl(**changed: Any) -> kafka_resources.KafkaAcl:
    told = {"resource_type": "TOPIC", "resource_name": "a", "principal": "User:sa-1", "operation": "READ"}
    return kafka_resources.KafkaAcl(**{**PLACE, **told, **changed})


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource_type": "topic"},
        {"pattern_type": "PREFIX"},
        {"principal": "sa-1"},
        {"operation": "ANY"},
        {"permission": "PERMIT"},
        {"rest_endpoint": "host:443"},
    ],
)
def test_a_wrong_word_is_refused(wrong: dict[str, str]) -> None:
    assert list(problems_of(lambda: acl(**wrong))) == [f"kafka_acl.{name}" for name in wrong]


def test_every_problem_is_told_at_once() -> None:
    assert len(problems_of(lambda: acl(resource_type="x", principal="x", operation="x"))) == 3


def test_a_wrong_type_is_refused() -> None:
    assert list(problems_of(lambda: acl(kafka_cluster="lkc-1"))) == ["kafka_acl.kafka_cluster"]


def test_of_kinds_and_places_there_is_exactly_one() -> None:
    none = {"display_name": "c", "availability": "LOW", "region": "eu-west-1", "environment": Id(id="env-1")}
    assert list(problems_of(lambda: cloud.KafkaCluster(**none))) == ["kafka_cluster.basic"]
    both = {
        "byob_aws": tableflow.OwnBucket(bucket_name="b", provider_integration_id="i"),
        "managed_storage": tableflow.Empty(),
    }
    topic = {"display_name": "t", "kafka_cluster": Id(id="l"), "environment": Id(id="e"), "credentials": KEY}
    assert list(problems_of(lambda: tableflow.TableflowTopic(**topic, **both))) == ["tableflow_topic.byob_aws"]


@pytest.mark.parametrize("kept", ["1d", "-1", "1000"])
def test_snapshots_are_kept_a_day_at_least(kept: str) -> None:
    topic = {
        "display_name": "t",
        "kafka_cluster": Id(id="l"),
        "environment": Id(id="e"),
        "credentials": KEY,
        "byob_aws": tableflow.OwnBucket(bucket_name="b", provider_integration_id="i"),
    }
    assert list(problems_of(lambda: tableflow.TableflowTopic(**topic, retention_ms=kept))) == [
        "tableflow_topic.retention_ms"
    ]


def test_a_role_that_is_no_role_is_refused() -> None:
    assert list(problems_of(lambda: tableflow.CustomerRole(customer_role_arn="arn:aws:iam::1:user/me")))


def test_what_terraform_fills_in_is_believed() -> None:
    stack = TerraformStack(tf.Testing.app(), "s")
    made = cloud.ServiceAccount(display_name="a").declare(stack, "a")
    assert is_token(cloud.Owner(id=made.id).id)
    assert list(problems_of(lambda: cloud.Owner(id="lkc-1"))) == ["owner.id"]


def test_nothing_in_a_text_is_evaluated_by_terraform() -> None:
    schema = kafka_resources.Schema(
        schema_registry_cluster=Id(id="lsrc-1"),
        subject_name="a-value",
        format="JSON",
        schema='{"pattern": "${aws_kms_key.key.arn} %{if}"}',
        rest_endpoint="https://host",
        credentials=KEY,
    )
    assert plain(schema)["schema"] == '{"pattern": "$${aws_kms_key.key.arn} %%{if}"}'


def test_a_token_in_another_text_is_refused() -> None:
    assert list(problems_of(lambda: acl(resource_name="${self.id}"))) == ["kafka_acl.resource_name"]


def test_what_is_not_given_is_not_written() -> None:
    assert plain(cloud.ServiceAccount(display_name="a")) == {"display_name": "a"}


def test_a_resource_is_written_with_its_dependencies_and_guard() -> None:
    stack = TerraformStack(tf.Testing.app(), "s")
    Provider(stack)
    first = cloud.ServiceAccount(display_name="a").declare(stack, "first")
    cloud.ServiceAccount(display_name="b").declare(stack, "second", depends_on=[first], is_kept=True)
    made = json.loads(tf.Testing.synth(stack))["resource"]["confluent_service_account"]
    assert made["second"]["depends_on"] == ["confluent_service_account.first"]
    assert made["second"]["lifecycle"] == {"prevent_destroy": True}
    assert "lifecycle" not in made["first"]


def kinds() -> list[type[Arguments]]:
    return sorted(Arguments.__subclasses__(), key=lambda each: each.__name__)


@pytest.mark.parametrize("kind", kinds(), ids=lambda each: each.__name__)
def test_every_field_is_an_argument_that_the_provider_knows(kind: type[Arguments]) -> None:
    section = (
        "data_source_schemas"
        if kind.__name__ in {"EnvironmentById", "KafkaClusterById", "SchemaRegistry"}
        else "resource_schemas"
    )
    block = schema("confluent")[section][kind.TYPE]["block"]
    known = {name for name, each in block["attributes"].items() if each.get("required") or each.get("optional")}
    assert {field.name for field in fields(kind)} <= known | set(block["block_types"])
    required = {name for name, each in block["attributes"].items() if each.get("required")}
    assert required <= {field.name for field in fields(kind)}


def test_every_block_is_a_value_that_is_checked() -> None:
    assert all(issubclass(each, Block) for each in (Id, Credentials, cloud.Owner, cloud.ManagedResource))
