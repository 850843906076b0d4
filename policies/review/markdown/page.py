"""A review as Markdown, for a comment on a pull request. Dangers come first, long sections are folded.

The length of a comment is limited. The end of a longer review is omitted; its first lines count everything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal

from policies.resource_changes import Change, Verb
from policies.resources import Finding
from policies.review.cost import Estimate
from policies.review.dangers import MOST_NAMED, shortened
from policies.review.data_effects.effects import Effect
from policies.review.markdown.escaping import cell, code, prose
from policies.review.plan.compared_plans import SHOWN
from policies.review.policy_diff import PolicyChange
from policies.review.prices import Prices
from policies.review.review import Review, Verdict

LONGEST = 60_000
"""Characters; GitHub takes 65,536 for a comment."""
_PRICES = "policies/review/prices.json"


def marker(environment: str) -> str:
    """Return the first line of a review's comment, by which a later review finds it."""
    return f"<!-- frazil deploy plan {''.join(c for c in environment if c.isalnum() or c == '-')} -->"


def unchanged(environment: str) -> str:
    """Return the page for stacks that are those of the base branch. Nothing was planned."""
    what = "The stacks are those of the base branch, so they were not planned."
    return f"{marker(environment)}\n## Review of {code(environment)}: **nothing is declared differently**\n\n{what}"


def markdown(review: Review) -> str:
    """Return the review as one page of at most `LONGEST` characters."""
    page = "\n\n".join(["\n".join([marker(review.environment), *_head(review)]), *_sections(review)]) + "\n"
    if len(page) <= LONGEST:
        return page
    kept = page[: LONGEST - 100].rpartition("\n")[0]
    closed = "\n\n</details>" if kept.count("<details>") > kept.count("</details>") else ""
    return f"{kept}{closed}\n\n… The rest is omitted: the review is too long.\n"


def _head(review: Review) -> list[str]:
    verdict = "nothing changes" if review.verdict is Verdict.NOTHING else review.verdict
    title = f"## Review of {code(review.environment)}: **{verdict}**"
    by_stack = " · ".join(f"{code(stack)} {review.counts(stack)}" for stack in review.stacks)
    unchanged = f", {_number(len(review.unchanged), 'finding')} on what does not change" if review.unchanged else ""
    outputs = f" {_number(len(review.outputs), 'output').capitalize()} changed." if review.outputs else ""
    dangers = f"{_number(len(review.dangers), 'danger').capitalize()}{unchanged}.{outputs}"
    origin = "Offline." if review.is_offline else f"Plan {code(review.form.digest[:SHOWN])}."
    lines = [title, "", by_stack, "", dangers, "", origin]
    for each in review.acceptances:
        who = code(each.by) if each.by else "Whoever asked for this review"
        lines += ["", f"{who} accepts {', '.join(map(code, each.codes))}: {prose(each.reason)}"]
    if review.open_codes and not review.is_offline:
        line = code(f"frazil accept {review.form.digest} {', '.join(review.open_codes)}: the reason")
        lines += ["", f"If this is intended, a code owner accepts it for this plan by a comment: {line}"]
    for note in review.notes:
        lines += ["", f"> {prose(note)}"]
    return lines


def _number(count: int, word: str) -> str:
    return f"{count or 'no'} {word}{'' if count == 1 else 's'}"


def _sections(review: Review) -> Iterator[str]:
    """Yield the sections, the most important first."""
    yield from _section("⚠️ Dangers", _dangers(review.dangers))
    yield from _section("⚠️ Guardrails, on what does not change", _dangers(review.unchanged))
    effects = tuple(map(_effect, review.effects))
    table = "| pipeline | table | | what changes, and what it does |\n|---|---|---|---|" if effects else ""
    yield from _section("Effects on data", effects, intro=table)
    unexpected, following = _policies(review)
    summary = _new_table_permissions(following, review.new_tables) if following else ""
    yield from _section("Who may do what", map(_policy, unexpected), intro=summary)
    now, after, prices = review.cost_before, review.cost_after, review.prices
    yield from _section("Cost, estimated", (), intro=cost_table(now, after, prices))
    order = list(Verb)
    changes = sorted(review.changes, key=lambda change: order.index(change.verb))
    yield from _folded(f"Resources ({len(changes)})", map(_resource, changes))
    yield from _folded(f"Permissions on new tables ({len(following)})", map(_policy, following))
    yield from _folded("Assumptions of the estimate", [_assumptions(now, after, prices, review.region)])


def _section(title: str, entries: Iterable[str], intro: str = "") -> Iterator[str]:
    """Yield a section unless it is empty."""
    if body := "\n".join(part for part in (intro, *entries) if part):
        yield f"### {title}\n\n{body}"


def _folded(title: str, entries: Iterable[str]) -> Iterator[str]:
    """Yield a section whose entries are hidden behind a toggle, unless it is empty."""
    if body := "\n".join(entries):
        yield f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _policies(review: Review) -> tuple[list[PolicyChange], list[PolicyChange]]:
    """Return the changed policies, and those of them that follow from new tables alone."""
    open_ = {each.resource for each in review.dangers}
    expected = {each.resource for each in review.expected if each.rule == "policy_widened"} - open_
    following = [each for each in review.policies if each.address in expected and not each.is_unknown]
    return [each for each in review.policies if each not in following], following


def _dangers(found: Sequence[Finding]) -> Iterator[str]:
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


def _effect(found: Effect) -> str:
    """Return a row of the table of effects."""
    changed = cell(found.changed) if found.changed else ""
    if found.before or found.after:
        changed = f"{changed}: {cell(found.before)} → {cell(found.after)}"
    what = prose(_sentence(found.what))
    mark = "⚠️ " if found.is_dangerous else ""
    columns = (
        cell(found.pipeline),
        cell(found.table) if found.table else "",
        f"{mark}{found.outcome}",
        f"{changed}<br>{what}" if changed else what,
    )
    return f"| {' | '.join(columns)} |"


def _policy(change: PolicyChange) -> str:
    """Return the changed statements of a policy."""
    head = f"- {code(change.address)} {code(change.argument)}"
    if change.is_unknown:
        return f"{head}: ⚠️ not known before it is applied, so nothing can be said of it"
    lines = [head]
    for each in change.statements:
        effect_of = f" ({prose(each.effect)})" if each.effect else ""
        lines += [f"  - {each.what} {code(each.name)}{effect_of}", *(f"    - {code(line)}" for line in each.lines)]
    return "\n".join(lines)


def _resource(change: Change) -> str:
    """Return a changed resource, with the attributes that force its replacement."""
    forced = f", forced by {', '.join(map(code, change.forced_by))}" if change.forced_by else ""
    return f"- {code(change.stack)}: {change.verb} {code(change.address)}{forced}"


def _new_table_permissions(following: Iterable[PolicyChange], tables: Sequence[str]) -> str:
    """Return one sentence for the permissions of roles that follow from new tables."""
    roles = dict.fromkeys(each.argument.removeprefix("all policies of ") for each in following)
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


def _assumptions(before: Estimate, after: Estimate, prices: Prices, region: str) -> str:
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


def _sentence(text: str) -> str:
    """Return a sentence with a capital and a full stop, unless it begins with a name."""
    first = text.partition(" ")[0]
    start = text[:1].upper() if first.rstrip(",:;").isalpha() and first.islower() else text[:1]
    return f"{start}{text[1:]}" + ("" if text.endswith((".", "?", "!")) else ".")


def _money(amount: Decimal) -> str:
    return f"{amount:,.2f}"


def _signed(amount: Decimal) -> str:
    return f"{amount:+,.2f}" if round(amount, 2) else "0.00"
