"""Small stacks and plans, in Terraform's own shapes, to hold against one rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from policies.resource_values import Facts
from policies.resources import Finding, read, together
from policies.rules import Rule

TODAY = date(2026, 11, 21)


def stack(**resources: Mapping[str, Any]) -> dict[str, Any]:
    """A synthesised stack: `aws_s3_bucket__tables={...}` is the resource `aws_s3_bucket.tables`."""
    made: dict[str, Any] = {}
    for address, values in resources.items():
        kind, _, name = address.partition("__")
        made.setdefault(kind, {})[name] = dict(values)
    return {"resource": made, "provider": {}, "terraform": {}}


def change(
    address: str,
    verb: str,
    before: Any = None,
    after: Any = None,
    *,
    unknown: tuple[str, ...] = (),
    forced: tuple[str, ...] = (),
) -> dict[str, Any]:
    """One change, as a plan tells it."""
    actions = {"replace": ["delete", "create"], "update": ["update"], "delete": ["delete"], "create": ["create"]}
    return {
        "address": address,
        "type": address.partition(".")[0],
        "change": {
            "actions": actions.get(verb, [verb]),
            "before": before,
            "after": after,
            "after_unknown": dict.fromkeys(unknown, True),
            "replace_paths": [[path] for path in forced],
        },
    }


def plan(*changes: dict[str, Any]) -> dict[str, Any]:
    """A plan of these changes; what stands after it is what they make."""
    after = [
        {"address": each["address"], "type": each["type"], "mode": "managed", "values": each["change"]["after"]}
        for each in changes
        if each["change"]["after"] is not None
    ]
    return {"resource_changes": list(changes), "planned_values": {"root_module": {"resources": after}}}


def found(rule: Rule, *documents: Mapping[str, Any], today: date = TODAY) -> list[Finding]:
    """What the rule has against them, which are read back from their JSON."""
    reviewed = together(read(json.loads(json.dumps(document))) for document in documents)
    return sorted(rule(reviewed, Facts(reviewed, today)))


def told(rule: Rule, *documents: Mapping[str, Any], today: date = TODAY) -> list[tuple[str, str]]:
    """The same, as address and what is wrong."""
    return [(one.resource, one.what) for one in found(rule, *documents, today=today)]


def allow(**statement: Any) -> str:
    """A policy of one statement that allows, as JSON text."""
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]})
