"""What the account's owner makes: whoever deploys becomes it, and can change none of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import InvalidDeclaration
from infra.tf import App
from policies.documents import fill
from policies.documents.filling import Value
from policies.resource_values import Facts
from policies.resources import read
from policies.rules import findings
from stacks.spec.deployments import Access, Deployment, GitHub, dev, prod
from stacks.stacks.account_setup import ISSUER
from stacks.stacks.compose import compose
from tests.infra.provider_schema import misfits
from tests.stacks.synthesised import EXAMPLE, EXAMPLE_TOPICS, TODAY, named, resources
from tests.support.iam_evaluation import Request, Verdict, evaluate

CI = f"arn:aws:iam::{dev.account}:role/ci"
NAMES = dev.names
STATE = f"arn:aws:s3:::{NAMES.bucket('state')}"
ROLE = f"arn:aws:iam::{dev.account}:role/{NAMES.deployer}"
POLICIES = [f"arn:aws:iam::{dev.account}:policy/{name}" for name in (f"{NAMES.deployer}-1", NAMES.boundary)]


def made(folder: Path, deployment: Deployment) -> list[str]:
    """The stacks that are synthesised."""
    app = App(outdir=str(folder))
    compose(app, deployment, EXAMPLE, EXAMPLE_TOPICS, today=TODAY, text_of=str)
    app.synth()
    return sorted(each.name for each in (folder / "stacks").iterdir())


def owner(folder: Path, deployment: Deployment = dev) -> dict[str, Any]:
    made(folder, named(deployment, access=Access(deployers=(CI,))))
    stack: dict[str, Any] = json.loads((folder / "stacks" / f"{deployment.name}-owner" / "cdk.tf.json").read_text())
    return stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return owner(tmp_path_factory.mktemp("owner"))


def rights(stack: dict[str, Any]) -> list[dict[str, Any]]:
    """The deployer's policies."""
    told = [each for each in resources(stack, "aws_iam_policy").values() if each["name"].startswith("deployer-")]
    return [json.loads(each["policy"]) for each in told]


def may(stack: dict[str, Any], action: str, resource: str, **context: str) -> bool:
    return evaluate(Request(action=action, resource=resource, context=context), rights(stack)).is_allowed


def test_of_nobody_there_is_no_such_stack(tmp_path: Path) -> None:
    assert made(tmp_path / "without", dev) == ["dev-confluent", "dev-foundation", "dev-ingestion"]
    assert "dev-owner" in made(tmp_path / "with", named(dev, access=Access(deployers=(CI,))))


def test_those_who_are_named_may_deploy_and_nobody_else(tmp_path: Path) -> None:
    [role] = resources(owner(tmp_path), "aws_iam_role").values()
    trust = json.loads(role["assume_role_policy"])
    verdicts = {
        who: evaluate(Request(action="sts:AssumeRole", resource=ROLE, principal=who), [], trust).verdict
        for who in (CI, CI.replace("ci", "another"))
    }
    assert list(verdicts.values()) == [Verdict.ALLOWED, Verdict.IMPLICITLY_DENIED]


def test_the_boundary_is_the_one_that_all_roles_name(tmp_path: Path) -> None:
    [boundary] = [
        each for each in resources(owner(tmp_path), "aws_iam_policy").values() if each["name"] == NAMES.boundary
    ]
    assert NAMES.boundary_arn.endswith(f":policy/{boundary['name']}")
    values = {"account": dev.account, "region": dev.region, "prefix": "frazil-dev", "environment": "dev"}
    given: dict[str, Value] = {"iam_path": "/", "given_buckets": [], "given_keys": []}
    wanted = fill("boundary", {**values, **given, "databases": ["nyc"], "state_bucket": NAMES.bucket("state")})
    assert json.loads(boundary["policy"]) == wanted


@pytest.mark.parametrize("action", ["iam:UpdateAssumeRolePolicy", "iam:AttachRolePolicy", "iam:DeleteRole"])
def test_the_deployer_cannot_change_itself(tmp_path: Path, action: str) -> None:
    stack = owner(tmp_path)
    bounded = {"iam:PermissionsBoundary": NAMES.boundary_arn, "iam:PolicyARN": f"{POLICIES[0]}"}
    assert not may(stack, action, ROLE, **bounded)
    ours = f"arn:aws:iam::{dev.account}:role/{NAMES.role('ingest')}"
    fitting = {**bounded, "iam:PolicyARN": f"arn:aws:iam::{dev.account}:policy/{NAMES.role('ingest')}-1"}
    assert may(stack, action, ours, **fitting)


@pytest.mark.parametrize("action", ["iam:CreatePolicyVersion", "iam:DeletePolicy", "iam:DeletePolicyVersion"])
def test_the_deployer_changes_neither_its_rights_nor_the_boundary(tmp_path: Path, action: str) -> None:
    stack = owner(tmp_path)
    assert [may(stack, action, arn) for arn in POLICIES] == [False, False]
    assert may(stack, action, f"arn:aws:iam::{dev.account}:policy/{NAMES.role('ingest')}-1")


def test_the_deployer_writes_the_states_of_its_stacks_and_not_this_ones(tmp_path: Path) -> None:
    stack = owner(tmp_path)
    key = stack["terraform"]["backend"]["s3"]["key"]
    assert may(stack, "s3:PutObject", f"{STATE}/dev/foundation.tfstate")
    assert not may(stack, "s3:PutObject", f"{STATE}/{key}")


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


def test_the_deployer_deletes_locks_and_no_state(stack: dict[str, Any]) -> None:
    state = f"{STATE}/dev/foundation.tfstate"
    assert [may(stack, "s3:DeleteObject", key) for key in (state, f"{state}.tflock")] == [False, True]


def test_the_deployer_empties_disposable_buckets_only(tmp_path: Path) -> None:
    for deployment in (dev, prod):
        stack = owner(tmp_path / deployment.name, deployment)
        data = f"arn:aws:s3:::{deployment.names.bucket('tables')}/lake/nyc.db/flights/data/1.parquet"
        assert may(stack, "s3:DeleteObjectVersion", data) is deployment.is_disposable


def test_it_fits_the_providers_schema_and_the_rules(tmp_path: Path) -> None:
    stack = owner(tmp_path)
    reviewed = read(stack)
    assert misfits(stack) == []
    assert [str(found) for found in findings(reviewed, Facts(reviewed, TODAY))] == []


# ── Workflows of GitHub ─────────────────────────────────────────────────────────────────────────
REPOSITORY = GitHub(
    repository="shop/lake", review_secrets=(f"arn:aws:secretsmanager:eu-central-1:{dev.account}:secret:review-AbCdEf",)
)


@pytest.fixture(scope="module")
def with_github(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("github")
    made(folder, named(dev, access=Access(github=REPOSITORY)))
    stack: dict[str, Any] = json.loads((folder / "stacks" / "dev-owner" / "cdk.tf.json").read_text())
    return stack


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


def test_principals_and_workflows_may_both_deploy(tmp_path: Path) -> None:
    made(tmp_path, named(dev, access=Access(github=REPOSITORY, deployers=(CI,))))
    stack = json.loads((tmp_path / "stacks" / "dev-owner" / "cdk.tf.json").read_text())
    trust = json.loads(role_of(stack, NAMES.deployer)["assume_role_policy"])
    assert evaluate(Request(action="sts:AssumeRole", resource=ROLE, principal=CI), [], trust).is_allowed
    assert by_workflow(stack, NAMES.deployer, "deploy-dev")


def test_an_account_has_one_provider_and_the_deployer_cannot_change_the_reviewer(
    with_github: dict[str, Any], tmp_path: Path
) -> None:
    [provider] = resources(with_github, "aws_iam_openid_connect_provider").values()
    assert (provider["url"], provider["client_id_list"]) == (ISSUER, ["sts.amazonaws.com"])
    made(tmp_path, named(dev, access=Access(github=replace(REPOSITORY, has_provider=True))))
    stack = json.loads((tmp_path / "stacks" / "dev-owner" / "cdk.tf.json").read_text())
    assert not resources(stack, "aws_iam_openid_connect_provider")
    reviewer = f"arn:aws:iam::{dev.account}:role/{NAMES.reviewer}"
    assert not may(with_github, "iam:UpdateAssumeRolePolicy", reviewer)


def test_the_stack_with_workflows_fits_the_schema_and_the_rules(with_github: dict[str, Any]) -> None:
    reviewed = read(with_github)
    assert misfits(with_github) == []
    assert [str(found) for found in findings(reviewed, Facts(reviewed, TODAY))] == []


@pytest.mark.parametrize("repository", ["shop", "shop/lake:*", "*/*", "shop/lake/x", ""])
def test_a_repository_is_named_in_full(repository: str) -> None:
    with pytest.raises(InvalidDeclaration):
        GitHub(repository=repository)
