"""The permissions of a role: the statements of all its policies together, before and after.

A policy that exceeds IAM's limits is attached in parts (`policies.documents.split`), and another pipeline moves statements
between parts. Compared part by part, each move would look like a new permission; compared together, it does not. A policy that
is attached to another role gives that role all of its statements, though no policy changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from policies.resource_changes import Change, Verb
from policies.resource_values import Facts
from policies.resources import Document, Finding, Reviewed, statements
from policies.review.attached_policies import ROLE, AttachedPolicies, HeldPolicy
from policies.rules.new_permissions import policy_widened


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
    """Return the roles whose policies or attachments change."""
    held: dict[str, list[HeldPolicy]] = {}
    for each in attached.policies:
        for role in sorted(each.roles_before | each.roles_after):
            held.setdefault(role, []).append(each)
    for role, policies in held.items():
        after = [each for each in policies if role in each.roles_after]
        is_borrowed = any(
            role not in each.roles_before and (each.roles_before | each.roles_after) - {role} for each in after
        )
        of_policies = [each.place for each in policies if each.is_changed]
        of_attachments = [place for place, of in attached.attachments if of == role]
        changed = [*of_attachments, *of_policies] if is_borrowed else [*of_policies, *of_attachments]
        if not changed or not role:
            continue
        is_new = role in attached.new_roles
        yield RoleRights(
            role=role,
            addresses=tuple(dict.fromkeys(address for _, address in changed)),
            before=_gathered(each.before for each in policies if role in each.roles_before),
            after=_gathered(each.after for each in after),
            own=_gathered(each.after for each in after if each.is_new),
            is_unknown=any(each.is_unread for each in policies),
            is_new=is_new,
            is_borrowed=is_borrowed,
        )


def _gathered(documents: Iterable[list[Document]]) -> Document:
    return {"Statement": [each for several in documents for one in several for each in statements(one)]}
