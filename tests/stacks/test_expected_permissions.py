"""What deployments change day by day asks nobody for new permissions, and one foreign permission among it does."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import Avro, Pipeline, Spark, SubjectStrategy, Table, Topic, Upsert
from infra.capacity import Capacity
from infra.confluent.managed_topic import ManagedTopic, SchemaFormat, ValueSchema
from policies.review.plan.plan_gaps import StackPlan
from policies.review.prices import price_table
from policies.review.review import Review, review
from stacks.spec.deployments import DEPLOYMENTS, Access, Deployment, GitHub
from stacks.workflow.review import access_of
from stacks.workflow.terraform_plans import declared_pipelines
from tests.policies.reviewing import TODAY
from tests.stacks.simulated_plans import planned, simulated
from tests.stacks.synthesised import (
    EXAMPLE,
    EXAMPLE_TOPICS,
    FLOWING_PIPELINES,
    FLOWING_TOPICS,
    GOVERNED_DEV,
    every_stack,
    named,
    synthesised,
)

WEATHER = Pipeline(topic=Topic("weather", value="avro"), table=Table("sky.weather"))
MANAGED = ManagedTopic("weather", schema=ValueSchema(format=SchemaFormat.AVRO, file="w.avsc"))
ROOMY = replace(DEPLOYMENTS["dev"].runs, capacity=Capacity(cores=80, memory_gb=320, disk_gb=2000))
DEV, PROD = (named(DEPLOYMENTS[name], runs=ROOMY) for name in ("dev", "prod"))
ANALYSTS, VENDOR = "arn:aws:iam::111111111111:role/a", "arn:aws:iam::222222222222:user/v"
ENVIRONMENTS = {
    "dev": DEV,
    "prod": PROD,
    "administered": named(PROD, confluent=replace(PROD.confluent, is_administered=True)),
    "prefixes": named(
        PROD, confluent=replace(PROD.confluent, topic_prefixes=("pay.",), subject_prefixes=("pay.", "ord-"))
    ),
    "governed": named(GOVERNED_DEV, runs=ROOMY),
    "readers": named(
        DEV,
        access=Access(
            readers=(ANALYSTS, VENDOR),
            external_ids={VENDOR: "AB12345"},
            deployers=(ANALYSTS,),
            github=GitHub(repository="shop/lake"),
        ),
    ),
}
EVERYDAY = ("dev", "prefixes", "governed")
PERMISSIONS = {"policy_widened", "retention_under_lag"}


def made(deployment: Deployment, *pipelines: Pipeline, topics: tuple[ManagedTopic, ...] = ()) -> dict[str, Any]:
    return synthesised(deployment, (*EXAMPLE, *pipelines), (*EXAMPLE_TOPICS, *topics))


def reviewed(
    deployment: Deployment,
    after: dict[str, Any],
    before: dict[str, Any] | None = None,
    *,
    access: Deployment | None = None,
) -> Review:
    """The review of stacks, by what this deployment or another one declares."""
    stacks = planned(deployment.name, after, before)
    return review(deployment.name, stacks, prices=price_table(), today=TODAY, access=access_of(access or deployment))


def permissions(found: Review) -> list[tuple[str, str, str]]:
    return [(each.rule, each.resource, each.what) for each in found.dangers if each.rule in PERMISSIONS]


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name in EVERYDAY else pytest.mark.long) for name in ENVIRONMENTS],
)
def environment(request: pytest.FixtureRequest) -> tuple[Deployment, dict[str, Any]]:
    """A deployment, and the stacks of the example."""
    deployment = ENVIRONMENTS[request.param]
    return deployment, made(deployment)


def test_a_first_deployment_has_no_new_permission(environment: tuple[Deployment, dict[str, Any]]) -> None:
    deployment, stacks = environment
    assert permissions(reviewed(deployment, stacks)) == []
    assert permissions(reviewed(deployment, stacks, stacks)) == []


@pytest.mark.parametrize("group", [None, "payments"])
def test_a_pipeline_that_is_added_has_no_new_permission(
    environment: tuple[Deployment, dict[str, Any]], group: str | None
) -> None:
    deployment, before = environment
    other = replace(WEATHER, engine=Spark(group=group), write=Upsert())
    record = Pipeline(
        topic=Topic("pay.orders", value=Avro(subject_strategy=SubjectStrategy.RECORD)),
        table=Table("sky.orders"),
        engine=Spark(group=group),
    )
    after = made(deployment, other, record, topics=(MANAGED,))
    found = reviewed(deployment, after, before)
    # The scheduler's role exists, and may start the runs of one more group: a person agrees to that.
    scheduler = {where.partition("_rights")[0] for _, where, _ in permissions(found)}
    assert scheduler == ({"aws_iam_policy.scheduler-role"} if group else set())
    assert {each.verb for each in found.changes if each.type in {"confluent_role_binding", "confluent_kafka_acl"}}
    back = permissions(reviewed(deployment, before, after))
    assert back == [], "what is no longer declared goes"


def test_a_first_pipeline_of_tableflow_has_no_new_permission() -> None:
    after = made(DEV, *FLOWING_PIPELINES, topics=FLOWING_TOPICS)
    assert permissions(reviewed(DEV, after, made(DEV))) == []


def test_the_roles_of_the_owner_let_in_whom_the_deployment_declares() -> None:
    deployment = ENVIRONMENTS["readers"]
    stack = {"owner": every_stack(deployment)["owner"]}
    of_roles, found = (
        {where for _, where, _ in permissions(reviewed(deployment, stack, access=access)) if "_role." in where}
        for access in (deployment, DEV)
    )
    assert of_roles == set()
    assert found == {f"aws_iam_role.{name}" for name in stack["owner"]["resource"]["aws_iam_role"]}


def test_a_foreign_permission_among_it_is_the_one_danger(environment: tuple[Deployment, dict[str, Any]]) -> None:
    deployment, before = environment
    after = copy.deepcopy(made(deployment, WEATHER, topics=(MANAGED,)))
    ingestion, confluent = after["ingestion"]["resource"], after["confluent"]["resource"]
    roles, policies = ingestion["aws_iam_role"], ingestion["aws_iam_policy"]
    [ingest] = [name for name in roles if name.startswith("ingest-role")]
    [maintains] = [name for name in policies if name.startswith("maintain-role_rights")]
    ingestion["aws_iam_role_policy_attachment"]["more"] = {
        "role": f"${{aws_iam_role.{ingest}.name}}",
        "policy_arn": f"${{aws_iam_policy.{maintains}.arn}}",
    }
    [account] = [name for name in confluent["confluent_service_account"] if name.startswith("reader")]
    [crn] = {
        each["crn_pattern"].replace("=flights-value", "=salaries-value")
        for each in confluent["confluent_role_binding"].values()
        if each["crn_pattern"].endswith("/subject=flights-value")
    }
    confluent["confluent_role_binding"]["more"] = {
        "principal": f"User:${{confluent_service_account.{account}.id}}",
        "role_name": "DeveloperRead",
        "crn_pattern": crn,
    }
    for of in (None, before):
        found = {(rule, where) for rule, where, _ in permissions(reviewed(deployment, after, of))}
        attached = {("policy_widened", "aws_iam_role_policy_attachment.more")} if of else set()
        assert found == {("policy_widened", "confluent_role_binding.more"), *attached}


def test_a_stack_that_is_deployed_alone_is_reviewed_with_the_pipelines_of_all(tmp_path: Path) -> None:
    before, after = made(DEV), made(DEV, WEATHER, topics=(MANAGED,))
    for what, stack in after.items():
        (tmp_path / f"dev-{what}").mkdir()
        (tmp_path / f"dev-{what}" / "cdk.tf.json").write_text(json.dumps(stack))
    pipelines, change = (
        declared_pipelines([tmp_path / "dev-confluent"]),
        simulated(after["confluent"], before["confluent"]),
    )
    alone = StackPlan(name="dev-confluent", synthesised=after["confluent"], plan=change, pipelines=pipelines)
    of_all, of_none = (
        review("dev", [each], prices=price_table(), today=TODAY, access=access_of(DEV))
        for each in (alone, replace(alone, pipelines=()))
    )
    assert permissions(of_all) == []
    assert {where.partition(".")[0] for _, where, _ in permissions(of_none)} == {
        "confluent_kafka_acl",
        "confluent_role_binding",
    }
