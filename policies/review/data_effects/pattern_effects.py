"""The effects on data of new, removed and changed patterns of topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from frazil.declaration import TopicPattern
from frazil.declaration.checks.change_effects import Outcome
from policies.review.data_effects.effects import Effect, changes_of_pipeline

_FIELDS = ("table", "exclude", "most")
_LEFT = (
    "tables of topics that no longer match stay with all rows; what is not landed yet is lost after Kafka's retention"
)
_MADE = "tables are made of each topic that matches, also of later ones, without another deployment"


def pattern_effects(before: Sequence[TopicPattern], after: Sequence[TopicPattern]) -> Iterator[Effect]:
    """Yield the effects. A pattern whose text changes is another one."""
    old, new = ({each.match: each for each in side} for side in (before, after))
    for match, pattern in new.items():
        if match not in old:
            group = pattern.pipeline.group
            facts = [f"at most {pattern.most}", f"of the group {group}" if group else "without a group"]
            facts += [f"without {pattern.exclude}"] if pattern.exclude else []
            yield _effect(pattern, Outcome.MADE, f"{_MADE}: {', '.join(facts)}")
    for match, pattern in old.items():
        if match in new:
            yield from _changes(pattern, new[match])
        else:
            yield _effect(pattern, Outcome.LEFT, _LEFT, is_dangerous=True)


def _changes(old: TopicPattern, new: TopicPattern) -> Iterator[Effect]:
    for field in _FIELDS:
        one, other = getattr(old, field), getattr(new, field)
        if one != other:
            is_more = other is None or (field == "most" and other > one)
            outcome, what = (Outcome.MADE, _MADE) if is_more else (Outcome.LEFT, _LEFT)
            effect = _effect(old, outcome, what, is_dangerous=not is_more)
            yield replace(effect, changed=field, before=str(one or "nothing"), after=str(other or "nothing"))
    same = replace(new.pipeline, table=replace(new.pipeline.table, identifier=old.pipeline.table.identifier))
    for effect in changes_of_pipeline(old.pipeline, same):  # another namespace is another `table`
        yield replace(effect, pipeline=old.match, table=old.table)


def _effect(pattern: TopicPattern, outcome: Outcome, what: str, *, is_dangerous: bool = False) -> Effect:
    return Effect(pipeline=pattern.match, table=pattern.table, outcome=outcome, what=what, is_dangerous=is_dangerous)
