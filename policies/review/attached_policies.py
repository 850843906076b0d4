"""The roles that have a policy, before and after: by attachments, or by the policy's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from policies.resource_changes import Change, Place
from policies.resources import Document, Finding, policy

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


@dataclass(slots=True, kw_only=True)
class HeldPolicy:
    """A policy on both sides, and the roles that have it. `is_unread`: a text of it is not known. `is_new`: it did not exist."""

    place: Place
    before: list[Document]
    after: list[Document]
    is_changed: bool
    is_unread: bool
    is_new: bool
    roles_before: set[str] = field(default_factory=set)
    roles_after: set[str] = field(default_factory=set)


class AttachedPolicies:
    """The policies of plans, each with its roles. Roles are names."""

    def __init__(self, resources: Sequence[Change]) -> None:
        roles = [each for each in resources if each.type == ROLE]
        self._names = {each.place: str(each.after.get("name") or "") for each in roles}
        self.new_roles = {self._names[each.place] for each in roles if not each.before}
        """The roles that the plans create."""
        self._managed = {each.place: _held(each) for each in resources if each.type == MANAGED}
        self._by_arn = {
            str(side["arn"]): self._managed[each.place]
            for each in resources
            if each.type == MANAGED
            for side in (each.before, each.after)
            if side.get("arn")
        }
        self.policies: list[HeldPolicy] = [*self._managed.values()]
        self.attachments: list[tuple[Place, str]] = []
        """The changed attachments of each role."""
        self.unclear: list[tuple[str, str]] = []
        """The changed attachments of which a part is not evident, and what it is."""
        for each in resources:
            if each.type == ATTACHMENT:
                self._attach(each)
        for each in resources:
            held = self._managed.get(each.place)
            if held is not None and not held.roles_before | held.roles_after:
                # No plan shows an attachment: a part has the name of its role, and a number.
                name = _NUMBERED.sub("", str((each.after or each.before).get("name") or ""))
                held.roles_before, held.roles_after = {name}, {name}

    def has(self, arn: str) -> bool:
        """Return whether a plan has the policy."""
        return arn in self._by_arn

    def _attach(self, each: Change) -> None:
        old, new = str(each.before.get("role") or ""), self._role_after(each)
        if held := self._by_arn.get(str(each.before.get("policy_arn"))):
            held.roles_before.add(old)
        known = self._by_arn.get(str(each.after.get("policy_arn"))) or self._referred(each)
        if known:
            known.roles_after.add(new)
        if not each.is_changed:
            return
        self.attachments += [(each.place, role) for role in dict.fromkeys((old, new)) if role]
        if each.unknown.get("policy_arn") and not known:
            self.unclear.append((each.address, f"it gets a policy that is {_LATER}"))
        elif each.after and not new:
            self.unclear.append((each.address, f"it gives its policy to a role that is {_LATER}"))

    def _role_after(self, each: Change) -> str:
        found = _ROLE_NAME.fullmatch(str(each.expressions.get("role")))
        if found and not each.after.get("role"):
            return self._names.get((each.place[0], found[1]), "")
        return str(each.after.get("role") or "")

    def _referred(self, each: Change) -> HeldPolicy | None:
        """Return the policy that an attachment refers to; None if it is not evident."""
        found = _POLICY.fullmatch(str(each.expressions.get("policy_arn")))
        return self._managed.get((each.place[0], found[1])) if found and each.is_later("policy_arn") else None


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


def _held(each: Change) -> HeldPolicy:
    texts = [side.get("policy") for side in (each.before, each.after)]
    read = [[] if (document := policy(text)) is None else [document] for text in texts]
    is_unread = any(text and not documents for text, documents in zip(texts, read, strict=True))
    return HeldPolicy(
        place=each.place,
        before=read[0],
        after=read[1],
        is_changed=each.is_changed,
        is_unread=is_unread or bool(each.unknown.get("policy")),
        is_new=not each.before,
    )
