"""Who may become whom."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policies.example import ACCOUNT, APPLICATION, CONFLUENT, REGION, VALUES, VENDOR, policy
from tests.support.iam_evaluation import Request, Verdict, evaluate

ROLE = f"arn:aws:iam::{ACCOUNT}:role/frazil-dev-any"
EXTERNAL_ID = str(VALUES["external_id"])
KNOWN = {"sts:ExternalId": EXTERNAL_ID}
OTHER = "arn:aws:iam::999999999999"
APPLICATIONS = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications"
NETWORK = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
SCHEDULES = f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule-group"


def assumed(trust: str, principal: str, context: dict[str, Any], action: str = "sts:AssumeRole") -> Verdict:
    request = Request(action=action, resource=ROLE, principal=principal, context=context)
    return evaluate(request, [], policy(trust)).verdict


OURS, OTHERS = ({"aws:SourceAccount": account} for account in (ACCOUNT, "999999999999"))


@pytest.mark.parametrize(
    ("trust", "who", "context", "verdict"),
    [
        *((trust, who, KNOWN, Verdict.ALLOWED) for trust, who in (("confluent_trust", CONFLUENT), ("external_trust", VENDOR))),
        *(
            (trust, who, context, Verdict.IMPLICITLY_DENIED)
            for trust, who in (("confluent_trust", CONFLUENT), ("external_trust", VENDOR))
            for context in ({}, *({"sts:ExternalId": each} for each in ("another", "", f"{EXTERNAL_ID}x")))
        ),
        *(
            (trust, who, KNOWN, Verdict.IMPLICITLY_DENIED)
            for trust in ("confluent_trust", "external_trust")
            for who in (f"{OTHER}:root", VENDOR.partition("user")[0] + "root", VENDOR.replace("snowflake", "another"), "anonymous", ROLE)
        ),
        ("function_trust", "lambda.amazonaws.com", OURS, Verdict.ALLOWED),
        ("function_trust", "lambda.amazonaws.com", OTHERS, Verdict.IMPLICITLY_DENIED),
        ("function_trust", "lambda.amazonaws.com", {}, Verdict.IMPLICITLY_DENIED),
        ("function_trust", "ec2.amazonaws.com", OURS, Verdict.IMPLICITLY_DENIED),
        ("account_trust", f"arn:aws:iam::{ACCOUNT}:role/analyst", {}, Verdict.ALLOWED),
        ("account_trust", f"arn:aws:iam::{ACCOUNT}:role/another", {}, Verdict.IMPLICITLY_DENIED),
    ],
)  # fmt: skip
def test_who_is_named_is_let_in_with_our_external_id_or_account_only(
    trust: str, who: str, context: dict[str, str], verdict: Verdict
) -> None:
    assert assumed(trust, who, context) is verdict


def test_a_session_may_be_tagged_where_no_external_id_is_known() -> None:
    """STS asks for it beside AssumeRole, without the external id in its context: by a statement of its own."""
    assert assumed("confluent_trust", CONFLUENT, {}, "sts:TagSession") is Verdict.ALLOWED
    assert assumed("confluent_trust", ROLE, {}, "sts:TagSession") is Verdict.IMPLICITLY_DENIED
    assert len(policy("confluent_trust")["Statement"]) == 2


@pytest.mark.parametrize(
    ("trust", "service", "source", "other"),
    [
        (
            "job_trust",
            "emr-serverless.amazonaws.com",
            f"{APPLICATIONS}/{APPLICATION}",
            f"{APPLICATIONS}/{APPLICATION}x",
        ),
        ("scheduler_trust", "scheduler.amazonaws.com", f"{SCHEDULES}/frazil-dev", f"{SCHEDULES}/frazil-devx"),
        ("flow_logs_trust", "vpc-flow-logs.amazonaws.com", f"{NETWORK}:vpc-flow-log/fl-1", f"{NETWORK}:vpc/vpc-1"),
    ],
)
def test_a_service_is_let_in_for_our_account_and_our_things_only(
    trust: str, service: str, source: str, other: str
) -> None:
    ours = {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": source}
    assert assumed(trust, service, ours) is Verdict.ALLOWED
    for context in (
        {**ours, "aws:SourceAccount": "999999999999"},
        {**ours, "aws:SourceArn": other},
        {"aws:SourceAccount": ACCOUNT},
        {"aws:SourceArn": source},
        {},
    ):
        assert assumed(trust, service, context) is Verdict.IMPLICITLY_DENIED, context
    assert assumed(trust, "lambda.amazonaws.com", ours) is Verdict.IMPLICITLY_DENIED
    assert assumed(trust, ROLE, ours) is Verdict.IMPLICITLY_DENIED


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
