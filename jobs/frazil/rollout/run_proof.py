"""The proof of what the driver of a run has landed, an object that it writes itself: `reconcile/<job>/proof/<run>.json`.

The reconciler judges a generation by these objects. So it needs neither Kafka, nor the catalog, nor a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from frazil.declaration.checks.constraints import at_least, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.validation import FrozenMap
from frazil.declaration.documents.from_json import VERSION, from_json, members
from frazil.declaration.documents.to_json import canonical, to_json

_RUN = re.compile(r"([a-z][a-z0-9-]*)-([1-9][0-9]*)-([0-9a-f]{8})-[0-9a-f]+")
"""A run's name: job, generation, the beginning of its digest, and an id (`Desired.run_prefix`)."""


def of_pattern(index: int) -> str:
    """Return the name under which a pattern of topics reports, by its place in the document."""
    return f"patterns[{index}]"


def is_pattern(name: str) -> bool:
    """Return whether a pattern reports under a name, see `of_pattern`; no pipeline has such a name."""
    return name.startswith("patterns[")


class Reached(StrEnum):
    """The progress of a pipeline in one run.

    `committed`: the run has committed records. `caught_up`: it has not, and the table holds all records of its topic.
    `unavailable`: a service does not answer, so the driver cannot know. `nothing`: none of these.
    """

    COMMITTED = "committed"
    CAUGHT_UP = "caught_up"
    UNAVAILABLE = "unavailable"
    NOTHING = "nothing"


@declared
class Driver:
    """Facts that a driver found at its start, for `frazil deploy smoke`."""

    runtime: Annotated[Mapping[str, str], "The versions that it runs on, by name."] = FrozenMap()
    missing: Annotated[Mapping[str, str], "What each bucket answers for an object that does not exist."] = FrozenMap()


@declared
class RunProof:
    """The proof of one run."""

    run: Annotated[str, "The run's name, as in the ledger.", matching("[a-z0-9-]{1,140}", "a run's name", "Write it")]
    generation: Annotated[int, "The generation that it was started from.", at_least(1)]
    digest: Annotated[
        str, "The beginning of that generation's digest.", matching("[0-9a-f]{8}", "a digest", "Write 8 digits")
    ]
    at_ms: Annotated[int, "When it was written, in milliseconds since 1970.", at_least(0)]
    pipelines: Annotated[Mapping[str, Reached], "How far each pipeline has come."]
    began_ms: Annotated[int | None, "When its driver began, in milliseconds since 1970.", at_least(0)] = None
    reported: Annotated[
        Mapping[str, Annotated[int, at_least(0)]], "When each pipeline has last reported, in milliseconds since 1970."
    ] = FrozenMap()
    driver: Annotated[Driver | None, "What the driver found at its start."] = None

    def document(self) -> bytes:
        """Return the proof as canonical JSON."""
        return canonical({"version": VERSION, **to_json(self)})


def parse_proof(source: bytes) -> RunProof:
    """Parse a proof. Raises `InvalidDeclaration` with every problem."""
    return from_json(RunProof, members(source, "proof"), "")


def proof_prefix(job: str) -> str:
    """Return the prefix of the proofs of a job's runs in the artifact bucket."""
    return f"reconcile/{job}/proof/"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunName:
    """The parts of a run's name."""

    run: str
    job: str
    generation: int
    digest: str

    @classmethod
    def of(cls, run: str) -> RunName | None:
        """Parse the name of a run; None if no reconciler started it."""
        found = _RUN.fullmatch(run)
        return cls(run=run, job=found[1], generation=int(found[2]), digest=found[3]) if found else None

    @property
    def proof_key(self) -> str:
        """The key of its proof in the artifact bucket."""
        return f"{proof_prefix(self.job)}{self.run}.json"

    def proof(self, pipelines: Mapping[str, Reached], *, at_ms: int, **found: Any) -> RunProof:
        """Return its proof, written at `at_ms`. `found` are further fields of it."""
        own: dict[str, Any] = {"run": self.run, "generation": self.generation, "digest": self.digest}
        return RunProof(**own, at_ms=at_ms, pipelines=dict(pipelines), **found)
