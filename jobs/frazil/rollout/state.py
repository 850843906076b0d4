"""Memory: what the reconciler of a job remembers between its runs, and the lease that keeps two of them apart.

Both are one object, `reconcile/<job>.json`, that is changed by conditional writes only: who writes has seen the newest
version, so a reconciler whose lease was taken over cannot write any more, and learns so before it acts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Protocol

from frazil.declaration.constraints import at_least
from frazil.declaration.from_json import VERSION, from_json, members
from frazil.declaration.to_json import canonical, to_json
from frazil.declaration.validation import validate
from frazil.errors import LeaseHeld
from frazil.release.manifest import SHA256
from frazil.rollout.desired import Desired

LEASE_SECONDS = 600
"""Longer than any one call may take with all its attempts: between two writes of the lease there is one call."""
REMEMBERED = 20
"""How many given-up generations and applications are remembered, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What is remembered of a job."""

    number: Annotated[int, "How often it was written: no two writes are equal.", at_least(0)] = 0
    holder: Annotated[str | None, "The reconciler that is at work."] = None
    until_ms: Annotated[int, "Until when the lease is its, milliseconds since 1970.", at_least(0)] = 0
    proven: Annotated[Desired | None, "The newest generation that has proven itself."] = None
    given_up: Annotated[tuple[Annotated[str, SHA256], ...], "Digests of generations that did not."] = ()
    applications: Annotated[tuple[str, ...], "Applications on which runs of the job may be."] = ()

    def __post_init__(self) -> None:
        validate(self)

    def document(self) -> bytes:
        """Its canonical bytes."""
        return canonical({"version": VERSION, **to_json(self)})

    def with_proven(self, desired: Desired) -> Memory:
        """After a generation has proven itself: everything that came before is gone from all other applications."""
        return replace(self, proven=desired, applications=(desired.application,))

    def with_given_up(self, desired: Desired) -> Memory:
        """After a generation was given up, whichever of its pipelines an operator had stopped."""
        digest = desired.unstopped.digest
        return replace(self, given_up=(*(d for d in self.given_up if d != digest), digest)[-REMEMBERED:])

    def has_given_up(self, desired: Desired) -> bool:
        """Whether a generation was given up. Version 0.1.0 remembered it with the stops of that time."""
        return bool({desired.digest, desired.unstopped.digest} & set(self.given_up))

    def has_proven(self, desired: Desired) -> bool:
        """Whether a generation is the one that has proven itself."""
        return self.proven is not None and self.proven.unstopped == desired.unstopped

    def with_application(self, application: str) -> Memory:
        """Before a run is started on an application."""
        others = (a for a in self.applications if a != application)
        return replace(self, applications=(*others, application)[-REMEMBERED:])


class Stored(Protocol):
    """An object as it was read."""

    @property
    def data(self) -> bytes:
        """Its bytes."""
        ...

    @property
    def version(self) -> str:
        """What names exactly these bytes."""
        ...


class Store(Protocol):
    """What the reconciler needs of the artifact bucket."""

    def read(self, key: str) -> Stored | None:
        """An object as it stands; None if there is none."""
        ...

    def swap(self, key: str, data: bytes, *, version: str | None) -> str | None:
        """Replace the version that was read, and return the new one's; None if it is newer by now."""
        ...

    def put_once(self, key: str, source: Path | bytes) -> bool:
        """Write what is never overwritten; whether this call wrote it."""
        ...


def memory_key(job: str) -> str:
    """Where a job's memory is kept in the artifact bucket."""
    return f"reconcile/{job}.json"


def remembered(store: Store, job: str) -> Memory:
    """What is remembered of a job, to be looked at only."""
    return _read(store, job)[0]


class Lease:
    """One reconciler's turn at a job. `holder` is a name that no other reconciler has."""

    def __init__(self, store: Store, job: str, *, holder: str, clock: Callable[[], float]) -> None:
        self._store, self._job, self._holder, self._clock = store, job, holder, clock
        self._memory, self._version = Memory(), ""

    @property
    def memory(self) -> Memory:
        """What is remembered, as of the last write."""
        return self._memory

    def take(self) -> Memory:
        """Begin. Raises `LeaseHeld` while another reconciler's lease runs."""
        memory, version = _read(self._store, self._job)
        if memory.holder not in (None, self._holder) and memory.until_ms > self._now_ms():
            raise self._held(memory)
        return self._write(memory, version)

    def keep(self, change: Callable[[Memory], Memory] = lambda memory: memory) -> Memory:
        """Change what is remembered, and have the lease anew. Raises `LeaseHeld` if it was taken from us."""
        return self._write(change(self._memory), self._version)

    def give_back(self) -> None:
        """End. A lease that another has taken meanwhile is not ours to give back."""
        done = replace(self._memory, number=self._memory.number + 1, holder=None, until_ms=0)
        self._store.swap(memory_key(self._job), done.document(), version=self._version)

    def _write(self, memory: Memory, version: str | None) -> Memory:
        wanted = replace(
            memory,
            number=memory.number + 1,
            holder=self._holder,
            until_ms=self._now_ms() + LEASE_SECONDS * 1000,
        )
        written = self._store.swap(memory_key(self._job), wanted.document(), version=version)
        if written is None:
            raise self._held(_read(self._store, self._job)[0])
        self._memory, self._version = wanted, written
        return wanted

    def _now_ms(self) -> int:
        return round(self._clock() * 1000)

    def _held(self, memory: Memory) -> LeaseHeld:
        seconds = max(0, (memory.until_ms - self._now_ms()) // 1000)
        return LeaseHeld(
            f"{memory.holder or 'another reconciler'} is at work, for {seconds} s at most",
            where=f"job {self._job}",
            do="Let it end; a reconciler that has died is followed when its time has run out",
        )


def _read(store: Store, job: str) -> tuple[Memory, str | None]:
    held = store.read(memory_key(job))
    if held is None:
        return Memory(), None
    members_of: Any = members(held.data, "memory")
    return from_json(Memory, members_of, ""), held.version
