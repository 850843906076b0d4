"""The permissions of a role: the statements of all its policies together, before and after.

A policy that exceeds IAM's limits is attached in parts (`policies.documents.split`), and another pipeline moves statements
between parts. Compared part by part, each move would look like a new permission; compared together, it does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policies.evaluate import Document, many, statements
from policies.resources import Change, Json, policy

INLINE = "aws_iam_role_policy"
TYPES = ("aws_iam_policy", INLINE)
_NUMBERED = re.compile(r"-\d+$")
_PIECE = re.compile(r"\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRights:
    """The policies of one role, as one document before and one after.

    `addresses` are the changed ones. `is_unknown`: a part is known only after it is applied. `is_new`: this plan creates the
    role.
    """

    stack: str
    role: str
    addresses: tuple[str, ...]
    before: Document
    after: Document
    is_unknown: bool = False
    is_new: bool = False

    @property
    def change(self) -> Change:
        """The permissions as one change, for the rules about changes."""
        return Change(
            address=self.addresses[0],
            type=INLINE,
            verb="update",
            before={"policy": json.dumps(self.before)},
            after={"policy": json.dumps(self.after)},
            unknown=frozenset({"policy"}) if self.is_unknown else frozenset(),
        )


@dataclass(slots=True)
class _Sides:
    addresses: list[str] = field(default_factory=list)
    before: list[Document] = field(default_factory=list)
    after: list[Document] = field(default_factory=list)
    is_unknown: bool = False


def role_rights(plan: Json, stack: str) -> Iterator[RoleRights]:
    """Return the roles whose policies change in a cleaned plan."""
    listed = [each for each in plan["resource_changes"] if each.get("mode", "managed") == "managed"]
    made = {
        str((each["change"].get("after") or {}).get("name"))
        for each in listed
        if each.get("type") == "aws_iam_role" and not each["change"].get("before")
    }
    roles: dict[str, _Sides] = {}
    for each in listed:
        if each.get("type") not in TYPES:
            continue
        change = each["change"]
        before, after = change.get("before") or {}, change.get("after") or {}
        sides = roles.setdefault(_role(each["type"], after or before), _Sides())
        sides.before += _read(before.get("policy"))
        sides.after += _read(after.get("policy"))
        sides.is_unknown |= bool((change.get("after_unknown") or {}).get("policy")) or _is_unread(before, after)
        if set(change["actions"]) - {"no-op", "read"}:
            sides.addresses.append(str(each.get("address", "")))
    for role, sides in roles.items():
        if sides.addresses:
            yield RoleRights(
                stack=stack,
                role=role,
                addresses=tuple(sides.addresses),
                before=gathered(sides.before),
                after=gathered(sides.after),
                is_unknown=sides.is_unknown,
                is_new=role in made,
            )


def gathered(documents: Iterable[Document]) -> dict[str, Any]:
    """Combine several policies into one that allows exactly the same.

    Two statements that differ in one list only, of resources or of a condition's values, are merged into one with both lists.
    """
    pending = [_sorted(each) for document in documents for each in statements(document)]
    kept: list[dict[str, Any]] = []
    while pending:
        statement = pending.pop(0)
        for other in kept:
            joined = _joined(other, statement)
            if joined is not None:
                kept.remove(other)
                pending.insert(0, joined)
                break
        else:
            kept.append(statement)
    return {"Version": "2012-10-17", "Statement": kept}


def _role(kind: str, values: Json) -> str:
    if kind == INLINE:
        return str(values.get("role") or values.get("name") or "")
    return _NUMBERED.sub("", str(values.get("name") or ""))


def _read(text: Any) -> list[Document]:
    document = policy(text)
    return [document] if document is not None else []


def _is_unread(before: Json, after: Json) -> bool:
    return any(side.get("policy") and policy(side["policy"]) is None for side in (before, after))


def _sorted(statement: Document) -> dict[str, Any]:
    """Return a statement with sorted lists, and with a single resource as a list."""
    made = dict(statement)
    if "Resource" in made:
        made["Resource"] = sorted(map(str, many(made["Resource"])))
    if isinstance(made.get("Condition"), Mapping):
        made["Condition"] = {
            operator: {
                key: sorted(map(str, value)) if isinstance(value, list) else value for key, value in keys.items()
            }
            for operator, keys in made["Condition"].items()
            if isinstance(keys, Mapping)
        }
    return made


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any] | None:
    """Merge two statements that allow, if they differ in at most one list."""
    names = [str(each.get("Sid", "")) for each in (one, other)]
    if (
        one.get("Effect") != "Allow"
        or other.get("Effect") != "Allow"
        or _PIECE.sub("", names[0]) != _PIECE.sub("", names[1])
    ):
        return None
    left, right = _lists(one), _lists(other)
    if left.keys() != right.keys() or _bare(one) != _bare(other):
        return None
    differing = [path for path in left if left[path] != right[path]]
    if len(differing) > 1:
        return None
    made: dict[str, Any] = json.loads(json.dumps({**one, **({"Sid": _PIECE.sub("", names[0])} if names[0] else {})}))
    for path in differing:
        node = made
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = sorted({*left[path], *right[path]})
    return made


def _lists(statement: Mapping[str, Any]) -> dict[tuple[str, ...], Sequence[str]]:
    """Return the lists of which any value is enough."""
    found: dict[tuple[str, ...], Sequence[str]] = {}
    if isinstance(statement.get("Resource"), list):
        found["Resource",] = statement["Resource"]
    for operator, keys in (statement.get("Condition") or {}).items():
        if "Not" not in operator and ":" not in operator:
            found |= {("Condition", operator, key): value for key, value in keys.items() if isinstance(value, list)}
    return found


def _bare(statement: Mapping[str, Any]) -> str:
    """Return the statement without those lists and without its name."""
    made: dict[str, Any] = json.loads(json.dumps({key: value for key, value in statement.items() if key != "Sid"}))
    for path in _lists(statement):
        node = made
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = []
    return json.dumps(made, sort_keys=True)
