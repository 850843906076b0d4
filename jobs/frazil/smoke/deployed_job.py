"""A deployed job as its probes see it: desired state, runs and proofs, each read once, when a probe first needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from frazil.clients.deployed_resources import DeployedResources
from frazil.clients.emr import Emr, Run, RunState
from frazil.clients.object_store import ObjectStore
from frazil.declaration import Environment, Pipeline, parse, parse_environment
from frazil.errors import InvalidInput
from frazil.release.manifest import Release
from frazil.rollout.desired import INGEST, MAINTAIN, Desired, desired_key, parse_desired
from frazil.rollout.job_run_request import TAG_DESIRED, TAG_JOB, TAG_RELEASE, names_of_runs
from frazil.rollout.readiness import stored_proofs, stored_release
from frazil.rollout.run_proof import Reached, RunProof
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
    def pipelines(self) -> tuple[Pipeline, ...]:
        """The pipelines that the runs land."""
        return tuple(p for p in parse(self._document(self.desired.document)) if p.name not in self.desired.stopped)

    @cached_property
    def proof(self) -> RunProof | None:
        """The newest proof of the desired generation."""
        proofs = stored_proofs(self.services.store, self.job, self.desired.run_prefix)
        return max(proofs, key=lambda proof: (proof.at_ms, proof.run), default=None)

    @property
    def landed(self) -> tuple[Pipeline, ...]:
        """The pipelines of which the newest proof says that they have committed or caught up."""
        reached = self.proof.pipelines if self.proof else {}
        return tuple(p for p in self.pipelines if reached.get(p.name) in (Reached.COMMITTED, Reached.CAUGHT_UP))

    def _document(self, key: str) -> bytes:
        held = self.services.store.read(key)
        if held is None:
            raise InvalidInput(f"the document {key} does not exist", where=f"job {self.job}", do="Deploy again")
        return held.data
