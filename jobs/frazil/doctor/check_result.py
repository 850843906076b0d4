"""A check of one thing that pipelines need, and steps that run in parallel, each with a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from frazil.clients.daemon_threads import begun
from frazil.declaration import InvalidDeclaration
from frazil.errors import FrazilError
from frazil.exit_codes import Exit, exit_of


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
    """The result of one check. `exit` is the exit code of a failure, `columns` are names and types that a topic would become."""

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


PARALLEL = 24
"""Steps at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One check, and the names of earlier checks that must not have failed."""

    name: str
    work: Callable[[], Check]
    after: tuple[str, ...] = ()


def examined(steps: Sequence[Step], *, seconds: float, total_seconds: float) -> Iterator[Check]:
    """Yield the check of each step, in their order, as soon as it and those before it are known.

    A step that takes longer than `seconds` fails; all end within `total_seconds`. What hangs goes on in a thread that ends with
    the process. An error is a failed check. A check that no earlier step has blocks nothing.
    """
    end, free = time.monotonic() + total_seconds, threading.Semaphore(PARALLEL)
    checks: dict[str, Future[Check]] = {}

    def check(step: Step, before: Sequence[Future[Check]]) -> Check:
        for earlier in (one.result() for one in before):
            if earlier.result is Result.FAILED or earlier.found.startswith("not checked"):
                return Check.skipped(step.name, f"not checked: {earlier.name} failed")
        if not free.acquire(timeout=max(end - time.monotonic(), 0.0)) or time.monotonic() >= end:
            return _late(step.name, "the time for all checks was over before it began")
        answer = begun(step.work, name=f"doctor-{step.name}")
        wait([answer], min(seconds, end - time.monotonic()))
        free.release()
        return _check_of(step, answer, seconds)

    for step in steps:
        before = [checks[name] for name in step.after if name in checks]
        checks[step.name] = begun(partial(check, step, before), name=f"doctor-check-{step.name}")
    yield from (one.result() for one in checks.values())


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
