"""A check of one thing that pipelines need, and steps that run in parallel, each with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from frazil.clients.daemon_threads import begun
from frazil.declaration import InvalidDeclaration
from frazil.errors import FrazilError
from frazil.exit_codes import Exit, exit_of, worst


class Result(StrEnum):
    """The result of a check.

    `OK`: it is as it should be. `WARNING`: pipelines run, and something may surprise. `FAILED`: they do not run. `SKIPPED`: it
    was not checked, as an earlier check failed or nothing needs it.
    """

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one check found. `exit` is the exit code of a failure, `columns` are names and types that a topic would become."""

    name: str
    result: Result
    found: str
    remedy: str = ""
    exit: Exit = Exit.SUCCESS
    columns: tuple[tuple[str, str], ...] = ()

    @classmethod
    def ok(cls, name: str, found: str, *, columns: tuple[tuple[str, str], ...] = ()) -> Check:
        """Return the check of a thing that is as it should be."""
        return cls(name=name, result=Result.OK, found=found, columns=columns)

    @classmethod
    def warning(cls, name: str, found: str, remedy: str, *, columns: tuple[tuple[str, str], ...] = ()) -> Check:
        """Return the check of a thing that may surprise."""
        return cls(name=name, result=Result.WARNING, found=found, remedy=remedy, columns=columns)

    @classmethod
    def failed(cls, name: str, found: str, remedy: str, *, exit: Exit = Exit.SERVICE_UNAVAILABLE) -> Check:
        """Return the check of a thing without which pipelines do not run."""
        return cls(name=name, result=Result.FAILED, found=found, remedy=remedy, exit=exit)

    @classmethod
    def skipped(cls, name: str, why: str) -> Check:
        """Return the check of a thing that was not checked."""
        return cls(name=name, result=Result.SKIPPED, found=why)

    @classmethod
    def of_error(cls, name: str, error: FrazilError) -> Check:
        """Return the failed check that an error of Frazil is: its place and fact, and its remedy."""
        if isinstance(error, InvalidDeclaration) and error.problems:
            first, more = error.problems[0], len(error.problems) - 1
            others = f"; {more} more: `frazil check --env NAME` lists all" if more else ""
            return cls.failed(name, f"{first.path}: {first.what}", first.do + others, exit=exit_of(error))
        found = f"{error.where}: {error.what}" if error.where and error.where != name else error.what
        return cls.failed(name, found, error.do, exit=exit_of(error))

    def document(self) -> dict[str, Any]:
        """Return the check as JSON."""
        columns = [{"name": name, "type": kind} for name, kind in self.columns]
        known = {"name": self.name, "result": self.result.value, "found": self.found, "remedy": self.remedy or None}
        return {**known, "columns": columns} if columns else known


def exit_of_checks(checks: Iterable[Check]) -> Exit:
    """Return the exit code of the worst failure; success if there is none. Warnings fail nothing."""
    return worst(check.exit for check in checks if check.result is Result.FAILED)


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
