"""What the account's owner makes: whoever deploys becomes it, and can change none of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration
from policies.documents import fill
from policies.documents.filling import Value
from policies.resource_values import Facts
from policies.resources import read
from policies.rules import findings
from stacks.spec.deployments import Access, Deployment, GitHub, dev, prod
from stacks.stacks.account_setup import ISSUER
from tests.infra.provider_schema import misfits
from tests.stacks.synthesised import TODAY, every_stack, named, resources
from tests.support.iam_evaluation import Request, Verdict, evaluate

CI = f"arn:aws:iam::{dev.account}:role/ci"
NAMES = dev.names
STATE = f"arn:aws:s3:::{NAMES.bucket('state')}"
ROLE = f"arn:aws:iam::{dev.account}:role/{NAMES.deployer}"


def owner(deployment: Deployment = dev, **access: Any) -> dict[str, Any]:
    return every_stack(named(deployment, access=Access(**access or {"deployers": (CI,)})))["owner"]


@pytest.fixture(scope="module")
def stack() -> dict[str, Any]:
    return owner()


def rights(stack: dict[str, Any]) -> list[dict[str, Any]]:
    """The deployer's policies."""
    told = [each for each in resources(stack, "aws_iam_policy").values() if each["name"].startswith("deployer-")]
    return [json.loads(each["policy"]) for each in told]


def may(stack: dict[str, Any], action: str, resource: str, **context: str) -> bool:
    return evaluate(Request(action=action, resource=resource, context=context), rights(stack)).is_allowed


def test_of_nobody_there_is_no_such_stack() -> None:
    assert every_stack(dev).keys() == {"confluent", "foundation", "ingestion"}


def test_those_who_are_named_may_deploy_and_nobody_else(stack: dict[str, Any]) -> None:
    [role] = resources(stack, "aws_iam_role").values()
    trust = json.loads(role["assume_role_policy"])
    verdicts = {
        who: evaluate(Request(action="sts:AssumeRole", resource=ROLE, principal=who), [], trust).verdict
        for who in (CI, CI.replace("ci", "another"))
    }
    assert list(verdicts.values()) == [Verdict.ALLOWED, Verdict.IMPLICITLY_DENIED]


def test_the_boundary_is_the_one_that_all_roles_name(stack: dict[str, Any]) -> None:
    [boundary] = [each for each in resources(stack, "aws_iam_policy").values() if each["name"] == NAMES.boundary]
    assert NAMES.boundary_arn.endswith(f":policy/{boundary['name']}")
    values = {"account": dev.account, "region": dev.region, "prefix": "frazil-dev", "environment": "dev"}
    given: dict[str, Value] = {"iam_path": "/", "given_buckets": [], "given_keys": []}
    wanted = fill("boundary", {**values, **given, "databases": ["nyc"], "state_bucket": NAMES.bucket("state")})
    assert json.loads(boundary["policy"]) == wanted


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("s3:PutBucketPolicy", STATE),
        ("s3:DeleteBucketPolicy", STATE),
        ("s3:DeleteBucket", STATE),
        ("s3:PutBucketVersioning", STATE),
        ("s3:PutLifecycleConfiguration", STATE),
        ("s3:PutEncryptionConfiguration", STATE),
        ("s3:PutBucketPublicAccessBlock", STATE),
        ("s3:PutBucketAcl", STATE),
        ("s3:PutReplicationConfiguration", STATE),
        ("s3:DeleteObjectVersion", f"{STATE}/dev/foundation.tfstate"),
        ("s3:GetObject", f"{STATE}/owner/dev/owner.tfstate"),
        ("s3:PutObject", f"{STATE}/owner/dev/owner.tfstate"),
        ("s3:DeleteObject", f"{STATE}/owner/dev/owner.tfstate"),
    ],
)
def test_the_deployer_cannot_open_or_lose_the_states_whatever_else_it_is_given(
    stack: dict[str, Any], action: str, resource: str
) -> None:
    anything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    asked = Request(action=action, resource=resource)
    assert evaluate(asked, [anything]).is_allowed
    assert evaluate(asked, [*rights(stack), anything]).verdict is Verdict.EXPLICITLY_DENIED
    assert not may(stack, action, resource)
    tables = f"arn:aws:s3:::{NAMES.bucket('tables')}"
    if resource == STATE and action in {"s3:PutBucketPolicy", "s3:DeleteBucket", "s3:PutBucketVersioning"}:
        assert may(stack, action, tables), "and of the other buckets it can"


def test_the_deployer_empties_disposable_buckets_only() -> None:
    for deployment in (dev, prod):
        stack = owner(deployment)
        data = f"arn:aws:s3:::{deployment.names.bucket('tables')}/lake/nyc.db/flights/data/1.parquet"
        assert may(stack, "s3:DeleteObjectVersion", data) is deployment.is_disposable


# ── Workflows of GitHub ─────────────────────────────────────────────────────────────────────────
REPOSITORY = GitHub(
    repository="shop/lake", review_secrets=(f"arn:aws:secretsmanager:eu-central-1:{dev.account}:secret:review-AbCdEf",)
)


@pytest.fixture(scope="module")
def with_github() -> dict[str, Any]:
    return owner(github=REPOSITORY)


def role_of(stack: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [each for each in resources(stack, "aws_iam_role").values() if each["name"] == name]
    return found


def by_workflow(stack: dict[str, Any], role: str, environment: str) -> bool:
    provider = f"arn:aws:iam::{dev.account}:oidc-provider/token.actions.githubusercontent.com"
    claims = {"aud": "sts.amazonaws.com", "sub": f"repo:shop/lake:environment:{environment}"}
    context: dict[str, str | list[str]] = {f"token.actions.githubusercontent.com:{k}": v for k, v in claims.items()}
    request = Request(action="sts:AssumeRoleWithWebIdentity", resource=ROLE, principal=provider, context=context)
    return evaluate(request, [], json.loads(role_of(stack, role)["assume_role_policy"])).is_allowed


def test_workflows_review_as_one_role_and_deploy_as_another(with_github: dict[str, Any]) -> None:
    found = {
        (role, environment): by_workflow(with_github, role, environment)
        for role in (NAMES.reviewer, NAMES.deployer)
        for environment in ("review-dev", "deploy-dev", "review-prod")
    }
    allowed = {each for each, is_allowed in found.items() if is_allowed}
    assert allowed == {(NAMES.reviewer, "review-dev"), (NAMES.deployer, "deploy-dev")}


def test_principals_and_workflows_may_both_deploy() -> None:
    stack = owner(github=REPOSITORY, deployers=(CI,))
    trust = json.loads(role_of(stack, NAMES.deployer)["assume_role_policy"])
    assert evaluate(Request(action="sts:AssumeRole", resource=ROLE, principal=CI), [], trust).is_allowed
    assert by_workflow(stack, NAMES.deployer, "deploy-dev")


def test_an_account_has_one_provider_and_the_deployer_cannot_change_the_reviewer(
    with_github: dict[str, Any],
) -> None:
    [provider] = resources(with_github, "aws_iam_openid_connect_provider").values()
    assert (provider["url"], provider["client_id_list"]) == (ISSUER, ["sts.amazonaws.com"])
    other = owner(github=replace(REPOSITORY, has_provider=True))
    assert not resources(other, "aws_iam_openid_connect_provider")
    reviewer = f"arn:aws:iam::{dev.account}:role/{NAMES.reviewer}"
    assert not may(with_github, "iam:UpdateAssumeRolePolicy", reviewer)


def test_the_stack_fits_the_providers_schema_and_the_rules(stack: dict[str, Any], with_github: dict[str, Any]) -> None:
    for each in (stack, with_github):
        reviewed = read(each)
        assert misfits(each) == []
        assert [str(found) for found in findings(reviewed, Facts(reviewed, TODAY))] == []


@pytest.mark.parametrize("repository", ["shop", "shop/lake:*", "*/*", "shop/lake/x", ""])
def test_a_repository_is_named_in_full(repository: str) -> None:
    with pytest.raises(InvalidDeclaration):
        GitHub(repository=repository)
