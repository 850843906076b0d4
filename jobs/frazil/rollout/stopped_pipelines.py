"""The pipelines of a job that an operator has stopped.

They are stored next to the desired state, so that a deployment does not start them again; the reconciler combines both.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Annotated

from frazil.clients.object_store import ObjectStore
from frazil.declaration import parse_document
from frazil.declaration.checks.declared import declared
from frazil.declaration.documents.document import Document
from frazil.declaration.documents.from_json import VERSION, from_json, members
from frazil.declaration.documents.to_json import canonical, to_json
from frazil.errors import InvalidInput, ObjectDiffers
from frazil.rollout.desired import Desired
from frazil.rollout.run_proof import RunName, is_pattern, of_pattern, parse_proof, proof_prefix
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
    """Return the desired state without the stopped pipelines. Stopped pipelines that are no longer declared are ignored.

    With a pattern, an unknown name may be one of its pipelines. A pattern itself cannot be stopped, so its job runs.
    """
    if desired.is_stopped:
        return replace(desired, stopped=())  # by its declaration, which names no pipelines
    stops, _ = _read(store, desired.job)
    desired = desired.unstopped
    if not stops.pipelines:
        return desired
    names = {*pipeline_names(desired, store)}
    stopped = {*stops.pipelines} if any(map(is_pattern, names)) else {*stops.pipelines} & names
    return replace(desired, stopped=tuple(sorted(stopped)), is_stopped=names <= stopped)


def document_of(desired: Desired, store: ObjectStore) -> Document:
    """Return the document of a generation. Raises `InvalidInput` if neither the document nor a copy exists."""
    held = store.read(desired.document) or store.read(kept_key(desired.document))
    if held is None:
        raise InvalidInput(
            f"the document {desired.document} does not exist", where=f"job {desired.job}", do="Deploy it"
        )
    return _parsed(held.data)


@lru_cache(maxsize=16)
def _parsed(document: bytes) -> Document:
    """Return a document, which one pass of the reconciler asks for several times."""
    return parse_document(document)


def pipeline_names(desired: Desired, store: ObjectStore) -> tuple[str, ...]:
    """Return the pipelines of a generation's document, and the names under which its patterns report.

    Raises `InvalidInput` as `document_of` does.
    """
    found = document_of(desired, store)
    return (*(pipeline.name for pipeline in found.pipelines), *map(of_pattern, range(len(found.patterns))))


def landed_places(desired: Desired, store: ObjectStore) -> set[tuple[str, str]]:
    """Return the pipelines of a generation by name and namespace, those of patterns as its newest proofs have them.

    With several patterns, such a pipeline has the namespace of each. Raises `InvalidInput` as `document_of` does.
    """
    found = document_of(desired, store)
    namespaces = {pattern.namespace for pattern in found.patterns}
    matched = _proven_names(desired, store) if namespaces else ()
    places = {(pipeline.name, pipeline.table.namespace) for pipeline in found.pipelines}
    return places | {(name, namespace) for name in matched for namespace in namespaces}


def landed_names(desired: Desired, store: ObjectStore) -> set[str]:
    """Return the pipelines that an operator can stop or start, with a pattern also all that are stopped.

    Raises `InvalidInput` as `document_of` does.
    """
    names = {name for name, _ in landed_places(desired, store)}
    return names | {*_read(store, desired.job)[0].pipelines} if document_of(desired, store).patterns else names


def _proven_names(desired: Desired, store: ObjectStore) -> set[str]:
    """Return the pipelines of the newest proof of each digest: a generation has others after a pipeline was stopped."""
    before, newest = proof_prefix(desired.job), dict[str, str]()
    for key in store.keys(f"{before}{desired.job}-{desired.generation}-"):
        run = RunName.of(key.removeprefix(before).removesuffix(".json"))
        if run is not None:
            newest[run.digest] = key  # of one digest, they are in order of time
    found = list[str]()
    for key in newest.values():
        with suppress(InvalidInput):  # it shows nothing
            held = store.read(key)
            found += parse_proof(held.data).pipelines if held is not None else ()
    return {name for name in found if not is_pattern(name)}


def change_stop(store: ObjectStore, desired: Desired, *pipelines: str, is_stopped: bool) -> bool:
    """Stop or start pipelines. Return whether that changed anything. If one cannot be changed, none is.

    After a rollback, the job has the pipelines of the proven generation, too. Raises `InvalidInput` for a pipeline that the job
    does not have, and `ObjectDiffers` if another operator changed the object at the same time.
    """
    proven = stored_state(store, desired.job).proven
    names = landed_names(desired, store) | (landed_names(proven, store) if proven is not None else set())
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
