"""A review as Markdown, for a comment on a pull request. Dangers come first, long sections are folded.

The length of a comment is limited. The end of a longer review is omitted; its first lines count everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from policies.resource_changes import Verb
from policies.review.acceptance import Acceptance
from policies.review.markdown import sections
from policies.review.markdown.escaping import code, prose
from policies.review.plan.compared_plans import SHOWN
from policies.review.policy_diff import PolicyChange
from policies.review.review import Review, Verdict

WIDENED = "policy_widened"
LONGEST = 60_000
"""Characters; GitHub takes 65,536 for a comment."""


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
    origin = "Offline." if review.is_offline else f"Plan {code(review.form.digest[:SHOWN])}."
    lines = [title, "", *_by_stack(review), _counted(review), "", origin]
    for each in review.acceptances:
        lines += ["", f"{_who(each)} accepts {', '.join(map(code, each.codes))}: {prose(each.reason)}"]
    if review.open_codes and not review.is_offline:
        lines += ["", _how_to_accept(review)]
    for note in review.notes:
        lines += ["", f"> {prose(note)}"]
    return lines


_SIGNS = {"+": Verb.CREATE, "~": Verb.UPDATE, "-": Verb.DELETE, "±": Verb.REPLACE}


def _who(acceptance: Acceptance) -> str:
    return code(acceptance.by) if acceptance.by else "Whoever asked for this review"


def _how_to_accept(review: Review) -> str:
    """Return the comment by which a code owner accepts what is open."""
    line = f"frazil accept {review.form.digest} {', '.join(review.open_codes)}: "
    return f"If this is intended, a code owner accepts it for this plan by a comment: {code(line + 'the reason')}"


def _by_stack(review: Review) -> list[str]:
    """Return a line that counts the created, updated, deleted and replaced resources of each stack."""
    counted = [
        f"{code(stack)} {' '.join(f'{sign}{review.count(verb, stack)}' for sign, verb in _SIGNS.items())}"
        for stack in review.stacks
    ]
    return [" · ".join(counted), ""] if counted else []


def _counted(review: Review) -> str:
    counted = [f"{review.count(verb)} to {verb}" for verb in Verb if review.count(verb)]
    outputs = f"; {_number(len(review.outputs), 'output')} changed" if review.outputs else ""
    unchanged = f", {_number(len(review.unchanged), 'finding')} on what does not change" if review.unchanged else ""
    dangers = _number(len(review.dangers), "danger").capitalize()
    return f"{dangers}{unchanged}. Resources: {', '.join(counted) or 'none changes'}{outputs}."


def _number(count: int, word: str) -> str:
    return f"{count or 'no'} {word}{'' if count == 1 else 's'}"


def _sections(review: Review) -> Iterator[str]:
    """Yield the sections, the most important first."""
    yield from _section("⚠️ Dangers", sections.dangers(review.dangers))
    yield from _section("⚠️ Guardrails, on what does not change", sections.dangers(review.unchanged))
    effects = tuple(map(sections.effect, review.effects))
    table = "| pipeline | table | | what changes, and what it does |\n|---|---|---|---|" if effects else ""
    yield from _section("Effects on data", effects, intro=table)
    unexpected, following = _policies(review)
    summary = sections.new_table_permissions(_roles(following), review.new_tables) if following else ""
    yield from _section("Who may do what", map(sections.policy, unexpected), intro=summary)
    now, after, prices = review.cost_before, review.cost_after, review.prices
    yield from _section("Cost, estimated", (), intro=sections.cost_table(now, after, prices))
    order = list(Verb)
    changes = sorted(review.changes, key=lambda change: order.index(change.verb))
    yield from _folded(f"Resources ({len(changes)})", map(sections.resource, changes))
    yield from _folded(f"Permissions on new tables ({len(following)})", map(sections.policy, following))
    yield from _folded("Assumptions of the estimate", [sections.cost_details(now, after, prices, review.region)])


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
    expected = {each.resource for each in review.expected if each.rule == WIDENED} - open_
    following = [each for each in review.policies if each.address in expected and not each.is_unknown]
    return [each for each in review.policies if each not in following], following


def _roles(changes: Sequence[PolicyChange]) -> list[str]:
    """Return the names of the roles whose policies change, without the environment's prefix if there is one."""
    return list(dict.fromkeys(each.argument.removeprefix("all policies of ") for each in changes))
