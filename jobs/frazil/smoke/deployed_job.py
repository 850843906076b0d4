"""A deployed job as its probes see it: desired state, runs and proofs, each read once, when a probe first needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property

from frazil.clients.deployed_resources import DeployedResources
from frazil.clients.emr import Emr, Run, RunState
from frazil.clients.object_store import ObjectStore
from frazil.declaration import Environment, Pipeline, Table, parse_document, parse_environment
from frazil.declaration.documents.document import Document
from frazil.errors import InvalidInput
from frazil.release.manifest import Release
from frazil.rollout.desired import INGEST, MAINTAIN, Desired, desired_key, parse_desired
from frazil.rollout.job_run_request import TAG_DESIRED, TAG_JOB, TAG_RELEASE, names_of_runs
from frazil.rollout.readiness import counted, stored_proofs, stored_release
from frazil.rollout.run_proof import Reached, RunProof, is_pattern, of_pattern
from frazil.rollout.state import RolloutState, stored_state
from frazil.rollout.stopped_pipelines import with_stops

GOOD = (RunState.RUNNING, RunState.SUCCESS)
"""The states of a run that shows something."""

ENDED = 8
"""The number of ended runs that are asked for: those of more than half an hour, at a drain every five minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of the environment's resources that no document has, as its deployment declares them."""

    prefix: str
    schedule_group: str
    log_groups: str
    """The beginning of the name of each log group."""
    alarm_topic: str
    alarm_addresses: int
    """The number of addresses that are declared to get alarms."""
    reader_role: str | None
    is_local: bool

    def role(self, what: str) -> str:
        """Return the name of a role, function or rule."""
        return f"{self.prefix}-{what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services that probes ask, and the time."""

    environment: Environment
    names: Names
    store: ObjectStore
    bucket: Callable[[str], ObjectStore]
    emr: Emr
    resources: DeployedResources
    now: datetime
    wait: Callable[[float], None]


class DeployedJob:
    """A job of one kind, whose desired state is that of its group's ingest job."""

    def __init__(self, services: Services, job: str, desired: Desired) -> None:
        self.services, self.job, self.desired = services, job, desired

    @cached_property
    def runs(self) -> Sequence[Run]:
        """The newest runs, oldest first: of the desired generation, or of maintenance by its release.

        Runs of an earlier deployment show nothing of this one.
        """
        tags = {TAG_JOB: self.job}
        if self.is_ingest:
            tags[TAG_DESIRED] = self.desired.digest
        else:
            tags[TAG_RELEASE] = self.desired.release.split("/")[1]
        return self.services.emr.runs(self.desired.application, tags, names=names_of_runs(self.job), ended=ENDED)

    @property
    def is_ingest(self) -> bool:
        """True if it lands records; otherwise it maintains tables."""
        return self.job == self.desired.job

    @property
    def newest(self) -> Run | None:
        """The newest run."""
        return self.runs[-1] if self.runs else None

    @property
    def good(self) -> Run | None:
        """The newest run that runs or has succeeded."""
        return next((run for run in reversed(self.runs) if run.state in GOOD), None)

    def due(self, after: timedelta) -> Run | None:
        """Return the newest good run that was requested so long ago; else the oldest good one.

        Drains follow each other within minutes, so what the newest one still lacks would never be missed.
        """
        good = [run for run in self.runs if run.state in GOOD]
        return next((run for run in reversed(good) if self.age(run) > after), good[0] if good else None)

    def age(self, run: Run) -> timedelta:
        """Return how long ago a run was requested."""
        return self.services.now - run.created_at


class IngestJob(DeployedJob):
    """An ingest job, with its documents and proofs."""

    @classmethod
    def of(cls, services: Services, job: str) -> IngestJob:
        """Return a deployed job, without the pipelines that an operator stopped."""
        held = services.store.read(desired_key(job))
        if held is None:
            raise InvalidInput("its desired state does not exist", where=f"job {job}", do="Deploy the ingestion stack")
        return cls(services, job, with_stops(parse_desired(held.data), services.store))

    @property
    def maintenance(self) -> DeployedJob:
        """The maintenance job of the same group."""
        return DeployedJob(self.services, f"{MAINTAIN}{self.job.removeprefix(INGEST)}", self.desired)

    @cached_property
    def state(self) -> RolloutState:
        """The state that the reconciler has stored."""
        return stored_state(self.services.store, self.job)

    @cached_property
    def release(self) -> Release:
        """The release of the desired generation. Raises `InvalidInput` if it does not exist."""
        return stored_release(self.services.store, self.desired)

    @cached_property
    def environment(self) -> Environment:
        """The environment document that the runs have."""
        return parse_environment(self._document(self.desired.environment))

    @cached_property
    def declared(self) -> Document:
        """The document of pipelines and patterns that the runs have."""
        return parse_document(self._document(self.desired.document))

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        """The pipelines of the document that the runs land."""
        return tuple(p for p in self.declared.pipelines if p.name not in self.desired.stopped)

    @property
    def reached(self) -> dict[str, Reached]:
        """The progress of each pipeline in the newest proof, of each pattern, and of the pipelines of patterns that count."""
        proven = self.proof.pipelines if self.proof else {}
        names = [*(p.name for p in self.pipelines), *map(of_pattern, range(len(self.declared.patterns)))]
        return {name: proven.get(name, Reached.NOTHING) for name in (*names, *sorted(counted(names, proven)))}

    @cached_property
    def proof(self) -> RunProof | None:
        """The newest proof of the desired generation."""
        proofs = stored_proofs(self.services.store, self.job, self.desired.run_prefix)
        return max(proofs, key=lambda proof: (proof.at_ms, proof.run), default=None)

    @property
    def landed(self) -> tuple[Pipeline, ...]:
        """The pipelines of which the newest proof says that they have committed or caught up."""
        good = self._good
        matched = (replace(self.declared.patterns[0].pipeline, name=name) for name in self._matched)
        return (*(p for p in self.pipelines if p.name in good), *matched)

    @property
    def landed_tables(self) -> tuple[tuple[Table, ...], ...]:
        """The table of each pipeline that has landed. With several patterns, the table of a matching topic is one of several."""
        shared = [one.pipeline.table for one in self.declared.patterns]
        matched = (
            tuple(replace(table, identifier=f"{table.namespace}.{name}") for table in shared) for name in self._matched
        )
        return (*((p.table,) for p in self.pipelines if p.name in self._good), *matched)

    @property
    def _good(self) -> list[str]:
        return [name for name, how in self.reached.items() if how in (Reached.COMMITTED, Reached.CAUGHT_UP)]

    @property
    def _matched(self) -> list[str]:
        declared = {pipeline.name for pipeline in self.pipelines}
        return [name for name in self._good if name not in declared and not is_pattern(name)]

    def _document(self, key: str) -> bytes:
        held = self.services.store.read(key)
        if held is None:
            raise InvalidInput(f"the document {key} does not exist", where=f"job {self.job}", do="Deploy again")
        return held.data
