"""The pipelines of a job that an operator has stopped.

They are stored next to the desired state, so that a deployment does not start them again; the reconciler combines both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Annotated

from frazil.clients.object_store import ObjectStore
from frazil.declaration import parse
from frazil.declaration.checks.declared import declared
from frazil.declaration.documents.from_json import VERSION, from_json, members
from frazil.declaration.documents.to_json import canonical, to_json
from frazil.errors import InvalidInput, ObjectDiffers
from frazil.rollout.desired import Desired
from frazil.rollout.state import kept_key, stored_state


@declared
class Stops:
    """The stopped pipelines of a job."""

    pipelines: Annotated[tuple[str, ...], "Names, sorted."] = ()
    number: Annotated[int, "How often the object was written: no two writes are equal."] = 0


def stops_key(job: str) -> str:
    """Return the key of a job's stopped pipelines in the artifact bucket."""
    return f"reconcile/{job}.stops.json"


def with_stops(desired: Desired, store: ObjectStore) -> Desired:
    """Return the desired state without the stopped pipelines. Stopped pipelines that are no longer declared are ignored."""
    if desired.is_stopped:
        return replace(desired, stopped=())  # by its declaration, which names no pipelines
    stops, _ = _read(store, desired.job)
    desired = desired.unstopped
    if not stops.pipelines:
        return desired
    names = pipeline_names(desired, store)
    stopped = tuple(sorted(set(stops.pipelines) & set(names)))
    return replace(desired, stopped=stopped, is_stopped=len(stopped) == len(names))


def pipeline_names(desired: Desired, store: ObjectStore) -> tuple[str, ...]:
    """Return the pipelines of a generation. Raises `InvalidInput` if neither its document nor a copy exists."""
    held = store.read(desired.document) or store.read(kept_key(desired.document))
    if held is None:
        raise InvalidInput(
            f"the document {desired.document} does not exist", where=f"job {desired.job}", do="Deploy it"
        )
    return _names_in(held.data)


@lru_cache(maxsize=16)
def _names_in(document: bytes) -> tuple[str, ...]:
    """Return the pipelines of a document, which one pass of the reconciler asks for several times."""
    return tuple(pipeline.name for pipeline in parse(document))


def change_stop(store: ObjectStore, desired: Desired, *pipelines: str, is_stopped: bool) -> bool:
    """Stop or start pipelines. Return whether that changed anything. If one cannot be changed, none is.

    After a rollback, the job has the pipelines of the proven generation, too. Raises `InvalidInput` for a pipeline that the job
    does not have, and `ObjectDiffers` if another operator changed the object at the same time.
    """
    proven = stored_state(store, desired.job).proven
    names = {*pipeline_names(desired, store), *(pipeline_names(proven, store) if proven is not None else ())}
    for pipeline in pipelines:
        if pipeline not in names:
            what = f"it has no pipeline {pipeline}"
            raise InvalidInput(what, where=f"job {desired.job}", do=f"Name one of {', '.join(sorted(names))}")
    stops, version = _read(store, desired.job)
    stopped = set(stops.pipelines)
    changed = stopped | set(pipelines) if is_stopped else stopped - set(pipelines)
    if changed == stopped:
        return False
    wanted = Stops(pipelines=tuple(sorted(changed)), number=stops.number + 1)
    if store.swap(stops_key(desired.job), canonical({"version": VERSION, **to_json(wanted)}), version=version) is None:
        raise ObjectDiffers(
            "another operator has just changed the object", where=stops_key(desired.job), do="Try again"
        )
    return True


def _read(store: ObjectStore, job: str) -> tuple[Stops, str | None]:
    held = store.read(stops_key(job))
    if held is None:
        return Stops(), None
    return from_json(Stops, members(held.data, "stops"), ""), held.version
