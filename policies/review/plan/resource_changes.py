"""Terraform's changes of each resource, read from a cleaned plan, and changes made outside of this code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Json = Mapping[str, Any]

_NOTHING: tuple[Any, ...] = (None, "", [], {})


class Verb(StrEnum):
    """A kind of change. `FORGET`: the resource stays as it is, and Terraform no longer manages it."""

    DELETE = "delete"
    REPLACE = "replace"
    FORGET = "forget"
    UPDATE = "update"
    IMPORT = "import"
    MOVE = "move"
    CREATE = "create"


_WHY = {
    "replace_because_tainted": "it was left half made",
    "replace_because_cannot_update": "it cannot be changed in place",
    "replace_by_request": "it was asked for with -replace",
    "replace_by_triggers": "something that it depends on is replaced",
    "delete_because_no_resource_config": "it is no longer declared",
    "delete_because_wrong_repetition": "it is declared with another kind of key",
    "delete_because_count_index": "it is beyond its count",
    "delete_because_each_key": "its key is no longer declared",
    "delete_because_no_module": "its module is no longer declared",
    "delete_because_no_move_target": "it was moved to what is not declared",
}


class UnknownLater:
    """The type of `LATER`, the placeholder of a value that is known only after it is applied."""

    def __repr__(self) -> str:
        return "(known after apply)"


LATER = UnknownLater()


@dataclass(frozen=True, slots=True)
class Difference:
    """One changed attribute. `path` is like `config.retention.ms` or `byob_aws[0].bucket_name`."""

    path: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A changed resource. `forced_by` are the attributes that force its replacement, `why` is Terraform's reason."""

    stack: str
    address: str
    type: str
    verb: Verb
    before: Json
    after: Json
    unknown: Any
    forced_by: tuple[str, ...] = ()
    why: str = ""
    moved_from: str = ""
    imported: str = ""

    def is_unknown(self, argument: str) -> bool:
        """Return whether an argument or a part of it is known only after it is applied."""
        return bool(self.unknown.get(argument)) if isinstance(self.unknown, Mapping) else bool(self.unknown)

    def differences(self) -> tuple[Difference, ...]:
        """Return the changed attributes; none for a new or deleted resource."""
        if self.verb in {Verb.CREATE, Verb.DELETE, Verb.FORGET}:
            return ()
        unknown = dict(self.unknown) if isinstance(self.unknown, Mapping) else {}
        if self.verb is Verb.REPLACE:
            # Values that the provider computes were unknown for the old resource too; only causes are listed.
            causes = {path.partition(".")[0].partition("[")[0] for path in self.forced_by}
            unknown = {name: mark for name, mark in unknown.items() if name in causes}
        names = sorted({*self.before, *self.after, *unknown})
        if self.verb is Verb.REPLACE:
            names = [name for name in names if name in self.after or name in unknown]
        return tuple(
            difference
            for name in names
            for difference in _differences(name, self.before.get(name), self.after.get(name), unknown.get(name))
        )


def planned(plan: Json, stack: str) -> tuple[Planned, ...]:
    """Return the changes of managed resources, without data sources and unchanged resources."""
    return tuple(_all(plan.get("resource_changes", ()), stack))


def drifted(plan: Json, stack: str) -> tuple[tuple[Planned, tuple[Difference, ...]], ...]:
    """Return the changes made outside of this code since the last deployment, as far as this plan depends on them.

    Providers return null, "", [] and {} for the same missing value, which is no change. Deleted resources are always included.
    """
    relevant: dict[str, list[str]] = {}
    for each in plan.get("relevant_attributes", ()):
        relevant.setdefault(each.get("resource", ""), []).append(_path(each.get("attribute", [])))
    found = []
    for change in _all(plan.get("resource_drift", ()), stack):
        differences = tuple(d for d in change.differences() if _is_relevant(d.path, relevant.get(change.address, ())))
        if differences or change.verb is Verb.DELETE:
            found.append((change, differences))
    return tuple(found)


def is_complete(plan: Json) -> bool:
    """Return whether the plan is complete: one that ended in an error or deferred changes is not."""
    return not plan.get("errored") and plan.get("complete", True) is not False


def _all(changes: Any, stack: str) -> Iterator[Planned]:
    for each in changes:
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
            why=_WHY.get(str(each.get("action_reason") or ""), str(each.get("action_reason") or "").replace("_", " ")),
            moved_from=str(each.get("previous_address") or ""),
            imported=_imported(change.get("importing")),
        )


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


def _imported(importing: Any) -> str:
    if not isinstance(importing, Mapping):
        return ""
    return str(importing.get("id") or importing.get("identity") or "an id that is known later")


def _path(steps: Any) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")


def _is_relevant(path: str, attributes: Any) -> bool:
    return any(path.startswith(one) or one.startswith(path) for one in attributes)


def _differences(path: str, before: Any, after: Any, unknown: Any) -> Iterator[Difference]:
    if unknown is True:
        yield Difference(path, before, LATER)
        return
    one, other = _parsed(before), _parsed(after)
    unknown_parts = unknown if isinstance(unknown, Mapping | list) else {}
    if not unknown_parts and (one == other or (one in _NOTHING and other in _NOTHING)):
        return
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        marks = unknown_parts if isinstance(unknown_parts, Mapping) else {}
        for key in sorted({*one, *other, *marks}):
            yield from _differences(f"{path}.{key}", one.get(key), other.get(key), marks.get(key))
    elif isinstance(one, list) and isinstance(other, list) and not _is_flat(one, other):
        items = unknown_parts if isinstance(unknown_parts, list) else []
        for index in range(max(len(one), len(other))):
            parts = (at(side, index) for side in (one, other, items))
            yield from _differences(f"{path}[{index}]", *parts)
    elif one != other and not (one in _NOTHING and other in _NOTHING):
        yield Difference(path, before, after)


def _parsed(value: Any) -> Any:
    """Return a value, and a JSON text as its object, so that its parts are compared and not its spelling."""
    if isinstance(value, str) and value[:1] == "{":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _is_flat(one: list[Any], other: list[Any]) -> bool:
    return not any(isinstance(part, Mapping | list) for part in (*one, *other))


def at(items: list[Any], index: int) -> Any:
    """Return an item of a list; None beyond its end."""
    return items[index] if index < len(items) else None


def as_declared(plan: Json, synthesised: Json | None) -> Json:
    """Return the plan with the declared values of its resources only.

    Values that a service fills in are omitted: each review would find the open policy that AWS gives an endpoint or a topic.
    """
    if synthesised is None:
        return plan
    declared = {
        f"{kind}.{name}": values
        for kind, named in synthesised.get("resource", {}).items()
        for name, values in named.items()
    }
    kept = [
        {
            **each,
            "values": {k: v for k, v in each["values"].items() if k in declared.get(each["address"], each["values"])},
        }
        for each in plan["planned_values"]["root_module"]["resources"]
    ]
    return {**plan, "planned_values": {"root_module": {**plan["planned_values"]["root_module"], "resources": kept}}}
