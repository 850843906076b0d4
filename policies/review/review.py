"""The review of a deployment before it is applied, and whether it is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

from frazil.declaration import InvalidDeclaration, Pipeline, TopicPattern, parse_document
from policies.resource_changes import Change, Verb, changes_of
from policies.resource_values import NONE_DECLARED, DeclaredAccess, Facts
from policies.resources import Finding, Resource, Reviewed, embedded, read, together
from policies.review.cost import Estimate, estimate
from policies.review.dangers import change_dangers, effect_danger, expected, shortened
from policies.review.data_effects.columns import column_effects
from policies.review.data_effects.declared_schemas import declared_schema_effects
from policies.review.data_effects.effects import Effect, desired_effects, effects
from policies.review.data_effects.pattern_effects import pattern_effects
from policies.review.plan.compared_plans import DIGITS, NormalForm, normal_form
from policies.review.plan.masking import cleaned
from policies.review.plan.plan_gaps import StackPlan, as_declared, unread, unreviewed
from policies.review.policy_diff import PolicyChange, policy_changes, rights_change
from policies.review.prices import Prices
from policies.review.role_permissions import (
    AttachedPolicies,
    attachment_dangers,
    explainable,
    role_rights,
    trust_dangers,
    with_roles,
)
from policies.rules import findings

Json = Mapping[str, Any]
_SIGNS = {"+": Verb.CREATE, "~": Verb.UPDATE, "-": Verb.DELETE, "±": Verb.REPLACE}
_NO_DOCUMENT = "no plan holds the pipeline document, so effects on data are unknown"


class Verdict(StrEnum):
    """The result of a review. `refused`: it has a danger or a finding that was not accepted."""

    NOTHING = "nothing"
    CHANGES = "changes"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The dangers that one person accepts. `codes` are names of rules, or `all`; `by` is empty on the command line."""

    codes: tuple[str, ...]
    reason: str
    by: str = ""
    url: str = ""

    def covers(self, rule: str) -> bool:
        """Return whether it accepts the dangers of a rule."""
        return "all" in self.codes or rule in self.codes


def on_command_line(reason: str) -> tuple[Acceptance, ...]:
    """Return the acceptance of all dangers for a reason; none without a reason."""
    return (Acceptance(codes=("all",), reason=reason.strip()),) if reason.strip() else ()


def in_comments(content: Mapping[str, Any], environment: str, digest: str) -> Iterator[Acceptance]:
    """Yield the acceptances of this plan, from what `frazil deploy acceptances` printed. Those of another digest are void.

    Raises `ValueError` if the content has another form, names a part of a digest, or is of another environment.
    """
    again = f"Write the acceptances with `frazil deploy acceptances {environment} --pull-request NUMBER`"
    if content.get("environment") != environment or not isinstance(content.get("accepted"), list):
        raise ValueError(f"the acceptances are not those of {environment}. {again}")
    for each in content["accepted"]:
        named = str(each["digest"])
        if len(named) != DIGITS:
            what = f"the acceptance of {each['by']} names {len(named)} digits of a plan, and {DIGITS} are needed"
            raise ValueError(f"{what}. {again}")
        if named == digest:
            codes = tuple(map(str, each["codes"]))
            yield Acceptance(codes=codes, reason=str(each["reason"]), by=str(each["by"]), url=str(each["url"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A review of one environment, without secrets.

    `new_tables` are those that the change declares. `dangers` are caused by this change, `unchanged` are findings about
    unchanged resources, `expected` are findings that are no reason to refuse. `acceptances` are those
    of this plan. `form` is the normal form of the plans, whose digest identifies what was reviewed.
    """

    environment: str
    stacks: tuple[str, ...]
    form: NormalForm
    changes: tuple[Change, ...]
    outputs: tuple[str, ...]
    dangers: tuple[Finding, ...]
    unchanged: tuple[Finding, ...]
    expected: tuple[Finding, ...]
    policies: tuple[PolicyChange, ...]
    new_tables: tuple[str, ...]
    effects: tuple[Effect, ...]
    notes: tuple[str, ...]
    cost_before: Estimate
    cost_after: Estimate
    prices: Prices
    region: str = ""
    acceptances: tuple[Acceptance, ...] = ()
    is_offline: bool = False
    """True if its plans are not Terraform's, so that nothing of it can be accepted."""

    @property
    def verdict(self) -> Verdict:
        """The result, which says if the deployment may be applied."""
        if self.open_codes:
            return Verdict.REFUSED
        return Verdict.CHANGES if self.changes or self.outputs or self.effects or self.dangers else Verdict.NOTHING

    @property
    def open_codes(self) -> tuple[str, ...]:
        """The rules of dangers and findings that are not accepted, sorted."""
        rules = {*(each.rule for each in self.dangers), *(each.rule for each in self.unchanged)}
        return tuple(sorted(rule for rule in rules if not any(each.covers(rule) for each in self.acceptances)))

    def counts(self, stack: str = "") -> str:
        """Return the numbers of created, updated, deleted and replaced resources, in one stack or in all."""
        verbs = [change.verb for change in self.changes if stack in {"", change.stack}]
        return " ".join(f"{sign}{verbs.count(verb)}" for sign, verb in _SIGNS.items())


def review(
    environment: str,
    stacks: Sequence[StackPlan],
    *,
    prices: Prices,
    today: date,
    region: str = "",
    accepted: Callable[[str], Iterable[Acceptance]] = lambda digest: (),
    tolerated: Collection[str] = (),
    access: DeclaredAccess = NONE_DECLARED,
    offline: str = "",
    topics: Collection[str] | None = None,
) -> Review:
    """Review the plans of an environment's stacks, in the order in which they are deployed.

    `tolerated` are rules whose findings are expected in this environment. `access` is what the deployment
    declares of it. `accepted` returns the acceptances of a plan by its digest. Plans are Terraform's output; the first step
    removes their secrets. `offline` is the note of a review whose plans are made of the stacks alone. `topics` exist, and those
    that match a pattern are noted; they are no part of what is accepted.
    """
    form = normal_form(environment, {each.name: each.plan for each in stacks})
    shown = {each.name: each.plan for each in stacks if each.plan is not None}
    plans = {name: cleaned(plan, shown.values()) for name, plan in shown.items()}
    synthesised = {each.name: each.synthesised for each in stacks if each.synthesised is not None}
    reviewed = together(
        [
            Reviewed(documents=tuple(document for each in stacks for document in each.pipelines)),
            *(read(stack) for stack in synthesised.values()),
            *(read(as_declared(plan, synthesised.get(name))) for name, plan in plans.items()),
        ]
    )
    facts = Facts(reviewed, today, access)
    everything = [each for name, plan in plans.items() for each in changes_of(plan, name, synthesised.get(name))]
    changes = tuple(each for each in everything if each.verb is not Verb.STAY)
    old_resources = [Resource(each.address, each.type, each.before) for each in everything if each.before]
    old_documents, new_documents = (list(embedded(each)) for each in (old_resources, reviewed.resources))
    old, old_patterns, old_problem = _declared(old_documents)
    new, new_patterns, new_problem = _declared(new_documents)
    all_effects: list[Effect] = []
    if not (old_problem or new_problem):
        all_effects += effects(old, new) if new_documents and _has_pipelines(new_documents) else ()
        all_effects += pattern_effects(old_patterns, new_patterns) if _has_pipelines(new_documents) else ()
        all_effects += declared_schema_effects(old, new)
    all_effects += column_effects(changes, new)
    all_effects += desired_effects(old_documents, new_documents)
    resources = [each for each in everything if not each.is_deposed]
    attached = AttachedPolicies(resources)
    rights = [*role_rights(attached)]
    found = with_roles(findings(reviewed, facts), rights, facts)
    anticipated = tuple(
        expected(
            found,
            explainable(reviewed.changes, rights),
            facts,
            before=[*old, *(each.pipeline for each in old_patterns)],
            after=[*new, *(each.pipeline for each in new_patterns)],
            applications=_applications(new_documents) - _applications(old_documents),
            tolerated=tolerated,
        )
    )
    refusing = [each for each in found if each not in set(anticipated)]
    policies = (
        *(policy for change in changes for policy in policy_changes(change)),
        *(change for each in rights if (change := rights_change(each)) is not None),
    )
    dangers = [
        *unreviewed(stacks, form),
        *change_dangers(refusing, changes, policies, old),
        *attachment_dangers(resources, attached),
        *trust_dangers(resources, access),
        *(effect_danger(effect) for effect in all_effects if effect.is_dangerous),
        *(unread("document of pipelines", problem) for problem in (old_problem, new_problem) if problem),
    ]
    changed = {change.address for change in changes}
    now, kept = estimate(old_resources, old, prices), {each.table.identifier for each in new}
    left = [each.name for each in old if each.name in now.pipelines and each.table.identifier not in kept]
    return Review(
        environment=environment,
        stacks=tuple(each.name for each in stacks),
        form=form,
        changes=changes,
        outputs=tuple(f"{name}: {output}" for name, each in form.stacks.items() if each for output in each["outputs"]),
        dangers=tuple(dict.fromkeys(dangers)),
        unchanged=tuple(each for each in refusing if each.resource not in changed),
        expected=anticipated,
        policies=policies,
        new_tables=tuple(sorted({t for p in new for t in p.tables} - {t for p in old for t in p.tables})),
        effects=tuple(sorted(all_effects, key=lambda effect: not effect.is_dangerous)),
        notes=(
            *([offline] if offline else []),
            *(() if _has_pipelines(new_documents) else (_NO_DOCUMENT,)),
            *(_matching(each, topics) for each in new_patterns if topics is not None),
        ),
        cost_before=now,
        cost_after=estimate(reviewed.resources, new, prices, left=left),
        prices=prices,
        region=region,
        acceptances=tuple(accepted(form.digest)),
        is_offline=bool(offline),
    )


def _matching(pattern: TopicPattern, topics: Iterable[str]) -> str:
    """Return in words which topics match a pattern today."""
    found = sorted(filter(pattern.matches, topics))
    return f"{pattern.match} matches {len(found)} topics that exist{': ' if found else ''}{shortened(found)}"


def _applications(found: Iterable[Json]) -> set[str]:
    """Return the ids of the applications that desired states name."""
    return {str(each["application"]) for each in found if "workers" in each and each.get("application")}


def _has_pipelines(found: Iterable[Json]) -> bool:
    return any("pipelines" in each for each in found)


def _declared(found: Iterable[Json]) -> tuple[list[Pipeline], list[TopicPattern], str]:
    """Return the pipelines and patterns of the documents, or why they cannot be read."""
    listed, patterns = list[Pipeline](), list[TopicPattern]()
    for each in found:
        if "pipelines" in each:
            try:
                document = parse_document(each)
            except InvalidDeclaration as invalid:
                return [], [], f"this release cannot read it: {'; '.join(map(str, invalid.problems[:3]))}"
            listed += document.pipelines
            patterns += document.patterns
    return listed, patterns, ""
