"""Terraform's change of each resource, read from a cleaned plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Json = Mapping[str, Any]


class Verb(StrEnum):
    """A kind of change. `FORGET`: the resource stays as it is, and Terraform no longer manages it. `STAY`: no change."""

    DELETE = "delete"
    REPLACE = "replace"
    FORGET = "forget"
    UPDATE = "update"
    IMPORT = "import"
    MOVE = "move"
    CREATE = "create"
    STAY = "stay"


Place = tuple[str, str]
"""A stack and an address. The stacks of two groups have the same addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A managed resource of a plan, with both sides.

    `forced_by` are the attributes that force its replacement, `expressions` its arguments as its stack declares them.
    `is_changed`: an apply changes the object itself. `is_deposed`: it is the remainder of an earlier replacement.
    """

    stack: str
    address: str
    type: str
    verb: Verb
    before: Json
    after: Json
    unknown: Json
    expressions: Json
    forced_by: tuple[str, ...]
    is_changed: bool
    is_deposed: bool

    @property
    def place(self) -> Place:
        """Its stack and its address."""
        return self.stack, self.address

    def is_unknown(self, argument: str) -> bool:
        """Return whether an argument or a part of it is known only after the apply."""
        return is_marked(self.unknown.get(argument))

    def is_later(self, argument: str) -> bool:
        """Return whether an argument is declared, and it or a part of it is known only after the apply."""
        return self.is_unknown(argument) and argument in self.expressions

    def gains(self, argument: str) -> bool:
        """Return whether an argument has another value afterwards, or one that is known only then."""
        after = self.after.get(argument)
        return self.is_later(argument) or bool(after and after != self.before.get(argument))


def planned(plan: Json, stack: str, synthesised: Json | None = None) -> tuple[Planned, ...]:
    """Return the managed resources of a plan, the unchanged ones too."""
    return tuple(_resources(plan, stack, (synthesised or {}).get("resource", {})))


def _resources(plan: Json, stack: str, declared: Json) -> Iterator[Planned]:
    for each in plan.get("resource_changes", ()):
        if each.get("mode", "managed") != "managed":
            continue
        change, address, kind = each["change"], str(each.get("address", "")), str(each.get("type", ""))
        unknown = change.get("after_unknown")
        yield Planned(
            stack=stack,
            address=address,
            type=kind,
            verb=_verb(each),
            before=change.get("before") or {},
            after=change.get("after") or {},
            unknown=unknown if isinstance(unknown, Mapping) else {},
            expressions=declared.get(kind, {}).get(address.partition(".")[2]) or {},
            forced_by=tuple(sorted({_path(path) for path in change.get("replace_paths") or ()})),
            is_changed=bool(set(change["actions"]) - {"no-op", "read"}),
            is_deposed=bool(each.get("deposed")),
        )


def is_marked(mark: Any) -> bool:
    """Return whether a value, or a part of it, is known only after the apply."""
    if isinstance(mark, Mapping | list):
        return any(map(is_marked, mark.values() if isinstance(mark, Mapping) else mark))
    return bool(mark)


def is_complete(plan: Json) -> bool:
    """Return whether the plan is complete: one that ended in an error or deferred changes is not."""
    return not plan.get("errored") and plan.get("complete", True) is not False


def _verb(resource: Json) -> Verb:
    actions = set(resource["change"]["actions"])
    if "forget" in actions:
        return Verb.FORGET
    if actions == {"create", "delete"}:
        return Verb.REPLACE
    for verb in (Verb.DELETE, Verb.UPDATE, Verb.CREATE):
        if actions == {verb.value}:
            return verb
    if resource["change"].get("importing"):
        return Verb.IMPORT
    return Verb.MOVE if resource.get("previous_address") else Verb.STAY


def _path(steps: Any) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def as_declared(plan: Json, synthesised: Json | None) -> Json:
    """Return a cleaned plan with the planned values of its resources, of declared arguments only.

    Values that a service fills in are omitted: each review would find the open policy that AWS gives an endpoint or a topic.
    """
    declared = {
        f"{kind}.{name}": values
        for kind, named in (synthesised or {}).get("resource", {}).items()
        for name, values in named.items()
    }
    kept = []
    for each in plan["resource_changes"]:
        after = each["change"]["after"]
        if isinstance(after, Mapping):
            known = declared.get(each["address"], after)
            kept.append({**each, "values": {name: value for name, value in after.items() if name in known}})
    return {**plan, "planned_values": {"root_module": {"resources": kept}}}
