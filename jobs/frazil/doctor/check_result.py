"""A check of one thing that pipelines need: its result, what was found, and the remedy of a failure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

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
