"""A job with a reconciler and all its services in memory: time, EMR Serverless, artifact bucket, tables.

It always checks one rule: no run is started while another of the job has not ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from frazil.clients.emr import Emr, Run
from frazil.declaration import Environment, GlueCatalog, Kafka, Pipeline, Table, Topic, canonical
from frazil.declaration.documents.document import document
from frazil.release.manifest import Architecture, File, Release, Role, Runtime, manifest
from frazil.release.upload import document_key
from frazil.rollout.desired import Desired, desired_document, desired_key
from frazil.rollout.job_run_request import TAG_DESIRED
from frazil.rollout.readiness import Readiness
from frazil.rollout.reconcile import Reconciler
from frazil.rollout.steps import Step
from tests.support.fake_emr import FakeEmr, FakeRun
from tests.support.fake_store import FakeStore
from tests.support.fake_time import FakeTime

BUCKET, JOB = "artifacts", "orders"
DEV = Environment(
    name="dev",
    kafka=Kafka(bootstrap="k:9092"),
    catalog=GlueCatalog(region="eu-central-1", warehouse="s3://frazil-dev-tables/lake"),
    artifact_bucket=BUCKET,
)
PIPELINES = [Pipeline(topic=Topic(name, value="text"), table=Table(f"shop.{name}")) for name in (JOB, "users")]
WRITTEN = canonical(document(PIPELINES))
DOCUMENT = document_key(WRITTEN)
ENVIRONMENT = f"documents/{'e' * 64}.json"


def release(version: str = "1.0.0") -> Release:
    files = [
        (f"frazil-{version}.zip", Role.PACKAGE),
        ("bill-of-materials.cdx.json", Role.BILL),
        ("environment-x86_64.tar.gz", Role.ENVIRONMENT),
        ("iceberg-aws-bundle-1.11.0.jar", Role.JAR),
        ("iceberg-spark-runtime-4.1_2.13-1.11.0.jar", Role.JAR),
        ("ingest.py", Role.INGEST),
        ("maintain.py", Role.MAINTAIN),
        ("reconciler.zip", Role.RECONCILER),
    ]
    return Release(
        version=version,
        git_commit="c" * 40,
        is_dirty=False,
        label="emr-spark-8.1.0",
        architecture=Architecture.X86_64,
        runtime=Runtime(
            python="3.11", spark="4.1.1", iceberg="1.11.0", classes=("org.apache.iceberg.aws.s3.S3FileIO",)
        ),
        files=tuple(
            File(name=name, role=role, sha256=f"{number}" * 64, size_bytes=number)
            for number, (name, role) in enumerate(sorted(files))
        ),
    )


def desired(generation: int = 1, **given: Any) -> Desired:
    return Desired(
        **{
            "job": JOB,
            "generation": generation,
            "label": "emr-spark-8.1.0",
            "application": "app1",
            "release": release().key,
            "document": DOCUMENT,
            "environment": ENVIRONMENT,
            "execution_role": "arn:aws:iam::123456789012:role/ingest",
            "log_uri": "s3://logs/jobs/",
            **given,
        }
    )


class Killed(BaseException):
    """The reconciler's process died here."""


@dataclass
class Calls:
    """A counter of external calls. `dies_at` is the number of the call before (or after) which the process dies.

    A dead process makes no further calls. `at` runs an action of another process before a call.
    """

    dies_at: int | None = None
    dies_after: bool = False
    at: dict[int, Callable[[], None]] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)
    is_dead: bool = False

    def __call__(self, name: str, call: Callable[..., Any], /, *said: Any, **named: Any) -> Any:
        number = len(self.made)
        if self.is_dead:
            raise Killed
        self.made.append(name)
        self.at.get(number, lambda: None)()
        if number == self.dies_at and not self.dies_after:
            self.is_dead = True
            raise Killed
        answer = call(*said, **named)
        if number == self.dies_at:
            self.is_dead = True
            raise Killed
        return answer


class Through:
    """An object whose calls are counted."""

    def __init__(self, inner: Any, calls: Calls) -> None:
        self._inner, self._calls = inner, calls

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._inner, name)
        return lambda *said, **named: self._calls(name, inner, *said, **named)


@dataclass
class World:
    time: FakeTime = field(default_factory=FakeTime)
    store: FakeStore = field(default_factory=FakeStore)
    readiness: dict[int, Readiness] = field(default_factory=dict)
    """By generation; what is not said commits as soon as one of its runs runs."""
    failing: set[int] = field(default_factory=set)
    """Generations whose runs die by themselves, five minutes after their start."""
    told: list[Step] = field(default_factory=list)
    emr: FakeEmr = field(init=False)

    def __post_init__(self) -> None:
        self.emr = FakeEmr(self.time.clock, applications={"app1": [], "app2": []}, started=self._started)
        for version in ("1.0.0", "2.0.0"):
            self.store.put(release(version).key, manifest(release(version)))
        self.store.put(DOCUMENT, WRITTEN)
        self.store.put(ENVIRONMENT, b"{}")

    def _started(self, request: dict[str, Any]) -> None:
        """Check the rule."""
        assert self.emr.active() == [], "a run was started beside another"

    def want(self, wanted: Desired) -> Desired:
        """Write the desired state as Terraform does."""
        self.store.put(desired_key(JOB), desired_document(wanted))
        return wanted

    def documented(self, *pipelines: Pipeline) -> str:
        """Store the document of these pipelines; return its key."""
        written = canonical(document(pipelines))
        self.store.put(document_key(written), written)
        return document_key(written)

    def reconciler(self, calls: Calls | None = None) -> Reconciler:
        counted = calls or Calls()
        return Reconciler(
            store=Through(self.store, counted),
            bucket=BUCKET,
            emr=_Ending(Emr(Through(self.emr, counted), clock=self.time.clock), self),
            readiness=self,
            clock=self.time.clock,
            wait=self.time.sleep,
            on_step=self.told.append,
            look_seconds=60,
        )

    def of(self, wanted: Desired) -> Readiness:
        """Return the readiness that the test chose."""
        if wanted.generation in self.readiness:
            return self.readiness[wanted.generation]
        has_run = any(
            run.tags.get(TAG_DESIRED) == wanted.digest and run.state(self.time.now) in ("RUNNING", "SUCCESS")
            for runs in self.emr.applications.values()
            for run in runs
        )
        return Readiness.COMMITTED if has_run else Readiness.NOTHING_YET

    def run(self, calls: Calls | None = None, *, holder: str = "a", patience_seconds: float = 86_400) -> Desired | None:
        return self.reconciler(calls).reconcile(JOB, holder=holder, patience_seconds=patience_seconds)

    def steps(self) -> list[str]:
        """Return the steps that were taken, without the waiting."""
        return [type(step).__name__ for step in self.told if type(step).__name__ != "Wait"]

    def running(self) -> FakeRun:
        """Return the one run that has not ended."""
        (run,) = self.emr.active()
        return run

    def runs_of(self, wanted: Desired) -> list[FakeRun]:
        every = [run for runs in self.emr.applications.values() for run in runs]
        return [run for run in every if run.tags.get(TAG_DESIRED) == wanted.digest]

    def settle(self) -> None:
        self.run()
        self.told.clear()


class _Ending:
    """Frazil's client, with runs whose end is chosen in advance."""

    def __init__(self, emr: Emr, world: World) -> None:
        self._emr, self._world = emr, world

    def runs(self, *said: Any, **named: Any) -> Sequence[Run]:
        self._foretell()
        return self._emr.runs(*said, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._emr, name)

    def _foretell(self) -> None:
        world = self._world
        for run in world.emr.active():
            fails = int(run.tags.get("frazil:generation", 0)) in world.failing
            if fails and run.admitted is not None and world.time.now > run.admitted + 300:
                run.killed = world.time.now


def replaced(wanted: Desired, **changes: Any) -> Desired:
    """Return the next generation."""
    return dataclasses.replace(wanted, generation=wanted.generation + 1, **changes)
