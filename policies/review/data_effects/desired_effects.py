"""The effects of a changed desired state on runs and so on rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from frazil.declaration.checks.change_effects import Outcome
from policies.review.data_effects.effects import Effect

Json = Mapping[str, Any]

_FIELDS = {
    "mode": "rows, offsets and tables stay; with follow one continuous run lands records, with drain each scheduled run lands "
    "the existing ones. The current run ends first",
    "release": "the next reconcile ends the runs of the old release and starts this one; offsets go on where they are",
    "label": "runs move to an application of the other EMR label",
    "workers": "runs get other sizes",
    "arguments": "the entry point gets other arguments",
    "environment": "runs read another environment document: endpoints, catalog or secrets' names",
    "execution_role": "runs have another role",
    "timeout_minutes": "drains may take another time at most",
}


def desired_effects(before: Iterable[Json], after: Iterable[Json]) -> Iterator[Effect]:
    """Yield the effects of changed desired states, by job."""
    old, new = (
        {str(each["job"]): each for each in side if "workers" in each and "job" in each} for side in (before, after)
    )
    for job, wanted in new.items():
        if job in old:
            yield from _changes(job, old[job], wanted)
    for job in old.keys() - new.keys():
        yield _effect(
            job,
            Outcome.LEFT,
            "the desired state is removed: a running job continues until an operator stops it, and is not started again",
            is_dangerous=True,
        )


def _changes(job: str, old: Json, new: Json) -> Iterator[Effect]:
    if new.get("is_stopped") and not old.get("is_stopped"):
        what = "its runs are ended: rows come late, and what Kafka deletes before they are started again is lost"
        yield _effect(job, Outcome.STOPS, what, is_dangerous=True)
    elif old.get("is_stopped") and not new.get("is_stopped"):
        yield _effect(job, Outcome.FROM_NOW_ON, "its runs are started again, where the tables' offsets are")
    for name, what in _FIELDS.items():
        if old.get(name) != new.get(name) and not _is_later(new.get(name)):
            yield _effect(
                job, Outcome.UPKEEP, what, changed=name, before=_shown(old.get(name)), after=_shown(new.get(name))
            )
    changed = [
        name for name in {*old, *new} if name not in {"generation", "application"} and old.get(name) != new.get(name)
    ]
    if changed and old.get("generation") == new.get("generation"):
        what = (
            f"what should run changes ({', '.join(sorted(changed))}), and the generation stays {new.get('generation')}: raise "
            "it in stacks/spec/deployments.py, so that it can be identified and rolled back"
        )
        yield _effect(job, Outcome.UPKEEP, what)


def _is_later(value: Any) -> bool:
    """Return whether Terraform fills in a part of the value later."""
    return isinstance(value, str) and "${" in value


def _effect(job: str, outcome: Outcome, what: str, *, is_dangerous: bool = False, **more: str) -> Effect:
    return Effect(pipeline=f"job {job}", table="", outcome=outcome, what=what, is_dangerous=is_dangerous, **more)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
