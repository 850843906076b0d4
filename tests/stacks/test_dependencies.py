"""What one resource needs of others, Terraform knows: of each, what it depends on is applied to an empty state, and is enough.

A plain apply passes by luck: what was forgotten is mostly made in time. `terraform apply -target=X` makes nothing but X and what X
depends on, and the stand-ins refuse what is not ready, as Confluent does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.stacks.depending import Closure, closures
from tests.support.standin_cloud import Cloud

pytestmark = [pytest.mark.long, pytest.mark.e2e, pytest.mark.timeout(1800)]


def differing(stack: dict[str, Any]) -> list[str]:
    """The resources that depend on others; of those of one type whose dependencies are of the same types, one."""
    chosen: dict[tuple[str, Closure], str] = {}
    for address, needed in sorted(closures(stack).items()):
        kinds = frozenset(each.rpartition(".")[0] for each in needed)
        if any(not kind.startswith(("data.", "local")) for kind in kinds):
            chosen.setdefault((address.partition(".")[0] + str(len(needed)), kinds), address)
    return sorted(chosen.values())


@pytest.fixture
def empty(founded: Cloud) -> Iterator[Cloud]:
    """The cloud with its foundation, and Terraform's state of the stack of Confluent empty."""
    if not founded_outputs(founded):
        founded.declare()
        founded.apply("foundation")  # tests of its removal have run before
    forget(founded)
    yield founded
    forget(founded)


def founded_outputs(cloud: Cloud) -> dict[str, Any]:
    """Return the outputs of the foundation, which is deployed if it has some."""
    return dict(json.loads(cloud.state_file("foundation").read_text()).get("outputs", {}))


def forget(cloud: Cloud) -> None:
    """Take away all that the stack of Confluent has made, and what Terraform knows of it."""
    cloud.state_file("confluent").unlink(missing_ok=True)
    cloud.organization_file.unlink(missing_ok=True)
    if ours := {"flights", "clicks"} & cloud.partitions().keys():
        cloud.delete_topics(*ours)
    if cloud.schemas("clicks-value"):
        cloud.registry.delete_subject("clicks-value")
    forget_rights(cloud)
    for secret in cloud.aws("secretsmanager").list_secrets()["SecretList"]:
        cloud.aws("secretsmanager").delete_secret(SecretId=secret["ARN"], ForceDeleteWithoutRecovery=True)


def forget_rights(cloud: Cloud) -> None:
    iam = cloud.aws("iam")
    for role in iam.list_roles()["Roles"]:
        for each in iam.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=role["RoleName"], PolicyArn=each["PolicyArn"])
        iam.delete_role(RoleName=role["RoleName"])
    for policy in iam.list_policies(Scope="Local")["Policies"]:
        iam.delete_policy(PolicyArn=policy["Arn"])


def test_each_resource_of_confluent_depends_on_all_that_it_needs(empty: Cloud) -> None:
    chosen = differing(empty.stack("confluent"))
    assert len(chosen) >= 20
    for address in chosen:
        ended = empty.run("confluent", "apply", "-auto-approve", f"-target={address}")
        assert ended.returncode == 0, f"{address}: {ended.stderr}"
        forget(empty)


@pytest.mark.parametrize(
    ("kind", "dropped", "told"),
    [
        ("confluent_kafka_topic", "confluent_role_binding.", "403 Forbidden"),
        ("confluent_tableflow_topic", "aws_iam_role_policy_attachment.", "its rights missing"),
        ("confluent_tableflow_topic", "confluent_schema.", "has no schema clicks-value"),
        ("confluent_catalog_integration", "confluent_tableflow_topic.", "no table to publish"),
    ],
)
def test_what_was_forgotten_is_told(empty: Cloud, kind: str, dropped: str, told: str) -> None:
    stack = empty.stack("confluent")
    target = next(each for each in sorted(closures(stack)) if each.startswith(f"{kind}.") and "views" not in each)
    for named in stack["resource"].values():
        for arguments in named.values():
            kept = [each for each in arguments.get("depends_on", ()) if not each.startswith(dropped)]
            arguments["depends_on"] = kept
    file = empty.folder / "cdktf.out" / "stacks" / "local-confluent" / "cdk.tf.json"
    whole = file.read_text()
    try:
        file.write_text(json.dumps(stack))
        ended = empty.run("confluent", "apply", "-auto-approve", f"-target={target}")
    finally:
        file.write_text(whole)
    assert ended.returncode == 1
    assert told in " ".join(ended.stderr.replace("│", " ").split())


_STATE = """
import dataclasses
from frazil.declaration import Upsert
from infra.confluent.managed_topic import Cleanup
pipelines[2] = dataclasses.replace(pipelines[2], write=Upsert())
topics[1] = dataclasses.replace(topics[1], cleanup=Cleanup.COMPACT)
"""


def test_a_write_mode_that_confluent_does_not_choose_is_told(empty: Cloud) -> None:
    def applied() -> Any:
        tables = (
            each for each in sorted(closures(empty.stack("confluent"))) if each.startswith("confluent_tableflow_topic.")
        )
        target = next(each for each in tables if "clicks" in each)
        return empty.run("confluent", "apply", "-auto-approve", f"-target={target}")

    file = empty.folder / "cdktf.out" / "stacks" / "local-confluent" / "cdk.tf.json"
    try:
        empty.declare(more=_STATE)
        ended = applied()
        assert ended.returncode == 0, ended.stderr
        forget(empty)
        file.write_text(file.read_text().replace('"cleanup.policy": "compact"', '"cleanup.policy": "delete"'))
        ended = applied()
        assert ended.returncode == 1
        told = " ".join(ended.stderr.replace("│", " ").split())
        assert "Confluent lands clicks in another write mode: a state needs a topic with cleanup.policy compact" in told
    finally:
        empty.declare()
