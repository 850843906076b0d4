"""Arguments of Confluent's resources, as the provider knows them."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from infra import tf
from infra.confluent import cloud
from infra.confluent import kafka_topic as kafka_resources
from infra.confluent.resource import Arguments, Credentials, Id, Provider, is_token, plain
from infra.tf import TerraformStack
from tests.infra.provider_schema import schema

KEY = Credentials(key="k", secret="s")


def test_a_token_is_told_from_a_text() -> None:
    stack = TerraformStack(tf.Testing.app(), "s")
    assert is_token(cloud.ServiceAccount(display_name="a").declare(stack, "a").id)
    assert not is_token("${self.id}")


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
