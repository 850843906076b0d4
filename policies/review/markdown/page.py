"""A review as Markdown, for a comment on a pull request. Dangers come first, long sections are folded.

The length of a comment is limited. Of a longer review, complete entries are omitted, those of the least important section
first, and the comment says how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from policies.review.acceptance import Acceptance
from policies.review.markdown import sections
from policies.review.markdown.escaping import code, prose
from policies.review.plan.compared_plans import SHOWN
from policies.review.plan.resource_changes import Verb
from policies.review.policy_diff import PolicyChange
from policies.review.review import Review, Verdict

WIDENED = "policy_widened"
LONGEST = 60_000
"""Characters; GitHub takes 65,536 for a comment."""


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading, an introduction, and entries of one or more lines. `is_folded` hides the entries behind a toggle."""

    title: str
    entries: tuple[str, ...]
    intro: str = ""
    is_folded: bool = False
    omitted: int = 0

    def text(self) -> str:
        """Return the section as Markdown."""
        said = f"\n… and {self.omitted} more, omitted because the review would be too long." if self.omitted else ""
        listed = "\n".join([*self.entries, *([said] if said else [])])
        body = "\n".join(part for part in (self.intro, listed) if part)
        if self.is_folded:
            return f"<details><summary>{self.title}</summary>\n\n{body}\n\n</details>"
        return f"### {self.title}\n\n{body}"


def marker(environment: str) -> str:
    """Return the first line of a review's comment, by which a later review finds it."""
    return f"<!-- frazil deploy plan {''.join(c for c in environment if c.isalnum() or c == '-')} -->"


def unchanged(environment: str) -> str:
    """Return the page for stacks that are those of the base branch. Nothing was planned."""
    what = "The stacks are those of the base branch, so they were not planned."
    return f"{marker(environment)}\n## Review of {code(environment)}: **nothing is declared differently**\n\n{what}"


def markdown(review: Review, longest: int = LONGEST) -> str:
    """Return the review as one page of at most `longest` characters, plus a few hundred for its head."""
    head = "\n".join([marker(review.environment), *_head(review)])
    sections = [section for section in _sections(review) if section.entries or section.intro]
    return "\n\n".join([head, *(section.text() for section in _shortened(head, sections, longest))]) + "\n"


def _shortened(head: str, sections: list[_Section], longest: int) -> list[_Section]:
    """Remove entries from the end of the last section, then of the one before, until the page is short enough."""
    sections = list(sections)
    room = 80  # for the sentence that says so
    for index in range(len(sections) - 1, -1, -1):
        over = len(head) + 1 + sum(len(section.text()) + 2 for section in sections) - longest
        if over <= 0:
            break
        kept = list(sections[index].entries)
        while kept and over > -room:
            over -= len(kept.pop()) + 1
        omitted = len(sections[index].entries) - len(kept)
        sections[index] = replace(sections[index], entries=tuple(kept), omitted=omitted)
    return sections


def _head(review: Review) -> list[str]:
    verdict = "nothing changes" if review.verdict is Verdict.NOTHING else review.verdict
    title = f"## Review of {code(review.environment)}: **{verdict}**"
    lines = [title, "", *_by_stack(review), _counted(review), "", _origin(review)]
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
    return f"If this is intended, a code owner accepts it for this plan by a comment: {code(line + 'the reason', None)}"


def _by_stack(review: Review) -> list[str]:
    """Return a line that counts the created, updated, deleted and replaced resources of each stack."""
    counted = [
        f"{code(stack)} {' '.join(f'{sign}{review.count(verb, stack)}' for sign, verb in _SIGNS.items())}"
        for stack in review.stacks
    ]
    return [" · ".join(counted), ""] if counted else []


def _origin(review: Review) -> str:
    """Return the line that identifies what was reviewed."""
    made = review.origin
    parts = ["Offline" if review.is_offline else f"Plan {code(review.form.digest[:SHOWN])}"]
    parts += [f"commit {code(made.commit)}"] if made.commit else []
    parts += [f"Terraform {code(made.terraform)}"] if made.terraform else []
    parts += [prose(made.time)] if made.time else []
    return f"{', '.join(parts)}."


def _counted(review: Review) -> str:
    counted = [f"{review.count(verb)} to {verb}" for verb in Verb if review.count(verb)]
    outputs = f"; {_number(len(review.outputs), 'output')} changed" if review.outputs else ""
    unchanged = f", {_number(len(review.unchanged), 'finding')} on what does not change" if review.unchanged else ""
    dangers = _number(len(review.dangers), "danger").capitalize()
    return f"{dangers}{unchanged}. Resources: {', '.join(counted) or 'none changes'}{outputs}."


def _number(count: int, word: str) -> str:
    return f"{count or 'no'} {word}{'' if count == 1 else 's'}"


def _sections(review: Review) -> list[_Section]:
    """Return the sections, the most important first."""
    effects = tuple(map(sections.effect, review.effects))
    table = "| pipeline | table | | what changes, and what it does |\n|---|---|---|---|" if effects else ""
    unexpected, following = _policies(review)
    summary = sections.new_table_permissions(_roles(following), review.new_tables) if following else ""
    now, after, prices = review.cost_before, review.cost_after, review.prices
    unchanged = (
        f"- {prose(str(one.resource))}: {prose(one.what)}. {prose(one.do)}. `{one.rule}`" for one in review.unchanged
    )
    details = (f"{part}\n" for part in sections.cost_details(now, after, prices, review.region))
    expected = tuple(sections.expected(review.expected))
    order = list(Verb)
    changes = sorted(review.changes, key=lambda change: order.index(change.verb))
    new_tables = f"Permissions on new tables ({len(following)})"
    return [
        _Section("⚠️ Dangers", tuple(sections.dangers(review.dangers))),
        _Section("⚠️ Guardrails, on what does not change", tuple(unchanged)),
        _Section("Effects on data", effects, intro=table),
        _Section("Who may do what", tuple(map(sections.policy, unexpected)), intro=summary),
        _Section("Cost, estimated", (), intro=sections.cost_table(now, after, prices)),
        _Section(f"Resources ({len(review.changes)})", tuple(map(sections.resource, changes)), is_folded=True),
        _Section(new_tables, tuple(map(sections.policy, following)), is_folded=True),
        _Section(f"Findings that are expected ({len(review.expected)})", expected, is_folded=True),
        _Section("Where the estimate comes from", tuple(details), is_folded=True),
    ]


def _policies(review: Review) -> tuple[list[PolicyChange], list[PolicyChange]]:
    """Return the changed policies, and those of them that follow from new tables alone."""
    open_ = {each.where for each in review.dangers}
    expected = {each.resource for each, _ in review.expected if each.rule == WIDENED} - open_
    following = [each for each in review.policies if each.address in expected and not each.is_unknown]
    return [each for each in review.policies if each not in following], following


def _roles(changes: Sequence[PolicyChange]) -> list[str]:
    """Return the names of the roles whose policies change, without the environment's prefix if there is one."""
    return list(dict.fromkeys(each.argument.removeprefix("all policies of ") for each in changes))
