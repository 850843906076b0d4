"""The permissions boundary: what the deployed roles need is within it, and whatever a role is given, it bounds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policies.example import ACCOUNT, APPLICATION, INGEST, KEY, REGION, SECRET, policy
from tests.policies.permission_cases import BOUNDARY, DATA, EMR, RUNS, TABLES, Asked, glue, may
from tests.support.iam_evaluation import Request, Verdict, evaluate

DEPLOYED = {
    "ingest_job",
    "maintenance_job",
    "scheduler",
    "confluent_provider",
    "reader",
    "athena_reader",
    "reconciler",
    "flow_logs",
}
OURS = {"aws:ResourceTag/frazil:environment": "dev"}
ANYTHING: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [{"Sid": "All", "Effect": "Allow", "Action": "*", "Resource": "*"}],
}
STATE = "arn:aws:s3:::frazil-dev-state"
ROLES = f"arn:aws:iam::{ACCOUNT}:role"

OUTSIDE: list[tuple[Any, ...]] = [
    ("iam:CreateUser iam:CreateAccessKey", f"arn:aws:iam::{ACCOUNT}:user/me"),
    ("iam:CreateRole iam:AttachRolePolicy iam:DeleteRolePermissionsBoundary sts:AssumeRole", INGEST),
    ("iam:CreatePolicyVersion", BOUNDARY),
    ("iam:PassRole", f"{ROLES}/admin", EMR),
    ("iam:PassRole", INGEST, {"iam:PassedToService": "lambda.amazonaws.com"}),
    ("s3:GetObject s3:PutObject", f"{STATE}/dev/confluent.tfstate"),
    ("s3:GetObject", "arn:aws:s3:::frazil-prod-tables/lake/shop.db/orders/data/1", "arn:aws:s3:::payroll/1"),
    ("s3:DeleteBucket s3:PutBucketPolicy s3:DeleteObjectVersion", TABLES, DATA),
    ("glue:GetTable glue:UpdateTable", glue("hr/salaries")),
    ("glue:DeleteDatabase", f"arn:aws:glue:{REGION}:{ACCOUNT}:database/shop"),
    ("secretsmanager:GetSecretValue", SECRET.replace("/dev/", "/prod/")),
    ("secretsmanager:PutSecretValue", SECRET),
    ("kms:Decrypt", KEY, {}, {"aws:ResourceTag/frazil:environment": "prod"}),
    ("kms:ScheduleKeyDeletion kms:PutKeyPolicy", KEY, OURS),
    ("emr-serverless:StartJobRun", f"{RUNS}/another", {}, {"aws:ResourceTag/frazil:environment": "prod"}),
    ("emr-serverless:DeleteApplication emr-serverless:UpdateApplication", f"{RUNS}/{APPLICATION}", OURS),
]


def asked() -> list[Asked]:
    return [one for one in may() if one.role in DEPLOYED]


def request_of(one: Asked) -> Request:
    # Keys and applications of the environment have its tag.
    return Request(action=one.action, resource=one.resource, context={**OURS, **one.context}, principal=INGEST)


@pytest.mark.parametrize("one", asked(), ids=str)
def test_what_the_deployed_roles_need_is_within_the_boundary(one: Asked) -> None:
    decided = evaluate(request_of(one), [policy(one.role)], one.resources_policy, boundary=policy("boundary"))
    assert decided.verdict is Verdict.ALLOWED


def each() -> list[Request]:
    made = []
    for actions, *rest in OUTSIDE:
        contexts = [one for one in rest if isinstance(one, dict)] or [{}]
        made += [
            Request(action=action, resource=resource, context=context, principal=INGEST)
            for action in actions.split()
            for resource in rest
            if isinstance(resource, str)
            for context in contexts
        ]
    return made


@pytest.mark.parametrize("request_", each(), ids=lambda one: f"{one.action} {one.resource.split(':', 5)[-1]}")
def test_a_role_that_was_given_everything_may_still_not_do_it(request_: Request) -> None:
    resource = policy("lake_key") if ":key/" in request_.resource else None
    assert evaluate(request_, [ANYTHING], resource).is_allowed
    assert not evaluate(request_, [ANYTHING], resource, boundary=policy("boundary")).is_allowed


def test_nothing_in_the_boundary_is_needed_by_nobody() -> None:
    """Each action is in some policy of a deployed role, or it is not in the boundary."""

    def actions(name: str) -> set[str]:
        found: set[str] = set()
        for statement in policy(name)["Statement"]:
            if statement["Effect"] == "Allow":
                found |= {statement["Action"]} if isinstance(statement["Action"], str) else set(statement["Action"])
        return found

    assert actions("boundary") == {action for name in DEPLOYED for action in actions(name)}


def test_given_buckets_and_keys_are_within_it_and_no_others() -> None:
    given = KEY.replace(ACCOUNT, "999999999999")
    bounds = policy("boundary", given_buckets=["lake-tables"], given_keys=[given])
    owner = {
        "Effect": "Allow",
        "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
        "Action": "kms:*",
        "Resource": "*",
    }

    def may_use(action: str, resource: str) -> bool:
        request = Request(action=action, resource=resource, principal=INGEST)
        of_key = {"Statement": [owner]} if ":key/" in resource else None
        return evaluate(request, [ANYTHING], of_key, boundary=bounds).is_allowed

    assert may_use("s3:ListBucket", "arn:aws:s3:::lake-tables")
    assert may_use("s3:PutObject", "arn:aws:s3:::lake-tables/lake/shop.db/orders/data/1")
    assert may_use("kms:Decrypt", given)
    for action, resource in (
        ("s3:PutBucketPolicy", "arn:aws:s3:::lake-tables"),
        ("s3:GetObject", "arn:aws:s3:::lake-tables2/1"),
        ("s3:GetObject", f"{STATE}/dev/confluent.tfstate"),
        ("kms:Decrypt", KEY),
        ("kms:ScheduleKeyDeletion", given),
    ):
        assert not may_use(action, resource), resource
