"""The state that a job's reconciler stores between its runs, and the lease that excludes a second reconciler.

Both are one object, `reconcile/<job>.json`, changed by conditional writes only. A reconciler that lost its lease has not
read the newest version, so its next write fails, and it stops before it acts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from frazil.clients.object_store import ObjectStore
from frazil.declaration.checks.constraints import at_least
from frazil.declaration.checks.declared import declared
from frazil.declaration.documents.from_json import VERSION, from_json, members
from frazil.declaration.documents.to_json import canonical, to_json
from frazil.errors import InvalidInput, LockHeld
from frazil.release.manifest import SHA256
from frazil.rollout.desired import Desired


def kept_key(key: str) -> str:
    """Return the key of a document's copy."""
    return f"reconcile/kept/{key.rpartition('/')[2]}"


def keep_documents(desired: Desired, store: ObjectStore) -> None:
    """Copy each of the generation's documents, or restore it from its copy. Idempotent.

    Raises `InvalidInput` if neither a document nor its copy exists.
    """
    for key in (desired.document, desired.environment):
        held = store.read(key)
        if held is not None:
            store.put_once(kept_key(key), held.data)
            continue
        copy = store.read(kept_key(key))
        if copy is None:
            raise InvalidInput(f"the document {key} does not exist", where=f"job {desired.job}", do="Deploy it")
        store.put_once(key, copy.data)


LEASE_SECONDS = 600
"""Longer than any one call may take with all its attempts: at most one call is made between two writes of the lease."""
SKEW_SECONDS = 300
"""The most by which the clocks of two reconcilers may differ. A lease that lasts longer than both is from a wrong clock."""
REMEMBERED = 20
"""The most given-up generations and applications that are stored; the oldest are dropped."""


@declared
class RolloutState:
    """The stored state of a job's rollout."""

    number: Annotated[int, "How often it was written: no two writes are equal.", at_least(0)] = 0
    holder: Annotated[str | None, "The reconciler that holds the lease."] = None
    until_ms: Annotated[int, "When the lease expires, in milliseconds since 1970.", at_least(0)] = 0
    proven: Annotated[Desired | None, "The newest generation that has proven itself."] = None
    given_up: Annotated[tuple[Annotated[str, SHA256], ...], "Digests of generations that did not."] = ()
    applications: Annotated[tuple[str, ...], "Applications on which runs of the job may be."] = ()

    def document(self) -> bytes:
        """Return the state as canonical JSON."""
        return canonical({"version": VERSION, **to_json(self)})

    def with_proven(self, desired: Desired) -> RolloutState:
        """Return the state after a generation has proven itself.

        The applications that the job has left stay: a reconciler that was paused may yet start a run there.
        """
        return replace(self.with_application(desired.application), proven=desired)

    def with_given_up(self, desired: Desired) -> RolloutState:
        """Return the state after a generation was given up, whichever of its pipelines an operator had stopped."""
        digest = desired.unstopped.digest
        return replace(self, given_up=(*(d for d in self.given_up if d != digest), digest)[-REMEMBERED:])

    def has_given_up(self, desired: Desired) -> bool:
        """Return whether a generation was given up."""
        return bool(self.given_up) and desired.unstopped.digest in self.given_up

    def has_proven(self, desired: Desired) -> bool:
        """Return whether a generation is the newest that has proven itself."""
        return self.proven is not None and self.proven.unstopped == desired.unstopped

    def is_stopped(self, desired: Desired) -> bool:
        """Return whether nothing should run: the declaration stops the job, or an operator all pipelines that would run."""
        would_run = (self.proven if self.has_given_up(desired) else None) or desired
        return desired.is_ended or would_run.is_stopped

    def with_application(self, application: str) -> RolloutState:
        """Return the state before a run is started on an application."""
        others = (a for a in self.applications if a != application)
        return replace(self, applications=(*others, application)[-REMEMBERED:])

    def without_application(self, application: str) -> RolloutState:
        """Return the state after an application was deleted."""
        return replace(self, applications=tuple(a for a in self.applications if a != application))


def state_key(job: str) -> str:
    """Return the key of a job's state in the artifact bucket."""
    return f"reconcile/{job}.json"


def stored_state(store: ObjectStore, job: str) -> RolloutState:
    """Read the state of a job without taking the lease."""
    return _read(store, job)[0]


class Lease:
    """The lease of one reconciler on a job. `holder` is a name that no other reconciler has."""

    def __init__(self, store: ObjectStore, job: str, *, holder: str, clock: Callable[[], float]) -> None:
        self._store, self._job, self._holder, self._clock = store, job, holder, clock
        self._state, self._version = RolloutState(), ""

    @property
    def state(self) -> RolloutState:
        """The state as of the last write."""
        return self._state

    def take(self) -> RolloutState:
        """Take the lease. Raises `LockHeld` if another reconciler holds it and it has not expired.

        A lease that ends later than any lease can was written by a clock that is ahead, and counts as expired. If its holder
        still works, its next conditional write fails.
        """
        state, version = _read(self._store, self._job)
        left_ms = state.until_ms - self._now_ms()
        if state.holder not in (None, self._holder) and 0 < left_ms <= (LEASE_SECONDS + SKEW_SECONDS) * 1000:
            raise self._held(state)
        return self._write(state, version)

    def keep(self, change: Callable[[RolloutState], RolloutState] = lambda state: state) -> RolloutState:
        """Change the state and renew the lease. Raises `LockHeld` if another reconciler has taken it."""
        return self._write(change(self._state), self._version)

    def give_back(self) -> None:
        """Release the lease, unless another reconciler has taken it meanwhile."""
        done = replace(self._state, number=self._state.number + 1, holder=None, until_ms=0)
        self._store.swap(state_key(self._job), done.document(), version=self._version)

    def _write(self, state: RolloutState, version: str | None) -> RolloutState:
        wanted = replace(
            state,
            number=state.number + 1,
            holder=self._holder,
            until_ms=self._now_ms() + LEASE_SECONDS * 1000,
        )
        written = self._store.swap(state_key(self._job), wanted.document(), version=version)
        if written is None:
            raise self._held(_read(self._store, self._job)[0])
        self._state, self._version = wanted, written
        return wanted

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)

    def _held(self, state: RolloutState) -> LockHeld:
        seconds = max(0, (state.until_ms - self._now_ms()) // 1000)
        what = f"{state.holder or 'another reconciler'} holds the lease for {seconds} s at most"
        do = "Wait until it ends; the lease of a crashed reconciler expires"
        return LockHeld(what, where=f"job {self._job}", do=do)


def _read(store: ObjectStore, job: str) -> tuple[RolloutState, str | None]:
    held = store.read(state_key(job))
    if held is None:
        return RolloutState(), None
    members_of: Any = members(held.data, "memory")
    return from_json(RolloutState, members_of, ""), held.version
