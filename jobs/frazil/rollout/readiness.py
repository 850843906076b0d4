"""The readiness of a generation, from the proofs that the drivers of its runs write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

from frazil.clients.object_store import ObjectStore
from frazil.errors import InvalidInput
from frazil.release.manifest import Release, parse_manifest
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.run_proof import Reached, RunProof, is_pattern, parse_proof, proof_prefix
from frazil.rollout.stopped_pipelines import pipeline_names


def stored_proofs(store: ObjectStore, job: str, run_prefix: str = "") -> Iterator[RunProof]:
    """Yield the proofs of the runs whose names begin so, the last name first: names of one generation are in order of time.

    A proof that cannot be read is omitted: it shows nothing, and a release that writes such proofs must not keep itself.
    """
    for key in reversed(store.keys(f"{proof_prefix(job)}{run_prefix}")):
        held = store.read(key)
        if held is None:
            continue
        try:
            yield parse_proof(held.data)
        except InvalidInput:
            continue


TRIES = 3
"""Runs of a generation that end, or drains that leave a pipeline without a commit, until it is given up."""


class Readiness(StrEnum):
    """The progress of a generation, according to the proofs of its runs.

    `committed`: it has committed, and its other tables hold all records of their topics. `caught_up`: it has not committed,
    and its tables hold all records of their topics. `nothing_yet`: a pipeline has neither committed nor caught up; if that
    lasts, it is evidence of a failure. `partly`: some pipelines have committed, and others lack a service. `unknown`: none
    has committed, and some lack a service.

    Two are of drains, whose runs may end before all pipelines had their turn. `behind`: a pipeline waits for its turn, or
    others have committed and it has landed nothing in its turns so far. `stuck`: that was so in three runs in which it had
    its turn.
    """

    COMMITTED = "committed"
    CAUGHT_UP = "caught up"
    NOTHING_YET = "nothing yet"
    PARTLY = "partly committed"
    UNKNOWN = "unknown"
    BEHIND = "behind"
    STUCK = "stuck"


class ProofReadiness:
    """Check the proofs of a generation's runs. It reads the artifact bucket only."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def of(self, desired: Desired) -> Readiness:
        """Return the readiness of a generation. Raises `InvalidInput` if its document is missing.

        A commit of any of its runs counts. For the other pipelines, the newest proof does. `counted` says which pipelines of
        patterns count.
        """
        names = {name for name in pipeline_names(desired, self._store) if name not in desired.stopped}
        proofs = sorted(
            stored_proofs(self._store, desired.job, desired.run_prefix), key=lambda proof: (proof.at_ms, proof.run)
        )
        committed = {name for p in proofs for name, reached in p.pipelines.items() if reached is Reached.COMMITTED}
        newest = proofs[-1].pipelines if proofs else {}
        reached = {**newest, **dict.fromkeys(committed, Reached.COMMITTED)}
        names |= counted(names, {name: how for name, how in reached.items() if name not in desired.stopped})
        others, has_commit = names - committed, bool(committed & names)
        if desired.mode is Mode.DRAIN and (found := _of_drain(others, proofs, has_commit=has_commit)) is not None:
            return found
        return _readiness({newest.get(name, Reached.NOTHING) for name in others}, has_commit=has_commit)


def counted(names: Collection[str], reached: Mapping[str, Reached]) -> set[str]:
    """Return the pipelines of patterns that show how far a run is. `names` are those of its document, `reached` of its proofs.

    If some have committed or caught up, the others do not count: whoever makes a topic could otherwise have a release rolled back.
    If all have landed nothing, all count.
    """
    matched = reached.keys() - {*names} if any(map(is_pattern, names)) else set[str]()
    for good in ((Reached.COMMITTED, Reached.CAUGHT_UP), (Reached.UNAVAILABLE,)):
        if found := {name for name in matched if reached[name] in good}:
            return found
    return {*matched}


def _of_drain(others: Collection[str], proofs: Sequence[RunProof], *, has_commit: bool) -> Readiness | None:
    """Return what proofs of drains say about the pipelines that have not committed; None if it is what others would say."""
    if not proofs:
        return None
    newest = proofs[-1]
    empty = [name for name in others if newest.pipelines.get(name, Reached.NOTHING) is Reached.NOTHING]
    waiting = [name for name in empty if newest.reported and name not in newest.reported]
    if not empty or (len(empty) > len(waiting) and not has_commit):
        return None
    turns = Counter(
        name for p in proofs for name in p.reported if p.pipelines.get(name, Reached.NOTHING) is Reached.NOTHING
    )
    return Readiness.STUCK if any(turns[name] >= TRIES for name in empty) else Readiness.BEHIND


def _readiness(others: set[Reached], *, has_commit: bool) -> Readiness:
    if Reached.NOTHING in others:
        return Readiness.NOTHING_YET
    if Reached.UNAVAILABLE in others:
        return Readiness.PARTLY if has_commit else Readiness.UNKNOWN
    return Readiness.COMMITTED if has_commit else Readiness.CAUGHT_UP


def stored_release(store: ObjectStore, desired: Desired) -> Release:
    """Read the manifest of a generation's release. Raises `InvalidInput` if it does not exist."""
    held = store.read(desired.release)
    if held is None:
        raise InvalidInput(
            "the release does not exist", where=f"job {desired.job}, {desired.release}", do="Upload it, then deploy"
        )
    return parse_manifest(held.data)
