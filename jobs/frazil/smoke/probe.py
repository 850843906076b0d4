"""Probes: a question to a deployed environment, its subject, what an answer shows, and all of them."""

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
    """Whether the same probe may show it within minutes, without a person."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a kind of probe shows on AWS, and what the stand-ins show of it."""

    name: str
    shows: str
    stand_ins: str


RUN = Subject(
    name="run",
    shows="EMR Serverless runs the job with its role, network, image and capacity",
    stand_ins="a Spark process of this machine runs it; no image, network or quota",
)
LOG_GROUP = Subject(
    name="log group",
    shows="the log agent writes the driver's log to CloudWatch Logs",
    stand_ins="not shown here: the local cloud writes no log group",
)
LOG_FILES = Subject(
    name="log files",
    shows="EMR Serverless stores the driver's log on S3 with the job's role",
    stand_ins="the local cloud stores the log itself; no key and no policies",
)
DOCUMENTS = Subject(
    name="documents",
    shows="the documents and the release of the desired state can be read and decrypted",
    stand_ins="they can be read; no key and no policies",
)
PROOF = Subject(
    name="proof",
    shows="the newest run writes its proof, and its pipelines commit or have caught up",
    stand_ins="the same; no key and no policies",
)
GENERATION = Subject(name="generation", shows="the reconciler has proven the deployed generation", stand_ins="the same")
RUNTIME = Subject(
    name="runtime",
    shows="the image has the release's Python and Spark, and the driver finds its packages",
    stand_ins="not shown here: Python and Spark are those of this machine",
)
MISSING_OBJECTS = Subject(
    name="missing objects",
    shows="S3 answers the job 404 and not 403 for an object that does not exist",
    stand_ins="not shown here: the local S3 evaluates no policies",
)
SECRET = Subject(
    name="secret",
    shows="the job reads its secret, and the key decrypts it",
    stand_ins="not shown here: the local broker needs no secret",
)
METRICS = Subject(
    name="metrics",
    shows="CloudWatch makes metrics of the driver's log (EMF); all alarms of pipelines need them",
    stand_ins="not shown here: the local cloud makes no metrics of logs",
)
RECONCILER = Subject(
    name="reconciler",
    shows="the function was called in the last hour, without errors, and its log makes metrics",
    stand_ins="not shown here: the function exists, and no calls are counted",
)
SCHEDULES = Subject(
    name="schedules",
    shows="the rule for events and the schedules of both jobs are enabled",
    stand_ins="they are enabled; only a person runs a schedule there",
)
ALARMS = Subject(
    name="alarms",
    shows="alarms exist, and CloudWatch has data for them",
    stand_ins="not shown here: alarms exist, and nothing evaluates them",
)
ALARM_TOPIC = Subject(
    name="alarm topic",
    shows="the topic has its key, all `alarm_emails` are confirmed, and CloudWatch could publish to it",
    stand_ins="not shown here: the topic exists, and alarms publish nothing",
)
TABLES = Subject(
    name="tables",
    shows="the reader role reads each table's entry in Glue and its metadata on S3",
    stand_ins="they can be read; no key and no policies",
)

SUBJECTS = (
    *(RUN, LOG_GROUP, LOG_FILES, DOCUMENTS, PROOF, GENERATION, RUNTIME, MISSING_OBJECTS, SECRET, METRICS, RECONCILER),
    *(SCHEDULES, ALARMS, ALARM_TOPIC, TABLES),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A probe of one subject; `of` is the job that it is about, if it is about one."""

    subject: Subject
    ask: Callable[[], Answer]
    of: str = ""

    @property
    def name(self) -> str:
        """The name of the probe."""
        return f"{self.subject.name} {self.of}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A probe and its answer."""

    probe: Probe
    answer: Answer

    def document(self) -> dict[str, Any]:
        """Return the result as JSON."""
        answer, subject = self.answer, self.probe.subject
        known = {"name": self.probe.name, "outcome": answer.outcome.value, "found": answer.found}
        return {**known, "remedy": answer.remedy or None, "shows": subject.shows, "stand_ins": subject.stand_ins}


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
