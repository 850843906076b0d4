"""The entries of a review's sections as Markdown: dangers, effects, policies, resources, cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal

from frazil.declaration.checks.change_effects import Outcome
from policies.resource_changes import Change
from policies.resources import Finding
from policies.review.cost import Estimate
from policies.review.dangers import MOST_NAMED, shortened
from policies.review.data_effects.effects import Effect
from policies.review.markdown.escaping import cell, code, prose
from policies.review.policy_diff import PolicyChange, StatementDiff
from policies.review.prices import Prices

_PRICES = "policies/review/prices.json"
_OUTCOMES = {
    Outcome.STOPS: "stops",
    Outcome.LEFT: "left behind",
    Outcome.REBUILD: "needs a rebuild",
    Outcome.FROM_NOW_ON: "from now on",
    Outcome.MADE: "new",
    Outcome.UPKEEP: "no row changes",
}


def dangers(found: Sequence[Finding]) -> Iterator[str]:
    """Yield the dangers with the affected data and the remedy. Findings of one rule about one resource are one entry."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for each in found:
        groups.setdefault((each.rule, each.resource, each.do), []).append(each)
    for (rule, where, do), group in groups.items():
        whats = [prose(_sentence(each.what)) for each in group]
        if len(whats) == 1:
            lines = [f"- **{code(where)}**: {whats[0]} `{rule}`"]
        else:
            lines = [f"- **{code(where)}**: {len(whats)} times `{rule}`"]
            lines += [f"  - {what}" for what in whats]
        touches = list(dict.fromkeys(each for danger in group for each in danger.touches))
        if touches:
            listed = shortened(touches) if len(touches) > MOST_NAMED else "; ".join(touches)
            lines.append(f"  - Affects: {prose(listed)}.")
        lines.append(f"  - **Do**: {prose(_sentence(do))}")
        yield "\n".join(lines)


def effect(found: Effect) -> str:
    """Return a row of the table of effects."""
    changed = cell(found.changed) if found.changed else ""
    if found.before or found.after:
        changed = f"{changed}: {cell(found.before)} → {cell(found.after)}"
    what = prose(_sentence(found.what))
    mark = "⚠️ " if found.is_dangerous else ""
    columns = (
        cell(found.pipeline),
        cell(found.table) if found.table else "",
        f"{mark}{_OUTCOMES[found.outcome]}",
        f"{changed}<br>{what}" if changed else what,
    )
    return f"| {' | '.join(columns)} |"


def policy(change: PolicyChange) -> str:
    """Return the changed statements of a policy."""
    head = f"- {code(change.address)} {code(change.argument)}"
    if change.is_unknown:
        return f"{head}: ⚠️ not known before it is applied, so nothing can be said of it"
    return "\n".join([head, *(line for statement in change.statements for line in _statement(statement))])


def resource(change: Change) -> str:
    """Return a changed resource, with the attributes that force its replacement."""
    forced = f", forced by {', '.join(map(code, change.forced_by))}" if change.forced_by else ""
    return f"- {code(change.stack)}: {change.verb} {code(change.address)}{forced}"


def new_table_permissions(roles: Sequence[str], tables: Sequence[str]) -> str:
    """Return one sentence for the permissions that follow from new tables."""
    what = "the new table" if len(tables) == 1 else f"the {len(tables)} new tables"
    return f"{' and '.join(map(code, roles))} may use {what}: {prose(shortened(tables))}."


def cost_table(before: Estimate, after: Estimate, prices: Prices) -> str:
    """Return the estimate by service: now, after, and the difference; one line if the difference is less than 1."""
    if abs(after.total - before.total) < 1:
        return f"About {_money(after.total)} {prices.currency} a month, as before."
    rows = [
        f"| {name} | {_money(before.of(name))} | {_money(amount)} | {_signed(amount - before.of(name))} |"
        for name, amount in after.amounts.items()
        if before.of(name) or amount
    ]
    total = f"| **total** | **{_money(before.total)}** | **{_money(after.total)}** | **{_signed(after.total - before.total)}** |"
    heads = [f"| {prices.currency} a month | now | after | difference |", "|---|--:|--:|--:|"]
    return "\n".join([*heads, *rows, total])


def cost_details(before: Estimate, after: Estimate, prices: Prices, region: str) -> str:
    """Return the date of the prices, every assumption, and the items that are not counted."""
    lines = [f"Prices of {prices.region} on {prices.date}, with their sources: `{_PRICES}`. {prose(prices.note)}"]
    if region and region != prices.region:
        lines.append(f"⚠️ This environment is in {code(region)}, whose prices differ.")
    lines += [
        f"⚠️ Not understood, so not counted: {code(each)}." for each in dict.fromkeys((*before.missing, *after.missing))
    ]
    lines += ["", *_assumed(prices, {*before.pipelines, *after.pipelines}), ""]
    return "\n".join([*lines, f"Not counted: {prose(prices.not_counted)}."])


def _assumed(prices: Prices, pipelines: Collection[str]) -> Iterator[str]:
    for each in prices.assumptions.values():
        yield f"- {prose(each.meaning)}: {each.value.normalize():f}{' (given)' if each.is_given else ''}"
    for name, gb in prices.gb_a_month.items():
        if name in pipelines:
            yield f"- GB a month of {code(name)}: {gb.normalize():f} (given)"


def _statement(statement: StatementDiff) -> Iterable[str]:
    effect_of = f" ({prose(statement.effect)})" if statement.effect else ""
    yield f"  - {statement.what} {code(statement.name)}{effect_of}"
    for line in statement.lines:
        yield f"    - {code(line)}"


def _sentence(text: str) -> str:
    """Return a sentence with a capital and a full stop, unless it begins with a name."""
    first = text.partition(" ")[0]
    start = text[:1].upper() if first.rstrip(",:;").isalpha() and first.islower() else text[:1]
    return f"{start}{text[1:]}" + ("" if text.endswith((".", "?", "!")) else ".")


def _money(amount: Decimal) -> str:
    return f"{amount:,.2f}"


def _signed(amount: Decimal) -> str:
    return f"{amount:+,.2f}" if round(amount, 2) else "0.00"
