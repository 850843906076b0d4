"""The jobs of groups: their names, the job that has a pipeline, and pipelines that moved from one to another.

A group has an ingest job and a maintenance job. Pipelines without a group have the jobs `ingest` and `maintain`, a group
has `ingest-<group>` and `maintain-<group>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frazil.clients.object_store import ObjectStore
from frazil.errors import InvalidInput
from frazil.rollout.desired import Desired, desired_key, parse_desired
from frazil.rollout.state import stored_state
from frazil.rollout.stopped_pipelines import document_of, landed_names, landed_places, pipeline_names


def ingest_jobs(store: ObjectStore) -> tuple[str, ...]:
    """Return the names of the deployed ingest jobs, sorted: one for each desired state."""
    before, after = desired_key("*").split("*")
    return tuple(sorted(key.removeprefix(before).removesuffix(after) for key in store.keys(before)))


def deployed_pipelines(store: ObjectStore) -> dict[str, tuple[str, ...]]:
    """Return the pipelines that the document of each deployed ingest job names, and the texts of its patterns.

    Raises `InvalidInput` if one cannot be read.
    """
    found = dict[str, tuple[str, ...]]()
    for job in ingest_jobs(store):
        held = store.read(desired_key(job))
        if held is not None:
            document = document_of(parse_desired(held.data), store)
            found[job] = (*(one.name for one in document.pipelines), *(one.match for one in document.patterns))
    return found


def job_of(store: ObjectStore, pipelines: Sequence[str]) -> str:
    """Return the ingest job that has the pipelines, as it is deployed.

    Raises `InvalidInput` if no job has one of them, and if they are of several jobs.
    """
    deployed: dict[str, set[str]] = {}
    unreadable: list[str] = []
    for job in ingest_jobs(store):
        try:
            deployed[job] = _pipelines_of(store, job)
        except InvalidInput as error:
            unreadable.append(f"; {job} cannot be read: {error}")
    known = {name for names in deployed.values() for name in names}
    # After a rollback, a job runs pipelines that its deployed document no longer has.
    landed = {job: {name for name, _ in _landed(store, job)} for job in deployed}
    both = {job: names & landed[job] for job, names in deployed.items()}
    found: dict[str, list[str]] = {}
    for name in pipelines:
        ranked = ([job for job, names in each.items() if name in names] for each in (both, landed, deployed))
        for job in next(filter(None, ranked), []):
            found.setdefault(job, []).append(name)
    missing = [name for name in pipelines if not any(name in names for names in found.values())]
    if missing:
        what = f"no deployed job has the pipeline {', '.join(missing)}{''.join(unreadable)}"
        raise InvalidInput(
            what, do=f"Name some of {', '.join(sorted(known))}" if known else "Deploy the ingestion stack"
        )
    if len(found) > 1:
        what = "; ".join(f"{job} has {', '.join(names)}" for job, names in found.items())
        raise InvalidInput(f"the pipelines are of several jobs: {what}", do="Run the command once for each job")
    return next(iter(found))


def without_moved(proven: Desired, desired: Desired, store: ObjectStore) -> Desired:
    """Return the generation to which a job returns, without the pipelines that another job lands since.

    Otherwise both jobs would land them, and fence each other without end. If the other job has returned to a generation without
    a pipeline, too, the pipeline stays here: no job would land it. What cannot be read moves no pipeline.
    """
    places = landed_places(proven, store) - landed_places(desired, store)
    left = {place for place in places if place[0] not in proven.stopped}
    others = ingest_jobs(store) if left else ()
    moved = {name for job in others if job != desired.job for name, _ in _landed(store, job) & left}
    if not moved:
        return proven
    stopped = tuple(sorted({*proven.stopped, *moved}))
    is_empty = set(pipeline_names(proven, store)) <= set(stopped)
    return replace(proven, stopped=stopped, is_stopped=proven.is_stopped or is_empty)


def _landed(store: ObjectStore, job: str) -> set[tuple[str, str]]:
    """Return the pipelines that a job should land, by name and namespace.

    These are those of the proven generation, if the job has given up the deployed one.
    """
    try:
        held = store.read(desired_key(job))
        if held is None:
            return set()
        desired, state = parse_desired(held.data), stored_state(store, job)
        target = state.proven if state.has_given_up(desired) else desired
        return landed_places(target, store) if target is not None else set()
    except InvalidInput:
        return set()


def _pipelines_of(store: ObjectStore, job: str) -> set[str]:
    """Return the pipelines of a deployed job. Raises `InvalidInput` if its desired state or document cannot be read."""
    held = store.read(desired_key(job))
    return landed_names(parse_desired(held.data), store) if held is not None else set()
