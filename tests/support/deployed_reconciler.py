"""A deployed job, minute by minute: drivers that write proofs, the schedules, the events of EMR Serverless, and the passes.

Events are repeated and come in another order than they happened, as EventBridge may deliver them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from frazil.errors import FrazilError
from frazil.rollout.function_settings import EXECUTION, Settings
from frazil.rollout.readiness import ProofReadiness
from frazil.rollout.reconcile import Reconciler
from frazil.rollout.reconciler_function import answer
from frazil.rollout.run_proof import Reached, RunName
from frazil.rollout.state import LEASE_SECONDS
from tests.support.fake_emr import FakeRun
from tests.support.rollout_world import BUCKET, JOB, PIPELINES, Calls, Killed, World

NAMES = tuple(pipeline.name for pipeline in PIPELINES)
TICK_MINUTES, DRAIN_MINUTES = 5, 15
Driver = Callable[[str], Reached | None]
"""How far a driver has come with a pipeline; None: it had no turn yet."""


def lands(topics: Mapping[str, bool]) -> Driver:
    """Return a good driver: it lands the topics that have records (True), and finds nothing in the others."""
    return lambda name: Reached.COMMITTED if topics[name] else Reached.CAUGHT_UP


def lands_nothing(topics: Mapping[str, bool]) -> Driver:
    """Return a driver of a bad release: it lands no record, and finds nothing in quiet topics."""
    return lambda name: Reached.NOTHING if topics[name] else Reached.CAUGHT_UP


def without_services(name: str) -> Reached:
    """Return what a driver knows while Kafka does not answer."""
    return Reached.UNAVAILABLE


@dataclass
class Deployed:
    """The deployed reconciler of a `World`. `drivers` are those of each generation; None: its driver crashes at its start."""

    world: World
    drivers: dict[int, Driver | None]
    fails: set[int] = field(default_factory=set)
    """Generations whose drains end with an error."""
    hangs: set[int] = field(default_factory=set)
    """Generations whose drains never end by themselves."""
    names: tuple[str, ...] = NAMES
    """The names of the proofs of all runs."""
    seed: int = 1
    calls_of_pass: Callable[[], Calls] = Calls
    errors: list[str] = field(default_factory=list)
    minute: int = 0
    _seen: dict[str, str] = field(default_factory=dict)
    _proven: set[str] = field(default_factory=set)
    _late: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def live(self, minutes: int) -> None:
        """Let time pass, with all that happens in it."""
        for _ in range(minutes):
            self.world.time.sleep(60)
            self.minute += 1
            self._drive()
            self._deliver()
            if self.minute % TICK_MINUTES == 0:
                self.reconcile({})
            if self.minute % DRAIN_MINUTES == 0:
                self.reconcile({EXECUTION: f"execution-{self.minute}"})

    def live_with_a_death(self, number: int, *, dies_after: bool) -> bool:
        """Let a pass die at its call `number`, and the next passes end what it left. Return whether one died."""
        died = list[bool]()
        self.calls_of_pass = lambda: Calls() if died else Calls(dies_at=number, dies_after=dies_after)
        try:
            self.live(30)
        except Killed:
            died.append(True)
        self.live(LEASE_SECONDS // 60 + 60)
        return bool(died)

    def reconcile(self, event: Mapping[str, Any], holder: str = "function") -> None:
        """Make a pass as the function does. An error is counted, as the service counts it."""
        reconciler: Reconciler = self.world.reconciler(self.calls_of_pass())
        reconciler = replace(reconciler, readiness=ProofReadiness(self.world.store))
        settings = Settings(job=JOB, bucket=BUCKET, metrics_namespace="Frazil/test")
        try:
            answer(event, settings, reconciler, holder=holder, log=lambda line: None)
        except FrazilError as error:
            self.errors.append(type(error).__name__)

    def runs(self) -> list[FakeRun]:
        """Return all runs, the oldest first."""
        every = [run for runs in self.world.emr.applications.values() for run in runs]
        return sorted(every, key=lambda run: (run.born, run.id))

    def generations(self) -> list[int]:
        """Return the generations of all runs, the oldest first."""
        return [int(run.tags["frazil:generation"]) for run in self.runs()]

    def _drive(self) -> None:
        """Let each driver that has begun write its proof, or crash."""
        now = self.world.time.now
        for run in self.runs():
            generation, state = int(run.tags["frazil:generation"]), run.state(now)
            driver = self.drivers[generation]
            run.hangs = generation in self.hangs
            if run.admitted is None or now < run.admitted + 180 or (state != "RUNNING" and run.id in self._proven):
                continue
            is_over = driver is None or (not run.is_streaming and generation in self.fails)
            if is_over and run.killed is None and state == "RUNNING":
                run.killed = now
            if driver is not None and state in ("RUNNING", "SUCCESS"):
                arguments = run.request["jobDriver"]["sparkSubmit"]["entryPointArguments"]
                name = RunName.of(f"{arguments[arguments.index('--run') + 1]}{run.id}")
                assert name is not None
                reached, at_ms = {each: driver(each) for each in self.names}, round(now * 1000)
                proof = name.proof(
                    {each: how or Reached.NOTHING for each, how in reached.items()},
                    at_ms=at_ms,
                    began_ms=round((run.admitted + 180) * 1000),
                    reported={each: at_ms for each, how in reached.items() if how is not None},
                )
                self.world.store.put(name.proof_key, proof.document())
                self._proven.add(run.id)

    def _deliver(self) -> None:
        """Deliver an event for each change of a run's state: some twice, some a few minutes late."""
        due, self._late = self._late, []
        for run in self.runs():
            state = run.state(self.world.time.now)
            if self._seen.get(run.id) != state:
                self._seen[run.id] = state
                detail = {"jobRunId": run.id, "applicationId": run.request["applicationId"], "state": state}
                event = {"detail-type": "EMR Serverless Job Run State Change", "detail": detail}
                due += [event] * self._random.choice((1, 1, 2))
        self._random.shuffle(due)
        for event in due:
            if self._random.random() < 0.3:
                self._late.append(event)
            else:
                self.reconcile(event)
