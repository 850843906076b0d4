"""IAM's policy evaluation as a pure function, for the elements that Frazil's policies use.

It follows https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html for requests within one
account. A statement that denies decides; else one that allows, of the identity's policies or of the resource's; else the
request is denied. Unsupported elements (sessions, organisations, policy variables, dates, addresses) raise an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from policies.resources import Document, many, statements
from tests.support.iam_conditions import Unsupported, holds, matches, matches_arn


class Verdict(StrEnum):
    """The result of a request. `explicitly_denied`: a statement denies it, and no other can allow it.

    `implicitly_denied`: no statement allows it.
    """

    ALLOWED = "allowed"
    EXPLICITLY_DENIED = "explicitly_denied"
    IMPLICITLY_DENIED = "implicitly_denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `principal` is an ARN, a service's name (`emr-serverless.amazonaws.com`) or `anonymous`.

    `context` holds condition keys, by their names in any case. Other keys are absent from the request.
    """

    action: str
    resource: str
    principal: str = "anonymous"
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict, and the Sids of the statements that decided it."""

    verdict: Verdict
    by: tuple[str, ...] = ()

    @property
    def is_allowed(self) -> bool:
        """Whether the request may be made."""
        return self.verdict is Verdict.ALLOWED


def evaluate(
    request: Request,
    identity: Sequence[Document] = (),
    resource: Document | None = None,
    *,
    boundary: Document | None = None,
) -> Decision:
    """Evaluate a request of a principal with the `identity` policies on a resource with the `resource` policy, in one account.

    If a resource's policy allows a complete account, the identity's policies must allow the request too. Only its trust (a
    resource's policy without resources) allows a role to be assumed, and only its own policy allows a KMS key to be used. A
    permissions `boundary` must also allow the request, even if a resource's policy names the role. A principal of another
    account also needs permission there, which is not checked. Raises `Unsupported` for an unknown element, also in
    statements that do not apply, because to ignore it could turn an allowed request into a denied one.
    """
    own = [each for document in identity for each in statements(document) if _applies(each, request)]
    theirs = [each for each in statements(resource) if _applies(each, request, is_resources=True)]
    bounds = [each for each in statements(boundary) if _applies(each, request)]
    denying = tuple(each.get("Sid", "") for each in (*own, *theirs, *bounds) if each["Effect"] == "Deny")
    if denying:
        return Decision(Verdict.EXPLICITLY_DENIED, denying)
    if boundary is not None and not bounds:
        return Decision(Verdict.IMPLICITLY_DENIED)
    is_trust = any(not each.keys() & {"Resource", "NotResource"} for each in statements(resource))
    is_closed = is_trust or ":kms:" in request.resource
    named = [each for each in theirs if _is_named(each["Principal"], request.principal, is_account_enough=False)]
    if named or (own and (theirs or not is_closed)):
        return Decision(Verdict.ALLOWED, tuple(each.get("Sid", "") for each in (*own, *theirs)))
    return Decision(Verdict.IMPLICITLY_DENIED)


def _applies(statement: Document, request: Request, *, is_resources: bool = False) -> bool:
    known = {"Sid", "Effect", "Principal", "Action", "NotAction", "Resource", "NotResource", "Condition"}
    if statement.keys() - known or statement["Effect"] not in {"Allow", "Deny"}:
        raise Unsupported(f"a statement with {', '.join(sorted(statement))}")
    if is_resources != ("Principal" in statement):
        raise Unsupported("an identity's policy that names a principal, or a resource's that names none")
    facts = (
        not is_resources or _is_named(statement["Principal"], request.principal),
        _selects(statement, "Action", request.action, matches),
        _selects(statement, "Resource", request.resource, matches_arn),
        holds(statement.get("Condition", {}), request.context),
    )
    return all(facts)


def _selects(statement: Document, element: str, value: str, is_match: Any) -> bool:
    """Match `Action` or `NotAction`, `Resource` or `NotResource`. A trust has neither of the latter and applies to its role."""
    negated = f"Not{element}"
    if element in statement:
        return any(is_match(one, value) for one in many(statement[element]))
    if negated in statement:
        return not any(is_match(one, value) for one in many(statement[negated]))
    return element == "Resource"


def _is_named(named: str | Mapping[str, Any], principal: str, *, is_account_enough: bool = True) -> bool:
    """Return whether a `Principal` element names the principal, directly or, if that is enough, by its account."""
    if isinstance(named, str):
        if named != "*":
            raise Unsupported(f"a principal {named!r} without its kind")
        return True
    for kind, values in named.items():
        for value in many(values):
            if kind == "AWS" and value in ("*", principal):
                return True
            if kind == "AWS" and is_account_enough and _is_account(value, principal):
                return True
            if kind in {"Service", "Federated"} and value == principal:
                return True
            if kind not in {"AWS", "Service", "Federated"}:
                raise Unsupported(f"a principal of kind {kind}")
    return False


def _is_account(value: str, principal: str) -> bool:
    """Return whether `value` names the principal's account (`123456789012` or its root)."""
    account = value.split(":")[4] if value.startswith("arn:") and value.endswith(":root") else value
    return len(account) == 12 and account.isdigit() and principal.split(":")[4:5] == [account]
