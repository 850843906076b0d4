"""The effects on rows of a changed desired state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from frazil.declaration.checks.change_effects import Outcome
from policies.review.data_effects.effects import Effect

Json = Mapping[str, Any]


def desired_effects(before: Iterable[Json], after: Iterable[Json]) -> Iterator[Effect]:
    """Yield the effects of changed desired states, by job."""
    old, new = (
        {str(each["job"]): each for each in side if "workers" in each and "job" in each} for side in (before, after)
    )
    for job, was in old.items():
        wanted = new.get(job)
        if wanted is None:
            what = "the desired state is removed: a running job continues until an operator stops it, and is not started again"
            yield _effect(job, Outcome.LEFT, what, is_dangerous=True)
        elif wanted.get("is_stopped") and not was.get("is_stopped"):
            what = "its runs are ended: rows come late, and what Kafka deletes before they are started again is lost"
            yield _effect(job, Outcome.STOPS, what, is_dangerous=True)
        elif was.get("is_stopped") and not wanted.get("is_stopped"):
            yield _effect(job, Outcome.FROM_NOW_ON, "its runs are started again, where the tables' offsets are")


def _effect(job: str, outcome: Outcome, what: str, *, is_dangerous: bool = False) -> Effect:
    return Effect(pipeline=f"job {job}", table="", outcome=outcome, what=what, is_dangerous=is_dangerous)
