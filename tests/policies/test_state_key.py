"""Who may use the key of Terraform's states: its policy names roles by a condition, since it is made before them."""

from __future__ import annotations

import pytest

from tests.policies.example import ACCOUNT, policy
from tests.support.iam_evaluation import Request, evaluate

DEPLOYER, REVIEWER, OTHER = (
    f"arn:aws:iam::{ACCOUNT}:role/{name}" for name in ("deployer-frazil-dev", "reviewer-frazil-dev", "other")
)
BY_S3 = "s3.eu-central-1.amazonaws.com"


def may(action: str, principal: str, *, account: str = ACCOUNT, via: str = BY_S3) -> bool:
    context = {"aws:PrincipalArn": principal, "kms:CallerAccount": account, "kms:ViaService": via}
    asked = Request(action=action, resource="*", principal=principal, context=context)
    return evaluate(asked, resource=policy("state_key")).is_allowed


def test_the_deployer_reads_and_writes_states_and_the_reviewer_reads_them() -> None:
    assert may("kms:Decrypt", DEPLOYER)
    assert may("kms:GenerateDataKey", DEPLOYER)
    assert may("kms:Decrypt", REVIEWER)
    assert not may("kms:GenerateDataKey", REVIEWER)


@pytest.mark.parametrize("action", ["kms:Decrypt", "kms:GenerateDataKey"])
def test_nobody_else_has_the_key_and_nobody_but_for_s3(action: str) -> None:
    assert not may(action, OTHER)
    assert not may(action, DEPLOYER, account="999999999999")
    assert not may(action, DEPLOYER, via="secretsmanager.eu-central-1.amazonaws.com")
