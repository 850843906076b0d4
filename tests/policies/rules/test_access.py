"""What policies allow is named, and to whom."""

from __future__ import annotations

import json
from typing import Any

import pytest

from policies.documents import names
from policies.rules import Rule
from policies.rules.access import trust_without_condition, wildcard_action, wildcard_principal
from tests.policies.example import policy
from tests.policies.reviewing import allow, stack, told

ROLE = "arn:aws:iam::123456789012:role/x"


def role(trust: str) -> dict[str, Any]:
    return stack(aws_iam_role__x={"name": "x", "assume_role_policy": trust})


MADE_BEFORE_ITS_ROLES = "state_key"
"""KMS refuses a policy that names a role that does not exist yet, so this one names roles by a condition; `test_state_key.py`."""


@pytest.mark.parametrize("rule", [wildcard_action, wildcard_principal, trust_without_condition])
def test_our_own_policies_pass(rule: Rule) -> None:
    for name in names():
        if rule is wildcard_principal and name == MADE_BEFORE_ITS_ROLES:
            continue
        text = json.dumps(policy(name))
        assert (
            told(rule, role(text) if name.endswith("_trust") else stack(aws_iam_role_policy__x={"policy": text})) == []
        ), name


@pytest.mark.parametrize("action", ["s3:*", "*", "s3:Get*", "s3:?etObject", ["s3:GetObject", "glue:*"]])
def test_a_wildcard_action_is_told(action: Any) -> None:
    findings = told(wildcard_action, stack(aws_iam_role_policy__x={"policy": allow(Action=action, Resource="*")}))
    assert len(findings) == 1
    assert findings[0][1].startswith("allows ")


def test_all_actions_but_some_are_a_wildcard() -> None:
    text = allow(NotAction="iam:CreateUser", Resource="*")
    assert told(wildcard_action, stack(aws_iam_policy__x={"policy": text})) == [
        ("aws_iam_policy.x", "allows NotAction")
    ]


def test_denying_by_wildcard_passes() -> None:
    text = allow(Action="s3:*", Principal="*", Resource="*").replace("Allow", "Deny")
    for rule in (wildcard_action, wildcard_principal):
        assert told(rule, stack(aws_s3_bucket_policy__x={"policy": text})) == []


@pytest.mark.parametrize("who", ["*", {"AWS": "*"}, {"AWS": [ROLE, "*"]}])
def test_everybody_is_told(who: Any) -> None:
    text = allow(Action="s3:GetObject", Resource="*", Principal=who, Sid="Open")
    findings = told(wildcard_principal, stack(aws_s3_bucket_policy__x={"policy": text}))
    assert findings == [("aws_s3_bucket_policy.x", "Open allows everybody")]


def test_everybody_but_some_is_everybody() -> None:
    text = allow(Action="s3:GetObject", Resource="*", NotPrincipal={"AWS": ROLE})
    assert len(told(wildcard_principal, stack(aws_s3_bucket_policy__x={"policy": text}))) == 1


def test_a_named_role_passes() -> None:
    text = allow(Action="s3:GetObject", Resource="*", Principal={"AWS": ROLE})
    assert told(wildcard_principal, stack(aws_s3_bucket_policy__x={"policy": text})) == []


def test_a_service_without_source_is_told() -> None:
    trust = allow(Action="sts:AssumeRole", Principal={"Service": "emr-serverless.amazonaws.com"})
    assert told(trust_without_condition, role(trust)) == [
        ("aws_iam_role.x", "lets emr-serverless.amazonaws.com in for any account")
    ]


def test_confluent_without_our_external_id_is_told() -> None:
    theirs = {"AWS": "${confluent_provider_integration.i.aws[0].iam_role_arn}"}
    trust = allow(Action="sts:AssumeRole", Principal=theirs)
    assert told(trust_without_condition, role(trust)) == [
        ("aws_iam_role.x", "lets Confluent in for any of its customers")
    ]
    ours = {"StringEquals": {"sts:ExternalId": "${confluent_provider_integration.i.aws[0].external_id}"}}
    assert told(trust_without_condition, role(allow(Action="sts:AssumeRole", Principal=theirs, Condition=ours))) == []
