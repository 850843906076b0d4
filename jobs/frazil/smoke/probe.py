"""Probes: questions to a deployed environment, their subjects and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from frazil.errors import FrazilError
from frazil.exit_codes import Exit, exit_of, worst


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


class Subject(StrEnum):
    """The subject of a probe, in the order of docs/deploy.md, which says what each of them shows."""

    RUN = "run"
    LOG_GROUP = "log group"
    LOG_FILES = "log files"
    DOCUMENTS = "documents"
    PROOF = "proof"
    GENERATION = "generation"
    RUNTIME = "runtime"
    MISSING_OBJECTS = "missing objects"
    SECRET = "secret"  # noqa: S105 - a word
    METRICS = "metrics"
    RECONCILER = "reconciler"
    SCHEDULES = "schedules"
    ALARMS = "alarms"
    ALARM_TOPIC = "alarm topic"
    TABLES = "tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe of one subject; `of` is the job that it is about, if it is about one."""

    subject: Subject
    ask: Callable[[], Answer]
    of: str = ""

    @property
    def name(self) -> str:
        """The name of the probe."""
        return f"{self.subject} {self.of}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A probe and its answer."""

    probe: Probe
    answer: Answer

    def document(self) -> dict[str, Any]:
        """Return the result as JSON."""
        answer, name = self.answer, self.probe.name
        return {"name": name, "outcome": answer.outcome.value, "found": answer.found, "remedy": answer.remedy or None}


def results(probes: Iterable[Probe]) -> Iterator[Result]:
    """Yield the result of each probe. An error is a failed answer, as the other probes count all the same."""
    for probe in probes:
        try:
            answer = probe.ask()
        except FrazilError as error:
            answer = Answer.of_error(error)
        except Exception as error:  # noqa: BLE001 - a defect of one probe hides no other
            what = f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
            do = "This is a defect of Frazil; please report it"
            answer = Answer(outcome=Outcome.FAILED, found=what, remedy=do, exit=Exit.FAULT)
        yield Result(probe=probe, answer=answer)


def exit_of_results(found: Iterable[Result]) -> Exit:
    """Return the exit code of the worst failure. What is not shown fails nothing."""
    return worst(result.answer.exit for result in found if result.answer.outcome is Outcome.FAILED)
