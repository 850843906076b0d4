"""A role's policy within IAM's limits: in parts, as many as a role may have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration, Pipeline, Table, Topic
from infra import tf
from infra.iam_role import MOST_ATTACHED, ExecutionRole
from infra.names import Names
from infra.tf import TerraformStack
from policies.documents import MANAGED_LIMIT, characters
from policies.table_resources import Scope
from stacks.spec.deployments import DEPLOYMENTS, Access
from tests.stacks.synthesised import named, resources, synthesised

TRUST = {"Version": "2012-10-17", "Statement": []}
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary-frazil-dev"
LONGEST_ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:frazil/abcdefghijkl/confluent-reader-AbCdEf"


def reading(*files: str) -> dict[str, Any]:
    statement = {"Sid": "Read", "Effect": "Allow", "Action": "s3:GetObject", "Resource": list(files)}
    return {"Version": "2012-10-17", "Statement": [statement]}


def made(policy: dict[str, Any]) -> tuple[dict[str, Any], ExecutionRole]:
    stack = TerraformStack(tf.Testing.app(), "s")
    names = Names(environment="dev", account="123456789012", region="eu-central-1")
    role = ExecutionRole(stack, "r", names=names, role="reader", trust=TRUST, policy=policy, description="Reads.")
    return json.loads(tf.Testing.synth(stack))["resource"], role


def many(count: int) -> list[Pipeline]:
    return [
        Pipeline(
            topic=Topic(f"topic-{number:02}", value="avro"),
            table=Table(f"warehouse_of_sales.a_table_with_a_long_name_{number:02}"),
        )
        for number in range(count)
    ]


def filled_in(text: str) -> str:
    """A policy as it is when all references have become ARNs, none longer than those of ours."""
    from policies.documents.filling import REFERENCE

    return REFERENCE.sub(LONGEST_ARN, text)


def test_a_small_policy_is_one_managed_policy_attached_to_a_bounded_role() -> None:
    found, role = made(reading("arn:aws:s3:::b/1"))
    [policy], [attached], [bounded] = (
        list(found[kind].values()) for kind in ("aws_iam_policy", "aws_iam_role_policy_attachment", "aws_iam_role")
    )
    assert policy["name"] == "reader-1"
    assert json.loads(policy["policy"]) == reading("arn:aws:s3:::b/1")
    assert bounded["permissions_boundary"] == BOUNDARY
    assert (attached["role"].endswith(".name}"), attached["policy_arn"].endswith(".arn}")) == (True, True)
    assert len(role.ready) == 2


@pytest.mark.parametrize("count", [1, 30])
def test_roles_of_many_pipelines_fit_into_iam(count: int) -> None:
    stack = synthesised(named(DEPLOYMENTS["dev"], access=Access(scope=Scope.TABLE)), many(count), ())["ingestion"]
    policies = resources(stack, "aws_iam_policy")
    for job in ("ingest", "maintain"):
        parts = [each for each in policies.values() if each["name"].startswith(f"frazil-dev-{job}-")]
        assert (len(parts) > 1) == (count == 30)
        assert len(parts) <= MOST_ATTACHED
        for part in parts:
            assert characters(json.loads(filled_in(part["policy"]))) <= MANAGED_LIMIT
        allowed = "".join(each["policy"] for each in parts)
        assert all(f"a_table_with_a_long_name_{number:02}" in allowed for number in range(count))
    attached = resources(stack, "aws_iam_role_policy_attachment")
    assert len(attached) == len(policies)


@pytest.mark.long
def test_by_namespaces_a_role_has_one_policy_however_many_pipelines_there_are() -> None:
    few, more = (synthesised(DEPLOYMENTS["dev"], many(count), ())["ingestion"] for count in (2, 60))
    before, after = (
        {each["name"]: each["policy"] for each in resources(stack, "aws_iam_policy").values()} for stack in (few, more)
    )
    assert before == after
    assert before.keys() == {f"frazil-dev-{role}-1" for role in ("ingest", "maintain", "reconcile-ingest", "scheduler")}


def test_more_parts_than_a_role_may_have_are_refused() -> None:
    files = [f"arn:aws:s3:::a-bucket-with-a-name/{number:05}/*" for number in range(1600)]
    with pytest.raises(InvalidDeclaration) as refused:
        made(reading(*files))
    [problem] = refused.value.problems
    assert problem.path == "pipelines"
    assert f"IAM lets a role have {MOST_ATTACHED}" in str(problem)
