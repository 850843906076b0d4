"""Stops: the pipelines of a job that an operator has stopped. They stand beside what was deployed, so that a deployment does
not start again what a person has stopped; the reconciler lays them over it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from frazil.declaration import parse
from frazil.declaration.from_json import VERSION, from_json, members
from frazil.declaration.to_json import canonical, to_json
from frazil.declaration.validation import validate
from frazil.errors import InvalidInput, ObjectDiffers
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.document_copies import kept_key
from frazil.rollout.state import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """What is stopped."""

    pipelines: Annotated[tuple[str, ...], "Names, sorted."] = ()
    number: Annotated[int, "How often it was changed: no two writes are equal."] = 0

    def __post_init__(self) -> None:
        validate(self)


def stops_key(job: str) -> str:
    """Where a job's stops are kept in the artifact bucket."""
    return f"reconcile/{job}.stops.json"


def with_stops(desired: Desired, store: Store) -> Desired:
    """What is wanted, without what is stopped. A stopped pipeline that is no longer declared has no part in it."""
    stops, _ = _read(store, desired.job)
    desired = desired.unstopped
    if not stops.pipelines:
        return desired
    names = pipeline_names(desired, store)
    stopped = tuple(sorted(set(stops.pipelines) & set(names)))
    return replace(desired, stopped=stopped, is_stopped=desired.is_stopped or len(stopped) == len(names))


def pipeline_names(desired: Desired, store: Store) -> tuple[str, ...]:
    """The pipelines of a generation. Raises `InvalidInput` if its document is neither there nor kept."""
    held = store.read(desired.document) or store.read(kept_key(desired.document))
    if held is None:
        raise InvalidInput(f"the document {desired.document} is not there", where=f"job {desired.job}", do="Deploy it")
    return tuple(pipeline.name for pipeline in parse(held.data))


def change_stop(store: Store, desired: Desired, *pipelines: str, is_stopped: bool) -> bool:
    """Stop pipelines, or let them go on; whether that changed anything. One that cannot be changed keeps all as they are.

    Raises `InvalidInput` for a pipeline that the job does not have, or whose runs a schedule starts, and `ObjectDiffers` if
    another operator changed the stops at the same moment.
    """
    names = pipeline_names(desired, store)
    for pipeline in pipelines:
        if pipeline not in names:
            what, there = f"it has no pipeline {pipeline}", ", ".join(names)
            raise InvalidInput(what, where=f"job {desired.job}", do=f"It has {there}")
    if desired.mode is Mode.DRAIN:
        raise InvalidInput(
            "its runs are started by a schedule, which knows nothing of stops",
            where=f"job {desired.job}",
            do="Deploy without the pipeline, or disable the schedule",
        )
    stops, version = _read(store, desired.job)
    stopped = set(stops.pipelines)
    kept = stopped | set(pipelines) if is_stopped else stopped - set(pipelines)
    if kept == stopped:
        return False
    wanted = Stops(pipelines=tuple(sorted(kept)), number=stops.number + 1)
    if store.swap(stops_key(desired.job), canonical({"version": VERSION, **to_json(wanted)}), version=version) is None:
        raise ObjectDiffers("someone else has just changed it", where=stops_key(desired.job), do="Try again")
    return True


def _read(store: Store, job: str) -> tuple[Stops, str | None]:
    held = store.read(stops_key(job))
    if held is None:
        return Stops(), None
    return from_json(Stops, members(held.data, "stops"), ""), held.version
