"""A review as a JSON document, with the same content as the Markdown, untruncated, with secrets masked."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from policies.review.cost import SERVICES, Estimate
from policies.review.plan.resource_changes import LATER, Difference, Planned
from policies.review.review import Review

VERSION = 1


def document(review: Review) -> dict[str, Any]:
    """Return the review as a JSON object. Amounts are texts with two decimals."""
    prices = review.prices
    return {
        "version": VERSION,
        "environment": review.environment,
        "verdict": review.verdict.value,
        "digest": review.form.digest,
        "plans": review.form.content,
        "commit": review.origin.commit or None,
        "time": review.origin.time or None,
        "terraform": review.origin.terraform or None,
        "acceptances": [asdict(each) for each in review.acceptances],
        "open": list(review.open_codes),
        "stacks": list(review.stacks),
        "notes": list(review.notes),
        "dangers": [asdict(each) for each in review.dangers],
        "findings": [asdict(each) for each in review.unchanged],
        "expected": [{**asdict(each), "why": why} for each, why in review.expected],
        "effects": [asdict(each) for each in review.effects],
        "policies": [asdict(each) for each in review.policies],
        "changes": [_change(each, each.differences()) for each in review.changes],
        "outputs": list(review.outputs),
        "drift": [_change(*each) for each in review.drift],
        "cost": {
            "currency": prices.currency,
            "prices_of": prices.region,
            "region": review.region or None,
            "date": prices.date,
            "note": prices.note,
            "services": {name: _sides(review.cost_before.of(name), review.cost_after.of(name)) for name in SERVICES},
            "total": _sides(review.cost_before.total, review.cost_after.total),
            "before": _lines(review.cost_before),
            "after": _lines(review.cost_after),
            "assumptions": {
                name: {"value": f"{each.value:f}", "meaning": each.meaning, "is_given": each.is_given}
                for name, each in prices.assumptions.items()
            },
            "gb_a_month": {name: f"{gb:f}" for name, gb in prices.gb_a_month.items()},
            "prices": {
                name: {"amount": f"{each.amount:f}", "unit": each.unit, "source": each.source}
                for name, each in prices.prices.items()
            },
            "not_counted": prices.not_counted,
        },
    }


def _change(change: Planned, differences: tuple[Difference, ...]) -> dict[str, Any]:
    return {
        "stack": change.stack,
        "address": change.address,
        "type": change.type,
        "verb": change.verb.value,
        "why": change.why or None,
        "forced_by": list(change.forced_by),
        "moved_from": change.moved_from or None,
        "imported": change.imported or None,
        "differences": [
            {"path": each.path, "before": _value(each.before), "after": _value(each.after)} for each in differences
        ],
    }


def _value(value: Any) -> Any:
    return repr(LATER) if value is LATER else value


def _sides(before: Decimal, after: Decimal) -> dict[str, str]:
    return {"before": f"{before:.2f}", "after": f"{after:.2f}", "difference": f"{after - before:.2f}"}


def _lines(side: Estimate) -> dict[str, Any]:
    lines = [{"service": each.service, "amount": f"{each.amount:.2f}", "how": each.how} for each in side.lines]
    return {"lines": lines, "not_understood": list(side.missing)}
