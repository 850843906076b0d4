"""Roles of those whom a deployment names: made for them only, and fitting the keys that are really written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from frazil.declaration import Pipeline, Table, Topic
from frazil.rollout.state import kept_key, state_key
from policies.resource_changes import Change, Verb
from policies.resource_values import Facts
from policies.resources import Reviewed
from policies.review.policy_diff import follows_from
from policies.rules.new_permissions import policy_widened
from policies.table_resources import Scope
from stacks.spec.deployments import DEPLOYMENTS, Access, dev
from tests.stacks.synthesised import EXAMPLE, TODAY, named, resources, stacks_of, synthesised
from tests.stacks.terraform_text import policies_of, worked_out
from tests.support.iam_evaluation import Request, Verdict, evaluate

READER, OPERATOR = (f"arn:aws:iam::{dev.account}:role/{name}" for name in ("analysts", "operators"))
KNOWN = {"spark_application_7070AC67id": "00f1abc2def3gh45", "kms_keykey_F64E54E4arn": "arn:aws:kms:::key/1"}
NAMES = DEPLOYMENTS["local"].names
ARTIFACTS, LOGS = (f"arn:aws:s3:::{NAMES.bucket(what)}" for what in ("artifacts", "logs"))
NEW = {"s3:if-none-match": "*"}


def roles(stack: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {role["name"]: role for role in resources(stack, "aws_iam_role").values()}


def may(role: str, action: str, resource: str, context: dict[str, str] | None = None) -> bool:
    documents = policies_of(stacks_of("local")["ingestion"], NAMES.role(role), KNOWN)
    return evaluate(Request(action=action, resource=resource, context=context or {}), documents).is_allowed


def assumed(role: dict[str, Any], principal: str, **context: str) -> Verdict:
    given: dict[str, str | list[str]] = {f"sts:{key}": value for key, value in context.items()}
    request = Request(
        action="sts:AssumeRole", resource="arn:aws:iam::1:role/it", principal=principal, context=dict(given)
    )
    return evaluate(request, [], json.loads(role["assume_role_policy"])).verdict


def test_of_nobody_no_role_is_made() -> None:
    assert roles(stacks_of("prod")["ingestion"]).keys() == {
        f"frazil-prod-{job}" for job in ("ingest", "maintain", "reconcile-ingest", "scheduler")
    }


def test_each_role_is_for_those_who_are_named_for_it() -> None:
    deployment = named(dev, access=Access(readers=(READER,), reconcilers=(OPERATOR,)))
    made = roles(synthesised(deployment)["ingestion"])
    verdicts = {
        (name, who): assumed(made[f"frazil-dev-{name}"], who)
        for name in ("reader", "reconciler")
        for who in (READER, OPERATOR)
    }
    allowed = {pair for pair, verdict in verdicts.items() if verdict is Verdict.ALLOWED}
    assert allowed == {("reader", READER), ("reconciler", OPERATOR)}


def test_a_reader_with_an_external_id_must_send_its_own_and_the_others_need_none() -> None:
    ids = {"arn:aws:iam::888888888888:user/snow": "SNOW=1", "arn:aws:iam::999999999999:role/bricks": "b2"}
    deployment = named(dev, access=Access(readers=(READER, *ids), external_ids=ids, reconcilers=(OPERATOR,)))
    made = roles(synthesised(deployment)["ingestion"])
    reader = made["frazil-dev-reader"]
    assert assumed(reader, READER) is Verdict.ALLOWED
    for principal in ids:
        allowed = [each for each in ids.values() if assumed(reader, principal, ExternalId=each) is Verdict.ALLOWED]
        assert allowed == [ids[principal]]
        assert assumed(reader, principal) is Verdict.IMPLICITLY_DENIED
    assert "ExternalId" not in made["frazil-dev-reconciler"]["assume_role_policy"]


def test_a_reader_of_another_company_may_be_the_only_one() -> None:
    snow = "arn:aws:iam::888888888888:user/snow"
    made = roles(synthesised(named(dev, access=Access(readers=(snow,), external_ids={snow: "SNOW=1"})))["ingestion"])
    assert assumed(made["frazil-dev-reader"], snow, ExternalId="SNOW=1") is Verdict.ALLOWED
    assert assumed(made["frazil-dev-reader"], snow) is Verdict.IMPLICITLY_DENIED


@pytest.mark.parametrize("key", ["documents/1.json", kept_key("documents/1.json"), state_key("ingest")])
def test_the_reconciler_reads_what_it_keeps_and_puts_it_back(key: str) -> None:
    assert may("reconciler", "s3:GetObject", f"{ARTIFACTS}/{key}")
    assert may("reconciler", "s3:PutObject", f"{ARTIFACTS}/{key}", NEW)


def test_the_reconciler_reads_desired_state_and_what_runs_wrote_and_gives_them_the_role_of_the_ingest_only() -> None:
    given = {"iam:PassedToService": "emr-serverless.amazonaws.com"}
    assert may("reconciler", "s3:GetObject", f"{ARTIFACTS}/desired/ingest.json")
    assert may("reconciler", "s3:GetObject", f"{LOGS}/maintain/applications/1/jobs/2/SPARK_DRIVER/stdout.gz")
    assert may("reconciler", "iam:PassRole", NAMES.role_arn("ingest"), given)
    assert not may("reconciler", "iam:PassRole", NAMES.role_arn("maintain"), given)


def test_the_function_may_do_what_an_operator_may_but_read_logs_and_writes_its_own() -> None:
    stack, name = stacks_of("local")["ingestion"], NAMES.role("reconcile-ingest")
    [role] = [each for each in resources(stack, "aws_iam_role").values() if each["name"] == name]
    assert json.loads(role["assume_role_policy"])["Statement"][0]["Principal"] == {"Service": "lambda.amazonaws.com"}
    for key in (state_key("ingest"), kept_key("documents/1.json"), "reconcile/ingest/proof/1.json"):
        assert may("reconcile-ingest", "s3:GetObject", f"{ARTIFACTS}/{key}")
    given = {"iam:PassedToService": "emr-serverless.amazonaws.com"}
    assert may("reconcile-ingest", "iam:PassRole", NAMES.role_arn("ingest"), given)
    assert not may("reconcile-ingest", "iam:PassRole", NAMES.role_arn("maintain"), given)
    assert not may("reconcile-ingest", "s3:GetObject", f"{LOGS}/ingest/applications/1/jobs/2/SPARK_DRIVER/stdout.gz")
    place = f"arn:aws:logs:{dev.region}:{DEPLOYMENTS['local'].account}:log-group:/frazil/local"
    assert may("reconcile-ingest", "logs:PutLogEvents", f"{place}/reconcile-ingest:log-stream:x")
    assert not may("reconcile-ingest", "logs:PutLogEvents", f"{place}/ingest:log-stream:x")


@pytest.mark.parametrize("scope", list(Scope))
def test_a_further_pipeline_gives_a_reader_no_more_than_its_tables(scope: Scope) -> None:
    """So that a review of it is not refused."""
    role = "reader"
    deployment = named(dev, access=Access(readers=(READER,), reconcilers=(OPERATOR,), scope=scope))
    boats = Pipeline(topic=Topic("boats", value="avro"), table=Table("sea.boats"))
    before, after = (synthesised(deployment, pipelines)["ingestion"] for pipelines in (EXAMPLE, (*EXAMPLE, boats)))
    was, will = (
        {"name": "x-1", "policy": worked_out(each["policy"], stack, KNOWN)}
        for stack in (before, after)
        for each in resources(stack, "aws_iam_policy").values()
        if each["name"] == f"frazil-dev-{role}-1"
    )
    change = Change(address="aws_iam_policy.it", type="aws_iam_policy", verb=Verb.UPDATE, before=was, after=will)
    facts = Facts(Reviewed(), TODAY)
    assert list(policy_widened(Reviewed(changes=(change,)), facts))
    assert follows_from(change, {"sea.boats", "sea.boats__dead_letters"}, {"sea"}, facts)
    assert not follows_from(change, {"sea.boats", "sea.boats__dead_letters"}, set(), facts) or scope is Scope.TABLE
    assert not follows_from(change, {"sea.boats"}, {"sea"}, facts) or scope is Scope.NAMESPACE
