"""The proof of a run: what its driver has landed, from the events of its pipelines, for the reconciler."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from frazil.errors import FrazilError
from frazil.ingest.reporting.events import Event, Sink
from frazil.rollout.run_proof import Driver, Reached, RunName, of_pattern

if TYPE_CHECKING:
    from frazil.clients.object_store import ObjectStore

RETRY_SECONDS = 30.0
"""The wait after a failed write."""
AGAIN_SECONDS = 300.0
"""The time between two writes of a proof without changes: it shows which pipelines report, and it does not expire."""
LAST_SECONDS = 20.0
"""The longest wait for the last write at the end of a run."""
_SET_BACK = {
    Event.BATCH_RETRIED,
    Event.PIPELINE_RETRIED,
    Event.PIPELINE_FAILED,
    Event.DECISION_REQUIRED,
    Event.FENCED,
    Event.SCHEMA_INCOMPATIBLE,
}
"""Events after which a pipeline that had caught up may lack records."""


class Landed:
    """The progress of each pipeline, and of those that join if there is a pattern. Safe to share between threads."""

    def __init__(self, pipelines: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self._reached = dict.fromkeys(pipelines, Reached.NOTHING)
        self._reported: dict[str, int] = {}
        self._has_patterns = of_pattern(0) in self._reached

    def note(self, event: Mapping[str, Any]) -> bool:
        """Note an event of a pipeline. Return whether it changes the proof, as its first one does: the pipeline has its turn."""
        name, reached = str(event.get("pipeline", "")), _reached(event)
        with self._lock:
            if self._has_patterns and re.fullmatch("[a-z][a-z0-9_]*", name):
                self._reached.setdefault(name, Reached.NOTHING)
            is_first = name in self._reached and name not in self._reported
            if name in self._reached:
                self._reported[name] = round(event["time"] * 1000)
            before = self._reached.get(name)
            # A commit of records is evidence for good.
            if reached is None or before in (None, Reached.COMMITTED, reached):
                return is_first
            self._reached[name] = reached
            return True

    def all(self) -> dict[str, Reached]:
        """Return a copy of all."""
        with self._lock:
            return dict(self._reached)

    def reported(self) -> dict[str, int]:
        """Return when each pipeline has last reported, in milliseconds since 1970."""
        with self._lock:
            return dict(self._reported)


def _reached(event: Mapping[str, Any]) -> Reached | None:
    """Return how far an event shows its pipeline to be; None if it says nothing about that."""
    match event["event"]:
        case Event.BATCH_COMMITTED:
            return Reached.COMMITTED
        case Event.TOPICS_MATCHED:
            return Reached.CAUGHT_UP
        case Event.IDLE:
            return Reached.NOTHING if event.get("lag") else Reached.CAUGHT_UP
        case Event.SERVICE_UNAVAILABLE:
            return Reached.UNAVAILABLE
        case name if name in _SET_BACK:
            return Reached.NOTHING
    return None


@contextmanager
def proving(
    sink: Sink,
    pipelines: Iterable[str],
    *,
    run: str,
    store: ObjectStore | None,
    clock: Callable[[], float],
    retry_seconds: float = RETRY_SECONDS,
    again_seconds: float = AGAIN_SECONDS,
    driver: Driver | None = None,
) -> Iterator[Sink]:
    """Yield a sink that also keeps the proof of `run` in `store`. It changes nothing for a run that no reconciler started.

    A thread of its own writes the proof at the start, after each change and each five minutes, at the latest at the end. A
    write that fails is reported and tried again; it never ends the run.
    """
    name = RunName.of(run)
    if name is None or store is None:
        yield sink
        return
    landed, writer, began_ms = Landed(pipelines), _Writer(retry_seconds, again_seconds), round(clock() * 1000)

    def note(event: Mapping[str, Any]) -> None:
        if landed.note(event):
            writer.wake()
        sink(event)

    def write() -> bool:
        try:
            proof = name.proof(
                landed.all(),
                at_ms=round(clock() * 1000),
                began_ms=began_ms,
                reported=landed.reported(),
                driver=driver,
            )
            store.put(name.proof_key, proof.document())
        # Any other error too: the thread would end unseen, and a release without proofs is rolled back.
        except Exception as error:  # noqa: BLE001
            message = str(error) if isinstance(error, FrazilError) else f"{type(error).__name__}: {error}"
            unwritten = {"event": Event.PROOF_UNWRITTEN.value, "run": run, "message": message}
            sink({"time": round(clock(), 3), **unwritten})
            return False
        return True

    writer.start(write)
    try:
        yield note
    finally:
        writer.close()


class _Writer:
    """A thread that calls `write` after each `wake`, one call for several of them, and after a time without any."""

    def __init__(self, retry_seconds: float, again_seconds: float) -> None:
        self._retry_seconds, self._again_seconds = retry_seconds, again_seconds
        self._changed = threading.Condition()
        self._is_due, self._is_closing = True, False
        self._thread: threading.Thread | None = None

    def start(self, write: Callable[[], bool]) -> None:
        """Start the thread, which writes at once."""
        self._thread = threading.Thread(target=self._run, args=(write,), daemon=True, name="proof")
        self._thread.start()

    def wake(self) -> None:
        """Have the thread write."""
        with self._changed:
            self._is_due = True
            self._changed.notify_all()

    def close(self) -> None:
        """Wait for the last write, but not for long."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(LAST_SECONDS)

    def _run(self, write: Callable[[], bool]) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_due or self._is_closing, timeout=self._again_seconds)
                if self._is_closing and not self._is_due:
                    return
                self._is_due = False
            if write():
                continue
            with self._changed:
                if self._is_closing:
                    return
                self._is_due = True
                self._changed.wait_for(lambda: self._is_closing, timeout=self._retry_seconds)
