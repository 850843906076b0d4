"""Plans as Terraform would make them of synthesised stacks, without Terraform: for tests that look at many of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from policies.review.plan.plan_gaps import StackPlan
from tests.policies.review.planning import change, plan

_EXPRESSION = re.compile(r"\$\{([^{}]+)\}")
_ADDRESS = re.compile(r"(?:data\.)?[a-z0-9_]+\.[A-Za-z0-9_-]+")
_REPLACED = {"confluent_role_binding", "confluent_kafka_acl", "aws_iam_role_policy_attachment"}

Resources = Mapping[str, Mapping[str, Any]]


def resources_of(stack: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The declared resources of a stack, by address."""
    return {
        f"{kind}.{name}": {key: value for key, value in values.items() if key not in {"//", "lifecycle", "depends_on"}}
        for kind, named in stack.get("resource", {}).items()
        for name, values in named.items()
    }


def _known(expression: str, declared: Resources) -> str:
    """What an expression is once everything exists: a declared name, or the expression's own words."""
    at = ".".join(expression.split(".")[:2])
    attribute = expression.removeprefix(f"{at}.")
    values = declared.get(at, {})
    if at.startswith("aws_iam_policy.") and attribute == "arn":
        return f"arn:aws:iam::123456789012:policy/{values['name']}"
    value = values.get(attribute)
    return str(value) if isinstance(value, str) and "${" not in value else re.sub(r"[^A-Za-z0-9_.:-]+", "-", expression)


def _deployed(values: Any, declared: Resources) -> Any:
    text = _EXPRESSION.sub(lambda found: json.dumps(_known(found[1], declared))[1:-1], json.dumps(values))
    return json.loads(text)


def _side(address: str, declared: Resources) -> dict[str, Any]:
    made: dict[str, Any] = _deployed(declared[address], declared)
    if address.startswith("aws_iam_policy."):
        made["arn"] = _known(f"{address}.arn", declared)
    return made


def _after(address: str, declared: Resources, existing: Resources) -> tuple[dict[str, Any], dict[str, bool]]:
    """The values after an apply as far as a plan knows them, and those that it does not know."""
    full, known, later = _side(address, declared), {}, {}
    for name, value in full.items():
        raw = json.dumps(declared[address].get(name, f"${{{address}.{name}}}"))
        roots = {_ADDRESS.match(found) for found in _EXPRESSION.findall(raw)}
        names = {root[0] for root in roots if root}
        is_named = raw.endswith('.name}"') and names <= declared.keys()
        if names and not is_named and any(each in declared and each not in existing for each in names):
            later[name] = True
        else:
            known[name] = value
    return known, later


def simulated(stack: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The plan of a stack whose state is that of `before`; None is an account without it."""
    declared, existing = resources_of(stack), resources_of(before or {})
    changes = []
    for address in sorted({*declared, *existing}):
        was = _side(address, existing) if address in existing else None
        will, later = _after(address, declared, existing) if address in declared else (None, {})
        verb = "create" if was is None else "delete" if will is None else "stay" if was == will else "update"
        if verb == "update" and address.partition(".")[0] in _REPLACED:
            verb = "replace"
        changes.append(change(address, verb, was, will, unknown=later))
    return plan(*changes)


def planned(
    name: str, stacks: Mapping[str, Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]] | None = None
) -> list[StackPlan]:
    """The plans of an environment's stacks."""
    return [
        StackPlan(name=f"{name}-{what}", synthesised=stack, plan=simulated(stack, (before or {}).get(what)))
        for what, stack in stacks.items()
    ]
