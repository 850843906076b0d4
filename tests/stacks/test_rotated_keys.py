"""The steps of a rotation, applied to stand-ins: at each of them, the secret holds a key that exists."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from stacks.spec.deployments import Confluent
from tests.stacks.test_cluster_of_others import IDS, PIPELINES
from tests.support.composed_cloud import ComposedCloud, composed
from tests.support.standin_cloud import LOCAL, Cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture
def rotating(founded: Cloud, tmp_path: Path) -> Iterator[ComposedCloud]:
    founded.declare()
    founded.apply("foundation")  # tests of its removal may have run before
    yield composed(founded, tmp_path)
    founded.aws("secretsmanager").delete_secret(
        SecretId=LOCAL.names.secret("confluent-reader"), ForceDeleteWithoutRecovery=True
    )


def at(rotating: ComposedCloud, step: int) -> tuple[set[str], set[str]]:
    """Apply a step. Return the names of the readers' keys that exist, and of those in the secret."""
    rotating.declare(Confluent(**IDS), PIPELINES, (), key_step=step)
    rotating.apply()
    assert rotating.run("plan", "-detailed-exitcode").returncode == 0
    exist = rotating.organization["api_key"]
    manager = rotating.cloud.aws("secretsmanager")
    secret = json.loads(manager.get_secret_value(SecretId=LOCAL.names.secret("confluent-reader"))["SecretString"])
    used = {secret[f"{what}_key"]: secret[f"{what}_secret"] for what in ("kafka", "registry")}
    for key, value in used.items():
        assert exist[key]["secret"] == value, "the key in the secret exists, and its secret is right"
    return {each["display_name"] for each in exist.values()}, {exist[key]["display_name"] for key in used}


def test_a_step_that_was_interrupted_is_finished_by_the_next_apply(rotating: ComposedCloud) -> None:
    at(rotating, 0)
    rotating.declare(Confluent(**IDS), PIPELINES, (), key_step=1)
    stack = json.loads((rotating.stack / "cdk.tf.json").read_text())
    [kafka] = [name for name in stack["resource"]["confluent_api_key"] if name.startswith("reader_kafka-b_")]
    ended = rotating.run("apply", "-auto-approve", f"-target=confluent_api_key.{kafka}")
    assert ended.returncode == 0, ended.stderr
    exist, used = at(rotating, 1)
    assert (len(exist), {each[-2:] for each in used}) == (4, {"-b"})
