"""Small stacks in Terraform's own shape, to hold against one rule; `review/planning.py` has plans."""

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
