"""The demonstration from beginning to end."""

from __future__ import annotations

import json
import runpy
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from frazil.declaration import Pipeline
from tests.demo import checkout as own_checkout
from tests.demo import declared
from tests.demo.clouds import LOCAL, Clouds
from tests.demo.producing import STATE, Producing
from tests.demo.steps import Steps
from tests.demo.summary import DIFFERENCE, REVIEW, Account, Summary

STACKS = ("local-foundation", "local-confluent", "local-ingestion")
BEGUN_WITH = {"flights": 20_000, "planes": 3_000, STATE: 3_000}
CDKTF = ("npx", "--no-install", "cdktf")
OPTIONS = ("--auto-approve", "--skip-provider-lock", "--no-color")
DEPLOYED = "stacks/example.py"
"""Pipelines and topics together; other commands read `stacks/pipelines.py`, as they do by themselves."""
NOTHING = "none"
ENDED = ("SUCCESS", "FAILED", "CANCELLED")
CHANGED_COLUMNS = ("distance", "cancelled")
_MOST_LOOKS = 120


@dataclass(kw_only=True)
class Story:
    """One demonstration in a checkout of its own. Its results are in `summary` and the folder `out`."""

    steps: Steps
    checkout: Path
    out: Path
    summary: Summary
    _clouds: Clouds = field(init=False)
    _registry: str = field(init=False)

    def run(self) -> None:
        """Run all steps. Raises `StepFailed`."""
        self._begin()
        with self._producing() as producing:
            self._deploy_first(producing)
            self._change(producing)
            self._land_all(producing)
        self._account(producing)
        self._destroy()

    def _begin(self) -> None:
        declared.declare(self.checkout)
        own_checkout.commit(self.checkout, "What is deployed first")
        started = self.steps.run("local cloud", "frazil", "local", "up", "--cloud", "--json")
        services = json.loads(started.stdout)
        self.steps.environment.update(services["exports"])
        self._registry = services["parts"]["registry"]["url"]
        self._clouds = Clouds(exports=services["exports"], bootstrap=services["parts"]["kafka"]["bootstrap"])

    @contextmanager
    def _producing(self) -> Iterator[Producing]:
        producing = Producing(self._clouds.bootstrap, self._registry)
        try:
            yield producing
        finally:
            producing.stop()

    def _deploy_first(self, producing: Producing) -> None:
        steps = self.steps
        self._release("first")
        self._deploy("deploy without runs", NOTHING)
        steps.require(
            self._clouds.topics() == sorted(BEGUN_WITH), "deploy without runs", "the topics are not those declared"
        )
        with steps.watch("produce"):
            for topic, count in BEGUN_WITH.items():
                producing.add(topic, at_once=count)
            producing.start()
        self._deploy("deploy", self._manifest("first"))
        for name in BEGUN_WITH:
            steps.run(f"verify {name}", "frazil", "verify", name)
        # Terraform has scheduled it; the local cloud has no clock.
        steps.run(
            "maintain", "frazil", "local", "run-schedule", f"{LOCAL.names.prefix}-maintain", "--region", LOCAL.region
        )
        again = self._deploy("deploy again", self._manifest("first"))
        self.summary.is_second_plan_empty = all(f"{stack}: nothing changes" in again for stack in STACKS)
        steps.require(self.summary.is_second_plan_empty, "deploy again", "it changes something")

    def _change(self, producing: Producing) -> None:
        steps, before = self.steps, self._clouds.columns(self._pipelines()["flights"])
        declared.change(self.checkout)
        own_checkout.commit(self.checkout, "New columns, a new topic and its pipeline, a new version")
        (self.out / DIFFERENCE).write_text(own_checkout.difference(self.checkout))
        self._release("second")
        reviewed = steps.run("review of the change", *self._review("second"), expect=(4,))
        (self.out / REVIEW).write_text(reviewed.stdout)
        self.summary.reviewed = next(line.lstrip("# ") for line in reviewed.stdout.splitlines() if line.startswith("#"))
        self._maintained()
        produced = self._produced(producing)
        with self._added(producing):
            self._deploy("deploy the change", self._manifest("second"))
        self.summary.produced_meanwhile = self._produced(producing) - produced
        producing.turn_to("flights", 1)
        with steps.watch("columns arrive"):
            after = self._columns_after(before)
        self.summary.columns = {name: [before.get(name, "none"), after[name]] for name in CHANGED_COLUMNS}

    def _columns_after(self, before: dict[str, str]) -> dict[str, str]:
        """Wait until the table's columns have changed, and return them."""
        for _ in range(_MOST_LOOKS):
            self._lag("flights")  # takes a second or two
            after = self._clouds.columns(self._pipelines()["flights"])
            if all(after.get(name) not in (None, before.get(name)) for name in CHANGED_COLUMNS):
                return after
        self.steps.require(False, "columns arrive", "the table has not got the new columns")
        return {}

    def _maintained(self) -> None:
        """Check that the maintenance run succeeds while the other one lands records."""
        with self.steps.watch("maintenance ends"):
            looks = (self._runs("maintain") for _ in range(_MOST_LOOKS))
            (run,) = next((runs for runs in looks if runs[0]["state"] in ENDED), [{"state": "not ended"}])
            self.steps.require(run["state"] == "SUCCESS", "maintenance ends", f"the run is {run}")
        self.summary.maintained = f"{run['release']}: {run['state']} in {run['seconds']:.0f} s, beside the ingest"

    def _land_all(self, producing: Producing) -> None:
        with self.steps.watch("land what is left"):
            producing.stop()
            for name in self._pipelines():
                looks = (self._lag(name) for _ in range(_MOST_LOOKS))
                self.steps.require(0 in looks, "land what is left", f"{name} does not come to its topic's end")

    def _account(self, producing: Producing) -> None:
        steps, journal = self.steps, producing.journal
        for name, pipeline in self._pipelines().items():
            said = steps.run(f"verify {name} at the end", "frazil", "verify", name, "--deep", "--json").stdout
            verified = json.loads(said)
            landed, dead = self._clouds.landed(pipeline), self._clouds.dead_lettered(pipeline)
            topic = pipeline.topic.name
            is_same = landed.places == journal.rows(topic) and dead.places == journal.spoilt[topic]
            self.summary.topics[topic] = Account(
                produced=journal.count(topic),
                spoilt=len(journal.spoilt[topic]),
                landed=landed.count,
                superseded=len(journal.good[topic]) - len(journal.rows(topic)),
                dead_lettered=dead.count,
                is_same=is_same,
                verified=verified["outcome"],
                read=sum(partition["read"] for partition in verified["partitions"]),
            )
            steps.require(
                self.summary.topics[topic].adds_up, f"verify {name} at the end", "the account does not add up"
            )
        self.summary.runs = [
            {key: run[key] for key in ("state", "generation", "release", "seconds")} for run in self._runs()
        ]
        states = [(run["generation"], run["state"]) for run in self.summary.runs]
        steps.require(states == [(2, "RUNNING"), (1, "CANCELLED")], "runs", f"they are {states}")

    def _destroy(self) -> None:
        steps, before = self.steps, {each.produced for each in self.summary.topics.values()}
        steps.run("stop", "frazil", "stop", *self._pipelines())
        destroy = (*CDKTF, "destroy", *STACKS, *OPTIONS)
        release = self._manifest("second")
        steps.run("destroy with one key", *destroy, expect=(1,), more=self._chosen(release))
        # What Terraform says, the CDK's program does not always print to its end: it is asked once more, by itself.
        plan = ("plan", "-destroy", "-input=false", "-no-color")
        refused = steps.run(
            "why it is refused", "terraform", f"-chdir=cdktf.out/stacks/{STACKS[0]}", *plan, expect=(1,)
        )
        is_said = "Instance cannot be destroyed" in refused.stdout + refused.stderr
        held = sum(self._clouds.landed(each).count for each in self._pipelines().values())
        self.summary.is_destroying_refused = is_said and held == sum(
            each.landed for each in self.summary.topics.values()
        )
        steps.require(
            bool(before) and self.summary.is_destroying_refused, "destroy with one key", "it was not refused for data"
        )
        both = {**self._chosen(release), "FRAZIL_DESTROY_DATA": "local"}
        steps.run("turn the second key", *CDKTF, "deploy", *STACKS[:2], *OPTIONS, more=both)  # ingestion holds no data
        steps.run("destroy with both keys", *destroy, more=both)
        self.summary.left = self._clouds.left()
        steps.require(not self.summary.left, "destroy with both keys", f"it has left {self.summary.left}")

    def _release(self, name: str) -> None:
        built = self.steps.run(
            f"{name} release", "frazil", "release", "build", "--for", "local", "--out", f"dist/{name}", "--json"
        )
        result = json.loads(built.stdout)
        self.summary.releases.append(f"{result['release']['version']} ({result['digest'][:12]})")
        self.steps.require(not result["release"]["is_dirty"], f"{name} release", "it is not of a commit")

    def _manifest(self, name: str) -> str:
        return f"dist/{name}/manifest.json"

    def _chosen(self, manifest: str) -> dict[str, str]:
        """Return the variables of a deployment: the declarations and the release."""
        return {"FRAZIL_PIPELINES": DEPLOYED, "FRAZIL_RELEASE": manifest}

    def _review(self, release: str) -> tuple[str, ...]:
        return ("frazil", "review", "local", "--pipelines", DEPLOYED, "--release", self._manifest(release))

    def _deploy(self, step: str, release: str) -> str:
        """Deploy all stacks and reconcile the runs. From then on, the environment `local` is the deployed one."""
        command = ("frazil", "deploy", "local", "--yes", "--release", release)
        return self.steps.run(step, *command, more={"FRAZIL_PIPELINES": DEPLOYED}).stdout

    @contextmanager
    def _added(self, producing: Producing) -> Iterator[None]:
        """Write the first records of the new topic when the deployment has created it, before its runs must prove themselves."""
        deployed = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(self._written, producing, deployed)
            try:
                yield
            finally:
                deployed.set()
            self.steps.require(written.result(), "deploy the change", "it has made no topic weather")

    def _written(self, producing: Producing, deployed: threading.Event) -> bool:
        """Return whether the topic was there, at the latest when the deployment had ended, and has its records."""
        is_last = False
        while not is_last:
            is_last = deployed.wait(1)
            if "weather" in self._clouds.topics():
                producing.add("weather", at_once=1_000)
                return True
        return False

    def _pipelines(self) -> dict[str, Pipeline]:
        found: list[Pipeline] = runpy.run_path(str(self.checkout / declared.PIPELINES))["pipelines"]
        return {pipeline.name: pipeline for pipeline in found}

    def _lag(self, name: str) -> int | None:
        shown = self.steps.run("lag", "frazil", "show", name, "--json", quiet=True)
        lag: int | None = json.loads(shown.stdout)["lag"]
        return lag

    def _runs(self, job: str = "ingest") -> list[dict[str, Any]]:
        """Return a job's runs, the newest first."""
        shown = self.steps.run("runs", "frazil", "runs", "local", "--job", job, "--json", quiet=True)
        runs: list[dict[str, Any]] = json.loads(shown.stdout)["runs"]
        return runs

    def _produced(self, producing: Producing) -> int:
        journal = producing.journal
        return sum(journal.count(topic) for topic in list(journal.good))
