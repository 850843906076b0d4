"""The stacks of a review with their plans, and the gaps: stacks without a complete plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.resources import Finding
from policies.review.plan.compared_plans import NormalForm

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlan:
    """A stack, its synthesised JSON, and its plan (`terraform show -json`), or why it has none.

    `pipelines` are the documents of pipelines that the stacks synthesised with it declare, reviewed here or not.
    """

    name: str
    synthesised: Json | None = None
    plan: Json | None = None
    why_not: str = ""
    pipelines: tuple[Json, ...] = ()


def unreviewed(stacks: Iterable[StackPlan], form: NormalForm) -> Iterator[Finding]:
    """Yield the stacks that have no complete plan as dangers. `form` is that of their plans."""
    for each in stacks:
        changes = form.stacks[each.name]
        if changes is None or not changes["is_complete"]:
            why = "it has no plan" if changes is None else "Terraform did not finish its plan"
            yield unread(each.name, each.why_not or why)


def unread(where: str, why: str) -> Finding:
    """Return the danger that something could not be reviewed, so that it does not pass as harmless."""
    return Finding("not_reviewed", where, f"it is not reviewed: {why}", "Fix the cause, and review again")


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
