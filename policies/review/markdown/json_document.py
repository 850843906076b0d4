"""A review as a JSON document, with the same content as the Markdown, untruncated, with secrets masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from policies.review.cost import SERVICES, Estimate
from policies.review.plan.resource_changes import Planned
from policies.review.review import Review

VERSION = 1


def document(review: Review) -> dict[str, Any]:
    """Return the review as a JSON object. Amounts of money are texts with two decimals."""
    before, after = review.cost_before, review.cost_after
    cost = {
        **_plain(review.prices),
        "services": {name: _sides(before.of(name), after.of(name)) for name in SERVICES},
        "total": _sides(before.total, after.total),
        "before": _estimate(before),
        "after": _estimate(after),
    }
    own = ("environment", "stacks", "notes", "dangers", "effects", "policies", "outputs", "acceptances", "region")
    return {
        "version": VERSION,
        **{name: _plain(getattr(review, name)) for name in own},
        **_plain(review.origin),
        "verdict": review.verdict.value,
        "digest": review.form.digest,
        "plans": review.form.content,
        "open": list(review.open_codes),
        "findings": _plain(review.unchanged),
        "expected": [{**_plain(each), "why": why} for each, why in review.expected],
        "changes": [_change(each) for each in review.changes],
        "cost": cost,
    }


def _plain(value: Any) -> Any:
    """Return a value, and the fields of its objects, as JSON."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return f"{value:f}" if isinstance(value, Decimal) else value


def _change(change: Planned) -> dict[str, Any]:
    return {name: _plain(getattr(change, name)) for name in ("stack", "address", "type", "verb", "forced_by")}


def _sides(before: Decimal, after: Decimal) -> dict[str, str]:
    return {"before": f"{before:.2f}", "after": f"{after:.2f}", "difference": f"{after - before:.2f}"}


def _estimate(side: Estimate) -> dict[str, Any]:
    lines = [{**_plain(each), "amount": f"{each.amount:.2f}"} for each in side.lines]
    return {"lines": lines, "not_understood": list(side.missing)}
