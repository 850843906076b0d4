"""The principals that may assume new roles. The rule about new permissions compares, and a new role has nothing before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from policies.resource_changes import Change
from policies.resource_values import DeclaredAccess
from policies.resources import Document, Finding, many, policy, statements

_INTEGRATION = r"\$\{(confluent_provider_integration\.[A-Za-z0-9_-]+)\.aws\[0\]\."
_CONFLUENT, _CONFLUENTS_ID = re.compile(_INTEGRATION + r"iam_role_arn\}"), re.compile(_INTEGRATION + r"external_id\}")
_SUBJECT = "token.actions.githubusercontent.com:sub"
_DO = "Declare the principal in the deployment, with its external id if it is of another company"


def trust_dangers(resources: Iterable[Change], access: DeclaredAccess) -> Iterator[Finding]:
    """Yield the principals that new roles let in and the deployment does not declare.

    The rules about trusts check services and everybody (`policies/rules/access.py`).
    """
    for each in resources:
        argument = "assume_role_policy"
        given = each.after.get(argument) or each.unknown.get(argument)
        if each.type != "aws_iam_role" or each.before or not each.is_changed or not given:
            continue
        # The stack names Confluent's integration by a reference, which says whose role it is.
        document = policy(each.expressions.get(argument)) or policy(each.after.get(argument))
        found = list(_let_in(document, access)) if document is not None else [_UNREAD]
        for what in dict.fromkeys(found):
            yield Finding("policy_widened", each.address, what, _DO)


_UNREAD = "assume_role_policy is known only after it is applied, so its permissions cannot be reviewed"


def _let_in(trust: Document, access: DeclaredAccess) -> Iterator[str]:
    for statement in statements(trust):
        if statement.get("Effect") != "Allow" or set(many(statement.get("Action", ()))) == {"sts:TagSession"}:
            continue
        principal = statement.get("Principal")
        for kind, values in principal.items() if isinstance(principal, Mapping) else ():
            for one in many(values):
                if kind == "AWS" and one != "*":
                    yield from _refused(str(one), _equal(statement, "sts:ExternalId"), access)
                elif kind not in {"AWS", "Service"}:
                    subjects = _equal(statement, _SUBJECT)
                    if not subjects or not subjects <= access.subjects:
                        yield f"a new role lets {one} in, for workflows that the deployment does not declare"


def _refused(principal: str, ids: set[str], access: DeclaredAccess) -> Iterator[str]:
    confluents = _CONFLUENT.fullmatch(principal)
    if confluents:
        named = [_CONFLUENTS_ID.fullmatch(each) for each in ids]
        is_known = bool(named) and all(each is not None and each[1] == confluents[1] for each in named)
    elif principal not in access.principals:
        yield f"a new role lets {principal} in, and the deployment declares no such principal"
        return
    else:
        wanted = access.external_ids.get(principal)
        is_known = wanted is None or ids == {wanted}
    if not is_known:
        yield f"a new role lets {principal} in without an external id that is declared for it"


def _equal(statement: Document, key: str) -> set[str]:
    """Return the values of which a condition wants one, exactly."""
    found = (statement.get("Condition") or {}).get("StringEquals", {}).get(key, ())
    return {str(each) for each in many(found)}
