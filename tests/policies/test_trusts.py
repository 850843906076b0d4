"""Who may become whom."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policies.example import ACCOUNT, APPLICATION, CONFLUENT, REGION, VALUES, VENDOR, policy
from tests.support.iam_evaluation import Request, Verdict, evaluate

ROLE = f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-any"
EXTERNAL_ID = str(VALUES["external_id"])
APPLICATIONS = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications"
SCHEDULES = f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule-group"


def assumed(trust: str, principal: str, context: dict[str, Any], action: str = "sts:AssumeRole") -> Verdict:
    request = Request(action=action, resource=ROLE, principal=principal, context=context)
    return evaluate(request, [], policy(trust)).verdict


def test_confluents_role_is_let_in_with_our_external_id() -> None:
    assert assumed("confluent_trust", CONFLUENT, {"sts:ExternalId": EXTERNAL_ID}) is Verdict.ALLOWED


@pytest.mark.parametrize(
    "context", [{}, {"sts:ExternalId": "another"}, {"sts:ExternalId": ""}, {"sts:ExternalId": f"{EXTERNAL_ID}x"}]
)
def test_a_wrong_and_a_missing_external_id_are_refused(context: dict[str, str]) -> None:
    assert assumed("confluent_trust", CONFLUENT, context) is Verdict.IMPLICITLY_DENIED


@pytest.mark.parametrize(
    "who", ["arn:aws:iam::999999999999:role/another", "arn:aws:iam::999999999999:root", "anonymous", ROLE]
)
def test_nobody_but_confluents_role_is_let_in(who: str) -> None:
    assert assumed("confluent_trust", who, {"sts:ExternalId": EXTERNAL_ID}) is Verdict.IMPLICITLY_DENIED


def test_a_session_may_be_tagged_where_no_external_id_is_known() -> None:
    """STS asks for it beside AssumeRole, without the external id in its context: by a statement of its own."""
    assert assumed("confluent_trust", CONFLUENT, {}, "sts:TagSession") is Verdict.ALLOWED
    assert assumed("confluent_trust", ROLE, {}, "sts:TagSession") is Verdict.IMPLICITLY_DENIED
    assert len(policy("confluent_trust")["Statement"]) == 2


def test_a_function_of_this_account_only_is_let_in() -> None:
    service = "lambda.amazonaws.com"
    assert assumed("function_trust", service, {"aws:SourceAccount": ACCOUNT}) is Verdict.ALLOWED
    assert assumed("function_trust", service, {"aws:SourceAccount": "999999999999"}) is Verdict.IMPLICITLY_DENIED
    assert assumed("function_trust", service, {}) is Verdict.IMPLICITLY_DENIED
    assert assumed("function_trust", "ec2.amazonaws.com", {"aws:SourceAccount": ACCOUNT}) is Verdict.IMPLICITLY_DENIED


@pytest.mark.parametrize(
    ("trust", "service", "source"),
    [
        ("job_trust", "emr-serverless.amazonaws.com", f"{APPLICATIONS}/{APPLICATION}"),
        ("scheduler_trust", "scheduler.amazonaws.com", f"{SCHEDULES}/frazil-dev"),
    ],
)
def test_a_service_is_let_in_for_our_account_and_our_things_only(trust: str, service: str, source: str) -> None:
    ours = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": source}
    assert assumed(trust, service, ours) is Verdict.ALLOWED
    for context in (
        {**ours, "aws:SourceAccount": "999999999999"},
        {**ours, "aws:SourceArn": f"{source}x"},
        {"aws:SourceAccount": ACCOUNT},
        {"aws:SourceArn": source},
        {},
    ):
        assert assumed(trust, service, context) is Verdict.IMPLICITLY_DENIED, context
    assert assumed(trust, "lambda.amazonaws.com", ours) is Verdict.IMPLICITLY_DENIED
    assert assumed(trust, ROLE, ours) is Verdict.IMPLICITLY_DENIED


def test_people_are_let_in_by_name() -> None:
    assert assumed("account_trust", f"arn:aws:iam::{ACCOUNT}:role/analyst", {}) is Verdict.ALLOWED
    assert assumed("account_trust", f"arn:aws:iam::{ACCOUNT}:role/another", {}) is Verdict.IMPLICITLY_DENIED


@pytest.mark.parametrize(
    ("who", "context", "verdict"),
    [
        (VENDOR, {"sts:ExternalId": EXTERNAL_ID}, Verdict.ALLOWED),
        (VENDOR, {}, Verdict.IMPLICITLY_DENIED),
        (VENDOR, {"sts:ExternalId": "another"}, Verdict.IMPLICITLY_DENIED),
        (VENDOR.replace("snowflake", "another"), {"sts:ExternalId": EXTERNAL_ID}, Verdict.IMPLICITLY_DENIED),
        ("arn:aws:iam::888888888888:root", {"sts:ExternalId": EXTERNAL_ID}, Verdict.IMPLICITLY_DENIED),
    ],
)
def test_a_vendors_engine_is_let_in_with_its_external_id_only(
    who: str, context: dict[str, str], verdict: Verdict
) -> None:
    assert assumed("external_trust", who, context) is verdict


GITHUB = f"arn:aws:iam::{ACCOUNT}:oidc-provider/token.actions.githubusercontent.com"
AUD, SUB = (f"token.actions.githubusercontent.com:{claim}" for claim in ("aud", "sub"))
CLAIMS = {AUD: "sts.amazonaws.com", SUB: "repo:shop/lake:environment:review-dev"}


def by_token(principal: str, context: dict[str, Any]) -> Verdict:
    return assumed("github_trust", principal, context, "sts:AssumeRoleWithWebIdentity")


def test_a_workflow_is_let_in_for_its_repository_and_its_environment() -> None:
    assert by_token(GITHUB, CLAIMS) is Verdict.ALLOWED


@pytest.mark.parametrize(
    "sub",
    [
        "repo:shop/lake:pull_request", "repo:shop/lake:ref:refs/heads/main", "repo:shop/lake:environment:review-prod",
        "repo:shop/lake:environment:deploy-dev", "repo:shop/lake2:environment:review-dev", "repo:evil/lake:environment:review-dev",
        "repo:shop/lake:environment:review-dev:x", "",
    ],
)  # fmt: skip
def test_another_workflow_is_refused(sub: str) -> None:
    assert by_token(GITHUB, {**CLAIMS, SUB: sub}) is Verdict.IMPLICITLY_DENIED


def test_a_token_for_another_service_or_of_another_issuer_is_refused() -> None:
    assert by_token(GITHUB, {**CLAIMS, AUD: "https://github.com/shop"}) is Verdict.IMPLICITLY_DENIED
    assert by_token(GITHUB, {SUB: CLAIMS[SUB]}) is Verdict.IMPLICITLY_DENIED
    assert by_token(GITHUB, {AUD: CLAIMS[AUD]}) is Verdict.IMPLICITLY_DENIED
    assert by_token(GITHUB.replace("token.actions", "other"), CLAIMS) is Verdict.IMPLICITLY_DENIED
    assert assumed("github_trust", ROLE, CLAIMS) is Verdict.IMPLICITLY_DENIED


def test_only_flow_logs_of_the_account_write_their_log() -> None:
    ours = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": f"arn:aws:ec2:{REGION}:{ACCOUNT}:vpc-flow-log/fl-1"}
    assert assumed("flow_logs_trust", "vpc-flow-logs.amazonaws.com", ours) is Verdict.ALLOWED
    for context in (
        {**ours, "aws:SourceAccount": "999999999999"},
        {**ours, "aws:SourceArn": f"arn:aws:ec2:{REGION}:{ACCOUNT}:vpc/vpc-1"},
        {},
    ):
        assert assumed("flow_logs_trust", "vpc-flow-logs.amazonaws.com", context) is Verdict.IMPLICITLY_DENIED
    assert assumed("flow_logs_trust", "ec2.amazonaws.com", ours) is Verdict.IMPLICITLY_DENIED
