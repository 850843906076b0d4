"""Arguments of Confluent's resources, as the provider knows them."""

from __future__ import annotations

import json

from infra import tf
from infra.confluent.resource import Declared, Provider, is_token, plain
from infra.tf import TerraformStack

ACCOUNT = "confluent_service_account"


def test_a_token_is_told_from_a_text() -> None:
    stack = TerraformStack(tf.Testing.app(), "s")
    assert is_token(Declared(stack, "a", ACCOUNT, display_name="a").id)
    assert not is_token("${self.id}")


def test_nothing_in_a_text_is_evaluated_by_terraform() -> None:
    assert plain({"schema": '{"pattern": "${aws_kms_key.key.arn} %{if}"}'}) == {
        "schema": '{"pattern": "$${aws_kms_key.key.arn} %%{if}"}'
    }


def test_a_resource_is_written_with_its_dependencies_and_guard() -> None:
    stack = TerraformStack(tf.Testing.app(), "s")
    Provider(stack)
    first = Declared(stack, "first", ACCOUNT, display_name="a")
    Declared(stack, "second", ACCOUNT, depends_on=[first], is_kept=True, display_name="b")
    made = json.loads(tf.Testing.synth(stack))["resource"][ACCOUNT]
    assert made["second"]["depends_on"] == ["confluent_service_account.first"]
    assert made["second"]["lifecycle"] == {"prevent_destroy": True}
    assert "lifecycle" not in made["first"]
