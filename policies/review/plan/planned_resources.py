"""The managed resources of plans with both sides, and the expressions of values that are known only after an apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from policies.resources import Json

Place = tuple[str, str]
"""A stack and an address. The stacks of two groups have the same addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedResource:
    """A managed resource. `expressions` are its arguments as its stack declares them."""

    place: Place
    type: str
    before: Json
    after: Json
    unknown: Json
    expressions: Json
    is_changed: bool

    def is_later(self, argument: str) -> bool:
        """Return whether an argument is declared, and it or a part of it is known only after the apply."""
        return is_marked(self.unknown.get(argument)) and argument in self.expressions

    def gains(self, argument: str) -> bool:
        """Return whether an argument has another value afterwards, or one that is known only then."""
        after = self.after.get(argument)
        return self.is_later(argument) or bool(after and after != self.before.get(argument))


def planned_resources(plans: Mapping[str, Json], synthesised: Mapping[str, Json]) -> list[PlannedResource]:
    """Return the managed resources of cleaned plans, the unchanged ones too. Both arguments are by stack."""
    found = []
    for stack, plan in plans.items():
        declared = synthesised.get(stack, {}).get("resource", {})
        for each in plan["resource_changes"]:
            if each.get("mode", "managed") != "managed" or each.get("deposed"):
                continue
            address, kind, change = str(each.get("address", "")), str(each.get("type", "")), each["change"]
            unknown = change.get("after_unknown")
            made = PlannedResource(
                place=(stack, address),
                type=kind,
                before=change.get("before") or {},
                after=change.get("after") or {},
                unknown=unknown if isinstance(unknown, Mapping) else {},
                expressions=declared.get(kind, {}).get(address.partition(".")[2]) or {},
                is_changed=bool(set(change["actions"]) - {"no-op", "read"}),
            )
            found.append(made)
    return found


def is_marked(mark: Any) -> bool:
    """Return whether a value, or a part of it, is known only after the apply."""
    if isinstance(mark, Mapping | list):
        return any(map(is_marked, mark.values() if isinstance(mark, Mapping) else mark))
    return bool(mark)
