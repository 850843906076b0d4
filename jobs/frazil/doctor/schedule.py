"""Steps in parallel, each with a deadline: a service that hangs costs its own check, and never the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace

from frazil.clients.daemon_threads import begun
from frazil.doctor.check_result import Check, Result
from frazil.errors import FrazilError
from frazil.exit_codes import Exit

PARALLEL = 24
"""Steps at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One check, and the names of the checks that must not have failed before it."""

    name: str
    work: Callable[[], Check]
    after: tuple[str, ...] = ()


@dataclass(slots=True)
class _Running:
    step: Step
    answer: Future[Check]
    until: float


@dataclass(slots=True)
class _Schedule:
    """What is done, what runs, and what waits."""

    seconds: float
    end: float
    clock: Callable[[], float]
    waiting: list[Step]
    running: list[_Running] = field(default_factory=list)
    done: dict[str, Check] = field(default_factory=dict)

    def advance(self) -> None:
        """Take answers, end what is late, skip what cannot be checked, begin what can; wait if nothing of that is left."""
        now = self.clock()
        for one in list(self.running):
            if one.answer.done() or now >= one.until:
                self.running.remove(one)
                self.done[one.step.name] = _check_of(one.step, one.answer, self.seconds)
        for step in list(self.waiting):
            failed = next((name for name in step.after if self._blocks(name)), None)
            if failed is not None:
                self._settle(step, Check.skipped(step.name, f"not checked: {failed} failed"))
            elif now >= self.end:
                self._settle(step, _late(step.name, "the time for all checks was over before it began"))
            elif len(self.running) < PARALLEL and all(name in self.done for name in step.after):
                self.waiting.remove(step)
                self.running.append(
                    _Running(step, begun(step.work, name=f"doctor-{step.name}"), min(now + self.seconds, self.end))
                )
        if self.running:
            first = min(one.until for one in self.running)
            wait([one.answer for one in self.running], max(first - self.clock(), 0.0), "FIRST_COMPLETED")

    def _blocks(self, name: str) -> bool:
        check = self.done.get(name)
        return check is not None and (check.result is Result.FAILED or check.found.startswith("not checked"))

    def _settle(self, step: Step, check: Check) -> None:
        self.waiting.remove(step)
        self.done[step.name] = check


def examined(
    steps: Sequence[Step], *, seconds: float, total_seconds: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[Check]:
    """Yield the check of each step, in their order, as soon as it and those before it are known.

    A step that takes longer than `seconds` fails; all end within `total_seconds`. What hangs goes on in a thread that ends with
    the process. An error is a failed check. A check that no step has blocks nothing.
    """
    known = {step.name for step in steps}
    waiting = [replace(step, after=tuple(name for name in step.after if name in known)) for step in steps]
    schedule = _Schedule(seconds, clock() + total_seconds, clock, waiting)
    for step in steps:
        while step.name not in schedule.done:
            schedule.advance()
        yield schedule.done[step.name]


def _check_of(step: Step, answer: Future[Check], seconds: float) -> Check:
    """Return the check of an answer: its error is a failed check, as the other checks count all the same."""
    if not answer.done():
        return _late(step.name, f"no answer within {seconds:g} s")
    error = answer.exception()
    if error is None:
        return answer.result()
    if isinstance(error, FrazilError):
        return Check.of_error(step.name, error)
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return Check.failed(step.name, what, "This is a defect of Frazil; please report it", exit=Exit.FAULT)


def _late(name: str, found: str) -> Check:
    return Check.failed(name, found, "Check the network and the service, then run the command again")
