"""The permissions of roles: the statements of all policies of a role together, before and after.

A policy that exceeds IAM's limits is attached in parts (`policies.documents.split`), and another pipeline moves statements
between parts. Compared part by part, each move would look like a new permission; compared together, it does not. A policy that
is attached to another role gives that role all of its statements, though no policy changes.

The trust of a new role has nothing before, so the principals that it lets in are compared with the declared ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from policies.resource_changes import Change, Verb
from policies.resource_values import DeclaredAccess, Facts
from policies.resources import Document, Finding, Json, Reviewed, many, policy, statements
from policies.rules.new_permissions import policy_widened

ROLE, ATTACHMENT, MANAGED = "aws_iam_role", "aws_iam_role_policy_attachment", "aws_iam_policy"
_NUMBERED = re.compile(r"-\d+$")
_POLICY = re.compile(r"\$\{(aws_iam_policy\.[A-Za-z0-9_-]+)\.(?:arn|id)\}")
_ROLE_NAME = re.compile(r"\$\{(aws_iam_role\.[A-Za-z0-9_-]+)\.(?:name|id)\}")
_FOREIGN = {
    *("aws_iam_policy_attachment", "aws_iam_user_policy_attachment", "aws_iam_group_policy_attachment"),
    *("aws_iam_role_policy", "aws_iam_user_policy", "aws_iam_group_policy"),
    *("aws_iam_role_policies_exclusive", "aws_iam_role_policy_attachments_exclusive"),
}
_FOREIGN_ARGUMENTS = ("inline_policy", "managed_policy_arns")
_LATER = "known only after it is applied, so its permissions cannot be reviewed"
_INTEGRATION = r"\$\{(confluent_provider_integration\.[A-Za-z0-9_-]+)\.aws\[0\]\."
_CONFLUENT, _CONFLUENTS_ID = re.compile(_INTEGRATION + r"iam_role_arn\}"), re.compile(_INTEGRATION + r"external_id\}")
_SUBJECT = "token.actions.githubusercontent.com:sub"
_DECLARE = "Declare the principal in the deployment, with its external id if it is of another company"


@dataclass(slots=True)
class HeldPolicy:
    """A policy on both sides, and the names of the roles that have it."""

    change: Change
    roles_before: set[str] = field(default_factory=set)
    roles_after: set[str] = field(default_factory=set)

    @property
    def is_unread(self) -> bool:
        """True if a text of it is not known."""
        texts = (side.get("policy") for side in (self.change.before, self.change.after))
        return bool(self.change.unknown.get("policy")) or any(text and policy(text) is None for text in texts)


class AttachedPolicies:
    """The policies of plans, each with its roles: by attachments, or by the policy's name. Roles are names."""

    def __init__(self, resources: Sequence[Change]) -> None:
        roles = [each for each in resources if each.type == ROLE]
        self._names = {each.place: str(each.after.get("name") or "") for each in roles}
        self.new_roles = {self._names[each.place] for each in roles if not each.before}
        """The roles that the plans create."""
        self._managed = {each.place: HeldPolicy(each) for each in resources if each.type == MANAGED}
        self.policies = list(self._managed.values())
        self._by_arn = {
            str(side["arn"]): held
            for held in self.policies
            for side in (held.change.before, held.change.after)
            if side.get("arn")
        }
        self.attachments: list[tuple[str, str]] = []
        """The address of each changed attachment, and a role."""
        self.unclear: list[tuple[str, str]] = []
        """The changed attachments of which a part is not evident, and what it is."""
        for each in resources:
            if each.type == ATTACHMENT:
                self._attach(each)
        for held in self.policies:
            if not held.roles_before | held.roles_after:
                # No plan shows an attachment: a part has the name of its role, and a number.
                name = _NUMBERED.sub("", str((held.change.after or held.change.before).get("name") or ""))
                held.roles_before, held.roles_after = {name}, {name}

    def has(self, arn: str) -> bool:
        """Return whether a plan has the policy."""
        return arn in self._by_arn

    def _attach(self, each: Change) -> None:
        old, new = str(each.before.get("role") or ""), self._role_after(each)
        if held := self._by_arn.get(str(each.before.get("policy_arn"))):
            held.roles_before.add(old)
        known = self._by_arn.get(str(each.after.get("policy_arn")))
        found = _POLICY.fullmatch(str(each.expressions.get("policy_arn")))
        if not known and found and each.is_later("policy_arn"):
            known = self._managed.get((each.place[0], found[1]))
        if known:
            known.roles_after.add(new)
        if not each.is_changed:
            return
        self.attachments += [(each.address, role) for role in dict.fromkeys((old, new)) if role]
        if each.unknown.get("policy_arn") and not known:
            self.unclear.append((each.address, f"it gets a policy that is {_LATER}"))
        elif each.after and not new:
            self.unclear.append((each.address, f"it gives its policy to a role that is {_LATER}"))

    def _role_after(self, each: Change) -> str:
        found = _ROLE_NAME.fullmatch(str(each.expressions.get("role")))
        if found and not each.after.get("role"):
            return self._names.get((each.place[0], found[1]), "")
        return str(each.after.get("role") or "")


def attachment_dangers(resources: Iterable[Change], attached: AttachedPolicies) -> Iterator[Finding]:
    """Yield the permissions that cannot be reviewed: no plan has the policy, it is not evident, or Frazil does not compare it."""
    for address, what in attached.unclear:
        do = "Refer to the role and the policy that this stack declares, or apply what it depends on first"
        yield Finding("policy_widened", address, what, do)
    for each in resources:
        if not each.is_changed:
            continue
        if (each.type in _FOREIGN and each.after) or (each.type == ROLE and any(map(each.gains, _FOREIGN_ARGUMENTS))):
            what = "it gives permissions in a way that no stack of Frazil does, so they are not compared"
            yield Finding(
                "policy_widened", each.address, what, "Give permissions to roles, by a policy and an attachment"
            )
        arn = each.after.get("policy_arn") if each.type == ATTACHMENT else None
        if arn and not attached.has(str(arn)):
            what = f"it gets the policy {arn}, whose text is not in this plan, so its permissions cannot be reviewed"
            yield Finding("policy_widened", each.address, what, "Declare the policy here, as a document")


def with_roles(found: Iterable[Finding], rights: Sequence[RoleRights], facts: Facts) -> list[Finding]:
    """Return the findings of rules, with those on roles instead of those on the single policies of a role."""
    parts = _parts(rights)
    apart = [each for each in found if each.rule != policy_widened.__name__ or each.resource not in parts]
    of_roles = [
        replace(one, what=f"policy of {each.role}{one.what.removeprefix('policy')}")
        for each in rights
        for one in policy_widened(Reviewed(changes=(each.change,)), facts)
    ]
    return [*apart, *sorted(of_roles)]


def explainable(changes: Iterable[Change], rights: Sequence[RoleRights]) -> dict[str, list[Change]]:
    """Return the changes that may follow from a declaration, by address: roles instead of the single policies of a role.

    No declaration asks for a policy of another role.
    """
    parts = _parts(rights)
    borrowed = {each.addresses[0] for each in rights if each.is_borrowed}
    found: dict[str, list[Change]] = {}
    for change in (*(each for each in changes if each.address not in parts), *(each.change for each in rights)):
        if change.address not in borrowed:
            found.setdefault(change.address, []).append(change)
    return found


def _parts(rights: Iterable[RoleRights]) -> set[str]:
    """Return the addresses of policies and attachments. A role's own change is that of its trust, too."""
    return {address for each in rights for address in each.addresses if not address.startswith(f"{ROLE}.")}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRights:
    """The policies of one role, as one document before and one after.

    `addresses` are the changed ones. `own` is what new policies allow. `is_unknown`: a part is known only after it is applied.
    `is_new`: this plan creates the role. `is_borrowed`: it gets a policy that another role has too, or had.
    """

    role: str
    addresses: tuple[str, ...]
    before: Document
    after: Document
    own: Document
    is_unknown: bool = False
    is_new: bool = False
    is_borrowed: bool = False

    @property
    def change(self) -> Change:
        """The permissions as one change, for the rules about changes. What a new role gets by new policies is no change."""
        return Change(
            address=self.addresses[0],
            type="aws_iam_role_policy",
            verb=Verb.UPDATE,
            before={"policy": json.dumps(self.own if self.is_new else self.before)},
            after={"policy": json.dumps(self.after)},
            unknown={"policy": self.is_unknown and not self.is_new},
        )


def role_rights(attached: AttachedPolicies) -> Iterator[RoleRights]:
    """Yield the roles whose policies or attachments change."""
    held: dict[str, list[HeldPolicy]] = {}
    for each in attached.policies:
        for role in sorted(each.roles_before | each.roles_after):
            held.setdefault(role, []).append(each)
    for role, policies in held.items():
        before = [each.change.before for each in policies if role in each.roles_before]
        after = [each for each in policies if role in each.roles_after]
        is_borrowed = any(
            role not in each.roles_before and (each.roles_before | each.roles_after) - {role} for each in after
        )
        of_policies = [each.change.address for each in policies if each.change.is_changed]
        of_attachments = [address for address, of in attached.attachments if of == role]
        changed = [*of_attachments, *of_policies] if is_borrowed else [*of_policies, *of_attachments]
        if changed and role:
            yield RoleRights(
                role=role,
                addresses=tuple(dict.fromkeys(changed)),
                before=_gathered(before),
                after=_gathered(each.change.after for each in after),
                own=_gathered(each.change.after for each in after if not each.change.before),
                is_unknown=any(each.is_unread for each in policies),
                is_new=role in attached.new_roles,
                is_borrowed=is_borrowed,
            )


def _gathered(sides: Iterable[Json]) -> Document:
    return {"Statement": [each for side in sides for each in statements(policy(side.get("policy")))]}


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
        found = list(_let_in(document, access)) if document is not None else [f"{argument} is {_LATER}"]
        for what in dict.fromkeys(found):
            yield Finding("policy_widened", each.address, what, _DECLARE)


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
