"""Probes: questions to a deployed environment, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from frazil.errors import FrazilError
from frazil.exit_codes import Exit, exit_of


class Outcome(StrEnum):
    """The outcome of a probe.

    `SHOWN`: a run or a resource proves it. `NOT_YET`: nothing proves it so far, and a later probe may. `NOT_HERE`: this
    environment, or these credentials, cannot prove it. `FAILED`: it does not work.
    """

    SHOWN = "shown"
    NOT_YET = "not yet"
    NOT_HERE = "not shown here"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a probe. Only a failure has an exit code other than success."""

    outcome: Outcome
    found: str
    remedy: str = ""
    exit: Exit = Exit.SUCCESS
    is_awaited: bool = False
    """True if the same probe may show it within minutes, without a person."""
    name: str = ""
    """The name of the probe."""

    @classmethod
    def shown(cls, found: str) -> Answer:
        """Return the answer of what is proven."""
        return cls(outcome=Outcome.SHOWN, found=found)

    @classmethod
    def not_yet(cls, found: str, remedy: str = "", *, is_awaited: bool = True) -> Answer:
        """Return the answer of what a later probe may prove."""
        return cls(outcome=Outcome.NOT_YET, found=found, remedy=remedy, is_awaited=is_awaited)

    @classmethod
    def not_here(cls, why: str) -> Answer:
        """Return the answer of what cannot be proven here."""
        return cls(outcome=Outcome.NOT_HERE, found=why)

    @classmethod
    def failed(cls, found: str, remedy: str) -> Answer:
        """Return the answer of what does not work."""
        return cls(outcome=Outcome.FAILED, found=found, remedy=remedy, exit=Exit.DECISION_REQUIRED)

    @classmethod
    def of_error(cls, error: FrazilError) -> Answer:
        """Return the failed answer that an error is."""
        found = f"{error.where}: {error.what}" if error.where else error.what
        return cls(outcome=Outcome.FAILED, found=found, remedy=error.do, exit=exit_of(error))

    def document(self) -> dict[str, Any]:
        """Return the answer as JSON."""
        return {"name": self.name, "outcome": self.outcome.value, "found": self.found, "remedy": self.remedy or None}


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe: its subject in docs/deploy.md, which says what it shows, and the job that it is about, if it is about one."""

    name: str
    ask: Callable[[], Answer]


def answers(probes: Iterable[Probe]) -> Iterator[Answer]:
    """Yield the answer of each probe. An error is a failed answer, as the other probes count all the same."""
    for probe in probes:
        try:
            answer = probe.ask()
        except FrazilError as error:
            answer = Answer.of_error(error)
        except Exception as error:  # noqa: BLE001 - a defect of one probe hides no other
            what = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
            do = "This is a defect of Frazil; please report it"
            answer = Answer(outcome=Outcome.FAILED, found=what, remedy=do, exit=Exit.FAULT)
        yield replace(answer, name=probe.name)
