"""The normal form of an environment's plans, and its digest: what exactly was reviewed, and is applied or not.

The form holds what an apply would do, and nothing that changes without it: no time, no path, no version, no resource that stays
as it is. The same declarations and the same state give the same form on each machine. docs/review.md lists its members.

Sensitive values are omitted. A hash of a short secret can be guessed, and a keyed hash would need a key on each machine that
compares. The form says only whether such a value changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.resource_changes import is_marked
from policies.review.plan.masking import cleaned

Json = Mapping[str, Any]

VERSION = 1
DIGITS = 64
"""Digits of a digest, all of which an acceptance repeats: two plans with the same first 16 can be made by 2^32 attempts."""
SHOWN = 16
"""Digits of a digest in titles, for people. They decide nothing."""
_STAYS: tuple[list[str], ...] = (["no-op"], [])


@dataclass(frozen=True, slots=True)
class NormalForm:
    """The normal form of the plans of an environment."""

    content: Json

    @property
    def text(self) -> str:
        """The form as canonical JSON, the text that the digest is made of."""
        return json.dumps(self.content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """The SHA-256 of the form."""
        return hashlib.sha256(self.text.encode("ascii")).hexdigest()

    @property
    def stacks(self) -> Json:
        """The forms of the stacks by name; null for a stack without a plan."""
        stacks: Json = self.content["stacks"]
        return stacks


def normal_form(environment: str, plans: Mapping[str, Json | None]) -> NormalForm:
    """Return the form of plans as `terraform show -json` writes them, by stack; None for a stack without a plan."""
    shown = [plan for plan in plans.values() if plan is not None]
    stacks = {name: None if plan is None else _stack(cleaned(plan, shown)) for name, plan in plans.items()}
    return NormalForm({"version": VERSION, "environment": environment, "stacks": stacks})


def read_form(text: str) -> NormalForm:
    """Read a form. Raises `ValueError` if the text is none."""
    content = json.loads(text)
    if not isinstance(content, dict) or content.keys() != {"version", "environment", "stacks"}:
        raise ValueError("the file is no normal form of plans")
    if content["version"] != VERSION or not isinstance(content["stacks"], dict):
        raise ValueError(f"the normal form has another version than {VERSION}. Review again")
    return NormalForm(content)


def _stack(plan: Json) -> dict[str, Any]:
    return {
        # one that ended in an error or deferred changes is not
        "is_complete": not plan.get("errored") and plan.get("complete", True) is not False,
        "resources": sorted(_resources(plan), key=lambda each: (each["address"], each["deposed"] or "")),
        "outputs": {
            name: _sides(each) for name, each in plan["output_changes"].items() if each["actions"] not in _STAYS
        },
    }


def _resources(plan: Json) -> Iterator[dict[str, Any]]:
    for each in plan["resource_changes"]:
        change = each["change"]
        moved, importing = each.get("previous_address"), change.get("importing")
        if change["actions"] in _STAYS and not moved and not importing:
            continue
        before = change.get("before")
        yield {
            "address": each["address"],
            "deposed": each.get("deposed"),
            "mode": each.get("mode", "managed"),
            "provider": each.get("provider_name"),
            "reason": each.get("action_reason"),
            "moved_from": moved,
            "importing": importing,
            # The object that the change is about: the same address may hold another one tomorrow.
            "id": before.get("id") if isinstance(before, Mapping) else None,
            "replaced_by": sorted(change.get("replace_paths") or [], key=lambda path: json.dumps(path)),
            **_sides(change),
        }


def _sides(change: Json) -> dict[str, Any]:
    """Return the actions, and the arguments that differ: before, after, and what of them is unknown."""
    before, after = change.get("before"), change.get("after")
    unknown = change.get("after_unknown")
    if not isinstance(before, Mapping | None) or not isinstance(after, Mapping | None):
        return {"actions": change["actions"], "arguments": {"": {"before": before, "after": after, "unknown": unknown}}}
    old, new, later = before or {}, after or {}, unknown if isinstance(unknown, Mapping) else {}
    is_gone = after is None and unknown is not True
    names = [] if is_gone else sorted({*old, *new, *later})
    arguments = {
        name: {"before": old.get(name), "after": new.get(name), "unknown": later.get(name, False)}
        for name in names
        if old.get(name) != new.get(name) or is_marked(later.get(name))
    }
    if unknown is True:
        arguments[""] = {"before": before, "after": after, "unknown": True}
    return {"actions": change["actions"], "arguments": arguments}


def is_empty(form: NormalForm) -> bool:
    """Return whether all plans are complete and change nothing."""
    return all(
        stack is not None and stack["is_complete"] and not stack["resources"] and not stack["outputs"]
        for stack in form.stacks.values()
    )


def differences(reviewed: NormalForm, planned: NormalForm) -> list[str]:
    """Return the stacks without the same complete plan, and the addresses and outputs that change in another way."""
    found = []
    for stack in sorted({*reviewed.stacks, *planned.stacks}):
        old, new = (_by_address(side.stacks.get(stack)) for side in (reviewed, planned))
        found += [f"{stack}: {address}" for address in sorted({*old, *new}) if old.get(address) != new.get(address)]
    return found


def _by_address(stack: Json | None) -> dict[str, Any]:
    if stack is None:
        return {"the plan": None}
    outputs = {f"output {name}": each for name, each in stack["outputs"].items()}
    resources = {f"{each['address']} {each['deposed'] or ''}".rstrip(): each for each in stack["resources"]}
    return {"the plan": stack["is_complete"], **resources, **outputs}
