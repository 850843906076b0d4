"""Terraform's change of each resource, read from a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
class Change:
    """A managed resource of a plan, with both sides. `unknown` has the arguments that are known only after the apply.

    `forced_by` are the attributes that force its replacement, `expressions` its arguments as its stack declares them.
    `is_deposed`: it is the remainder of an earlier replacement.
    """

    address: str
    type: str
    verb: Verb
    before: Json
    after: Json
    unknown: Json = field(default_factory=dict)
    expressions: Json = field(default_factory=dict)
    forced_by: tuple[str, ...] = ()
    stack: str = ""
    is_deposed: bool = False

    @property
    def place(self) -> Place:
        """Its stack and its address."""
        return self.stack, self.address

    @property
    def is_changed(self) -> bool:
        """True if an apply changes the object itself."""
        return self.verb not in {Verb.STAY, Verb.MOVE, Verb.IMPORT}

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


def changes_of(plan: Json, stack: str = "", synthesised: Json | None = None) -> Iterator[Change]:
    """Yield the managed resources of a plan, the unchanged ones too. `synthesised` is their stack."""
    declared = (synthesised or {}).get("resource", {})
    for each in plan.get("resource_changes", ()):
        if each.get("mode", "managed") != "managed":
            continue
        change, address, kind = each["change"], str(each.get("address", "")), str(each.get("type", ""))
        unknown = change.get("after_unknown")
        yield Change(
            stack=stack,
            address=address,
            type=kind,
            verb=_verb(each),
            before=change.get("before") or {},
            after=change.get("after") or {},
            unknown=unknown if isinstance(unknown, Mapping) else {},
            expressions=declared.get(kind, {}).get(address.partition(".")[2]) or {},
            forced_by=tuple(sorted({_path(path) for path in change.get("replace_paths") or ()})),
            is_deposed=bool(each.get("deposed")),
        )


def is_marked(mark: Any) -> bool:
    """Return whether a value, or a part of it, is known only after the apply."""
    if isinstance(mark, Mapping | list):
        return any(map(is_marked, mark.values() if isinstance(mark, Mapping) else mark))
    return bool(mark)


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
