"""The findings on permissions of roles, each with all of its policies, and the changes that a declaration may ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from policies.finding import Finding
from policies.resource_values import Facts
from policies.resources import Change, Reviewed
from policies.review.attached_policies import ATTACHMENT, ROLE
from policies.review.role_permissions import RoleRights
from policies.rules.new_permissions import policy_widened


def with_roles(found: Iterable[Finding], rights: Sequence[RoleRights], facts: Facts) -> list[Finding]:
    """Return the findings of rules, with those on roles instead of those on the single policies of a role."""
    parts = _parts(rights)
    apart = [
        each
        for each in found
        if each.rule != policy_widened.__name__
        or not (each.resource in parts or each.resource.startswith(f"{ATTACHMENT}."))
    ]
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
