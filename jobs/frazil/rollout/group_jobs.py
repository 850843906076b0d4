"""The jobs of groups: their names, and the job that has a pipeline.

A group has an ingest job and a maintenance job. Pipelines without a group have the jobs `ingest` and `maintain`, a group
has `ingest-<group>` and `maintain-<group>`.
"""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import InvalidInput
from frazil.rollout.desired import desired_key, parse_desired
from frazil.rollout.state import Store
from frazil.rollout.stopped_pipelines import pipeline_names

INGEST, MAINTAIN = "ingest", "maintain"


def job_name(kind: str, group: str | None) -> str:
    """Return the name of a group's job; `kind` is `INGEST` or `MAINTAIN`."""
    return f"{kind}-{group}" if group else kind


def ingest_jobs(store: Store) -> tuple[str, ...]:
    """Return the names of the deployed ingest jobs, sorted: one for each desired state."""
    before, after = desired_key("*").split("*")
    return tuple(sorted(key.removeprefix(before).removesuffix(after) for key in store.keys(before)))


def job_of(store: Store, pipelines: Sequence[str]) -> str:
    """Return the ingest job that has the pipelines, as it is deployed.

    Raises `InvalidInput` if no job has one of them, and if they are of several jobs.
    """
    found: dict[str, list[str]] = {}
    known: list[str] = []
    for job in ingest_jobs(store):
        held = store.read(desired_key(job))
        names = pipeline_names(parse_desired(held.data), store) if held is not None else ()
        known += names
        if here := [name for name in pipelines if name in names]:
            found[job] = here
    missing = [name for name in pipelines if not any(name in names for names in found.values())]
    if missing:
        what = f"no deployed job has the pipeline {', '.join(missing)}"
        raise InvalidInput(
            what, do=f"Name some of {', '.join(sorted(known))}" if known else "Deploy the ingestion stack"
        )
    if len(found) > 1:
        what = "; ".join(f"{job} has {', '.join(names)}" for job, names in found.items())
        raise InvalidInput(f"the pipelines are of several jobs: {what}", do="Run the command once for each job")
    return next(iter(found))
