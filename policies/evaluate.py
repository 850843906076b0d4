"""Evaluation: may this request be made? IAM's logic for what our policies use, as a pure function.

By https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html, for requests within one account: a
statement that denies decides; else one that allows, of the identity's policies or of the resource's; else it is denied.
What our policies do not use (sessions, organisations, policy variables, dates, addresses) is not guessed at: it
is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from policies.conditions import holds
from policies.patterns import Unsupported, matches, matches_arn

Document = Mapping[str, Any]


class Verdict(StrEnum):
    """What becomes of a request. `explicitly_denied`: a statement denies it, and no other can allow it.

    `implicitly_denied`: no statement allows it.
    """

    ALLOWED = "allowed"
    EXPLICITLY_DENIED = "explicitly_denied"
    IMPLICITLY_DENIED = "implicitly_denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `principal` is an ARN, a service's name (`emr-serverless.amazonaws.com`) or `anonymous`.

    `context` holds condition keys, by their names in any case. A key that is not there is not in the request's context.
    """

    action: str
    resource: str
    principal: str = "anonymous"
    context: Mapping[str, str | Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict, and the Sids of the statements that made it."""

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
    """Decide a request of a principal with these `identity` policies on what has that `resource` policy, in one account.

    A resource's policy that allows a whole account leaves it to that account whom: the identity's policies must allow too.
    Nothing but its trust (a resource's policy without resources) lets anyone assume a role, nothing but its own policy
    lets anyone use a KMS key. A role with a permissions `boundary` may do what that allows too, also where a resource's policy
    names the role. A principal of another account needs that account's leave as well, which is not asked here.
    Raises `Unsupported` for what is not known here,
    also in statements that do not apply: silence would be taken for a no.
    """
    ours = [each for document in identity for each in statements(document) if _applies(each, request)]
    theirs = [each for each in statements(resource) if _applies(each, request, is_resources=True)]
    bounds = [each for each in statements(boundary) if _applies(each, request)]
    denying = tuple(each.get("Sid", "") for each in (*ours, *theirs, *bounds) if each["Effect"] == "Deny")
    if denying:
        return Decision(Verdict.EXPLICITLY_DENIED, denying)
    if boundary is not None and not bounds:
        return Decision(Verdict.IMPLICITLY_DENIED)
    is_trust = any(not each.keys() & {"Resource", "NotResource"} for each in statements(resource))
    is_closed = is_trust or ":kms:" in request.resource
    named = [each for each in theirs if _is_named(each["Principal"], request.principal, is_account_enough=False)]
    if named or (ours and (theirs or not is_closed)):
        return Decision(Verdict.ALLOWED, tuple(each.get("Sid", "") for each in (*ours, *theirs)))
    return Decision(Verdict.IMPLICITLY_DENIED)


def statements(document: Document | None) -> Sequence[Document]:
    """The statements of a policy, which may stand alone or in a list; none of no policy."""
    found = (document or {}).get("Statement", ())
    return [found] if isinstance(found, Mapping) else found


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
    """`Action` or `NotAction`, `Resource` or `NotResource`; a trust has neither of the latter, and means its role."""
    negated = f"Not{element}"
    if element in statement:
        return any(is_match(one, value) for one in many(statement[element]))
    if negated in statement:
        return not any(is_match(one, value) for one in many(statement[negated]))
    return element == "Resource"


def _is_named(named: str | Mapping[str, Any], principal: str, *, is_account_enough: bool = True) -> bool:
    """Whether a `Principal` element names who asks, by itself or, if that is enough, by its account."""
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
    """Whether `value` names a whole account (`123456789012` or its root), and the principal is of that account."""
    account = value.split(":")[4] if value.startswith("arn:") and value.endswith(":root") else value
    return len(account) == 12 and account.isdigit() and principal.split(":")[4:5] == [account]


def many(value: Any) -> Sequence[Any]:
    """An element of a policy that may stand alone or in a list, as a list."""
    return [value] if isinstance(value, str | Mapping | bool | int) else value
