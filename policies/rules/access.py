"""Rules about policies: actions and principals must be named."""

from __future__ import annotations

from collections.abc import Iterator

from policies.resource_values import Facts
from policies.resources import Document, Finding, Resource, Reviewed, many, policy, principals, statements

_POLICY_ARGUMENTS = ("policy", "assume_role_policy", "inline_policy", "access_policy", "resource_policy")


def wildcard_action(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report actions with a wildcard: they also allow unforeseen actions, including those that a service adds later."""
    for each, statement in _allowing(reviewed):
        wild = [action for action in many(statement.get("Action", ())) if "*" in action or "?" in action]
        if "NotAction" in statement:
            wild.append("NotAction")
        if wild:
            what = f"{_sid(statement)}allows {', '.join(wild)}"
            yield Finding(
                "wildcard_action", each.address, what, "Name each action; policies/documents has what our jobs need"
            )


def wildcard_principal(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report principals with a wildcard: it means everybody on the internet, and a typing error voids a condition."""
    for each, statement in _allowing(reviewed):
        if "NotPrincipal" in statement or "*" in principals(statement):
            what = f"{_sid(statement)}allows everybody"
            yield Finding(
                "wildcard_principal", each.address, what, "Name the roles, or the service with aws:SourceAccount"
            )


_FUNCTIONS = "lambda.amazonaws.com"
"""A function's ARN in the trust of its role is documented nowhere. Only whoever may pass the role gives it to a function."""


def trust_without_condition(reviewed: Reviewed, facts: Facts) -> Iterator[Finding]:
    """Report trusts without a condition: a service or a vendor's role could act here for another of its customers.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html
    """
    for role in reviewed.of("aws_iam_role"):
        for statement in statements(policy(role.values.get("assume_role_policy"))):
            assumes = "sts:AssumeRole" in many(statement.get("Action", ()))
            if statement.get("Effect") != "Allow" or not assumes:
                continue
            keys = {key for block in (statement.get("Condition") or {}).values() for key in block}
            principal = statement.get("Principal")
            services = many(principal.get("Service", ())) if isinstance(principal, dict) else ()
            wanted = {"aws:SourceAccount"} if set(services) == {_FUNCTIONS} else {"aws:SourceAccount", "aws:SourceArn"}
            if services and not keys >= wanted:
                what = f"{_sid(statement)}lets {', '.join(services)} in for any account"
                yield Finding("trust_without_condition", role.address, what, f"Add {' and '.join(sorted(wanted))}")
            integration = [one for one in principals(statement) if "confluent_provider_integration." in one]
            if integration and "sts:ExternalId" not in keys:
                what = f"{_sid(statement)}lets Confluent in for any of its customers"
                yield Finding("trust_without_condition", role.address, what, "Add sts:ExternalId of the integration")


def _allowing(reviewed: Reviewed) -> Iterator[tuple[Resource, Document]]:
    """Yield all statements that allow, of all policies with a known text."""
    for each in reviewed.resources:
        texts = [each.values.get(name) for name in _POLICY_ARGUMENTS]
        texts += [block.get("policy") for block in each.blocks("inline_policy")]
        for text in texts:
            for statement in statements(policy(text)):
                if statement.get("Effect") == "Allow":
                    yield each, statement


def _sid(statement: Document) -> str:
    return f"{statement['Sid']} " if statement.get("Sid") else ""
