"""The roles that have a policy, before and after: by attachments, inside the role, or by the policy's name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from policies.resources import Document, Json, blocks, policy
from policies.review.danger import Danger
from policies.review.plan.planned_resources import Place, PlannedResource

ROLE, ATTACHMENT = "aws_iam_role", "aws_iam_role_policy_attachment"
INLINE, MANAGED = "aws_iam_role_policy", "aws_iam_policy"
_ARNS = {ATTACHMENT: "policy_arn", ROLE: "managed_policy_arns"}
_NUMBERED = re.compile(r"-\d+$")
_POLICY = re.compile(r"\$\{(aws_iam_policy\.[A-Za-z0-9_-]+)\.(?:arn|id)\}")
_ROLE_NAME = re.compile(r"\$\{(aws_iam_role\.[A-Za-z0-9_-]+)\.(?:name|id)\}")
_FOREIGN = {
    *("aws_iam_policy_attachment", "aws_iam_user_policy_attachment", "aws_iam_group_policy_attachment"),
    *("aws_iam_user_policy", "aws_iam_group_policy"),
}
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
    """The policies of plans, each with its roles. Roles are names; a renamed one has its new name on both sides."""

    def __init__(self, resources: Sequence[PlannedResource]) -> None:
        roles = [each for each in resources if each.type == ROLE]
        self._names = {each.place: str(each.after.get("name") or "") for each in roles}
        renamed = [(each.before.get("name"), each.after.get("name")) for each in roles]
        self._renamed = {str(before): str(after) for before, after in renamed if before and after}
        self.new_roles = {str(after) for before, after in renamed if after and not before} - {*self._renamed}
        """The roles that the plans create."""
        self._managed = {each.place: _held(each, each.before, each.after) for each in resources if each.type == MANAGED}
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
        self.unclear: list[tuple[Place, str]] = []
        """The changed attachments of which a part is not evident, and what it is."""
        for each in resources:
            if each.type in _ARNS:
                self._attach(each, _ARNS[each.type])
            if each.type == INLINE:
                self._inside(each, each.before, each.after)
            if each.type == ROLE:
                named = [_by_name(side.get("inline_policy")) for side in (each.before, each.after)]
                for name in sorted({*named[0], *named[1]}):
                    self._inside(each, *(side.get(name, {}) for side in named))
        for each in resources:
            held = self._managed.get(each.place)
            if held is not None and not held.roles_before | held.roles_after:
                # No plan shows an attachment: a part has the name of its role, and a number.
                name = _NUMBERED.sub("", str((each.after or each.before).get("name") or ""))
                held.roles_before, held.roles_after = {name}, {name}

    def has(self, arn: str) -> bool:
        """Return whether a plan has the policy."""
        return arn in self._by_arn

    def _attach(self, each: PlannedResource, argument: str) -> None:
        old, new = self._role_before(each), self._role_after(each)
        for held in self._of(each.before.get(argument)):
            held.roles_before.add(old)
        referred = self._referred(each, argument) if each.is_later(argument) else []
        for held in (*self._of(each.after.get(argument)), *referred):
            held.roles_after.add(new)
        is_other = each.type == ATTACHMENT or each.before.get(argument) != each.after.get(argument)
        if not each.is_changed or not is_other:
            return
        self.attachments += [(each.place, role) for role in dict.fromkeys((old, new)) if role]
        is_later = each.is_later(argument) or (each.type == ATTACHMENT and bool(each.unknown.get(argument)))
        if is_later and not referred:
            self.unclear.append((each.place, f"it gets a policy that is {_LATER}"))
        elif each.after and not new:
            self.unclear.append((each.place, f"it gives its policy to a role that is {_LATER}"))

    def _inside(self, each: PlannedResource, before: Json, after: Json) -> None:
        held = _held(each, before, after)
        held.is_changed = each.is_changed and before != after
        held.roles_before = {self._role_before(each)} if before else set()
        held.roles_after = {self._role_after(each)} if after else set()
        self.policies.append(held)

    def _role_before(self, each: PlannedResource) -> str:
        name = _role(each, each.before)
        return self._renamed.get(name, name)

    def _role_after(self, each: PlannedResource) -> str:
        name, found = _role(each, each.after), _ROLE_NAME.fullmatch(str(each.expressions.get("role")))
        return self._names.get((each.place[0], found[1]), "") if found and not each.after.get("role") else name

    def _of(self, arns: Any) -> list[HeldPolicy]:
        listed = arns if isinstance(arns, list) else [arns]
        return [self._by_arn[str(each)] for each in listed if str(each) in self._by_arn]

    def _referred(self, each: PlannedResource, argument: str) -> list[HeldPolicy]:
        """Return the policies that an argument refers to; none if one of them is not evident."""
        given = each.expressions.get(argument)
        found = [_POLICY.fullmatch(str(one)) for one in (given if isinstance(given, list) else [given])]
        held = [self._managed.get((each.place[0], one[1])) if one else None for one in found]
        known = [one for one in held if one is not None]
        return known if len(known) == len(held) else []


def attachment_dangers(resources: Iterable[PlannedResource], attached: AttachedPolicies) -> Iterator[Danger]:
    """Yield the attachments whose policy cannot be reviewed: no plan has its text, or it is not evident which one it is."""
    for (stack, address), what in attached.unclear:
        do = "Refer to the role and the policy that this stack declares, or apply what it depends on first"
        yield Danger(rule="policy_widened", where=address, what=what, do=do, stack=stack)
    for each in resources:
        if not each.is_changed:
            continue
        stack, address = each.place
        if each.type in _FOREIGN and each.after:
            what = "no stack of Frazil has a resource of this type, so its permissions are not compared"
            do = "Give permissions to roles, by a policy and an attachment"
            yield Danger(rule="policy_widened", where=address, what=what, do=do, stack=stack)
        for arn in _gained(each):
            if not attached.has(arn):
                what = (
                    f"it gets the policy {arn}, whose text is not in this plan, so its permissions cannot be reviewed"
                )
                do = "Declare the policy here, as a document"
                yield Danger(rule="policy_widened", where=address, what=what, do=do, stack=stack)


def _gained(each: PlannedResource) -> list[str]:
    """Return the known ARNs that an attachment has, or that a role newly lists."""
    if each.type == ATTACHMENT:
        return [str(each.after["policy_arn"])] if each.after.get("policy_arn") else []
    if each.type != ROLE:
        return []
    had = each.before.get("managed_policy_arns") or []
    return [str(arn) for arn in each.after.get("managed_policy_arns") or [] if arn and arn not in had]


def _role(each: PlannedResource, side: Json) -> str:
    """Return the role that a side of a role, an attachment or an inline policy names."""
    if each.type == ROLE:
        return str(side.get("name") or "")
    return str(side.get("role") or (side.get("name") if each.type == INLINE else "") or "")


def _by_name(inline: Any) -> dict[str, Json]:
    return {str(each.get("name")): each for each in blocks(inline)}


def _held(each: PlannedResource, before: Json, after: Json) -> HeldPolicy:
    texts = [side.get("policy") for side in (before, after)]
    read = [[] if (document := policy(text)) is None else [document] for text in texts]
    is_unread = any(text and not documents for text, documents in zip(texts, read, strict=True))
    return HeldPolicy(
        place=each.place,
        before=read[0],
        after=read[1],
        is_changed=each.is_changed,
        is_unread=is_unread or bool(each.unknown.get("policy")),
        is_new=not before,
    )
