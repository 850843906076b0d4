"""What a review holds, in one line for each fact and without its sentences."""

from __future__ import annotations

from collections.abc import Iterator

from policies.review.review import Review


def facts(review: Review) -> list[str]:
    """Return dangers, findings, effects, changes, policies, outputs, notes and costs of a review."""
    return list(_facts(review))


def _facts(review: Review) -> Iterator[str]:
    for danger in review.dangers:
        yield f"danger {danger.rule}: {danger.where}"
    for finding in review.unchanged:
        yield f"unchanged {finding.rule}: {finding.resource}"
    for rule, resource in sorted({(finding.rule, finding.resource) for finding in review.expected}):
        yield f"expected {rule}: {resource}"
    for effect in review.effects:
        changed = f": {effect.changed}" if effect.changed else ""
        values = f" {effect.before} -> {effect.after}" if effect.before or effect.after else ""
        yield f"{effect.outcome.value} {effect.pipeline} {effect.table}{changed}{values}".replace("  ", " ").rstrip()
    for change in review.changes:
        forced = f", forced by {', '.join(change.forced_by)}" if change.forced_by else ""
        yield f"{change.verb.value} {change.address}{forced}"
    for policy in review.policies:
        statements = ", ".join(f"{each.what} {each.name}" for each in policy.statements)
        yield f"policy {policy.address}: {'unknown' if policy.is_unknown else statements}"
    yield from (f"output {each}" for each in review.outputs)
    yield from (["notes"] if review.notes else [])
    if review.cost_before.lines or review.cost_after.lines:
        before, after = (sum(line.amount for line in cost.lines) for cost in (review.cost_before, review.cost_after))
        yield f"cost {before:.2f} -> {after:.2f}"
