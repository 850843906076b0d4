"""Terraform's change of each resource, read from a cleaned plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Json = Mapping[str, Any]


class Verb(StrEnum):
    """A kind of change. `FORGET`: the resource stays as it is, and Terraform no longer manages it."""

    DELETE = "delete"
    REPLACE = "replace"
    FORGET = "forget"
    UPDATE = "update"
    IMPORT = "import"
    MOVE = "move"
    CREATE = "create"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A changed resource. `forced_by` are the attributes that force its replacement."""

    stack: str
    address: str
    type: str
    verb: Verb
    before: Json
    after: Json
    unknown: Any
    forced_by: tuple[str, ...] = ()

    def is_unknown(self, argument: str) -> bool:
        """Return whether an argument or a part of it is known only after it is applied."""
        return bool(self.unknown.get(argument)) if isinstance(self.unknown, Mapping) else bool(self.unknown)


def planned(plan: Json, stack: str) -> tuple[Planned, ...]:
    """Return the changes of managed resources, without data sources and unchanged resources."""
    return tuple(_changes(plan, stack))


def _changes(plan: Json, stack: str) -> Iterator[Planned]:
    for each in plan.get("resource_changes", ()):
        verb = _verb(each)
        if verb is None or each.get("mode", "managed") != "managed":
            continue
        change = each["change"]
        yield Planned(
            stack=stack,
            address=str(each.get("address", "")),
            type=str(each.get("type", "")),
            verb=verb,
            before=change.get("before") or {},
            after=change.get("after") or {},
            unknown=change.get("after_unknown") or {},
            forced_by=tuple(sorted({_path(path) for path in change.get("replace_paths") or ()})),
        )


def is_complete(plan: Json) -> bool:
    """Return whether the plan is complete: one that ended in an error or deferred changes is not."""
    return not plan.get("errored") and plan.get("complete", True) is not False


def _verb(resource: Json) -> Verb | None:
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
    return Verb.MOVE if resource.get("previous_address") else None


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
