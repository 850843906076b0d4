"""The demonstration from beginning to end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.demo import checkout as own_checkout
from tests.demo import project
from tests.demo.accounting import MOST_LOOKS, Accounting, pipelines
from tests.demo.clouds import Clouds
from tests.demo.commands import STANDIN, Commands
from tests.demo.destruction import LAST, Destruction
from tests.demo.producing import STATE, Producing
from tests.demo.project import DEV, RETIRED
from tests.demo.steps import Steps
from tests.demo.summary import DIFFERENCE, REVIEW, Summary

BEGUN_WITH = {"flights": 20_000, "planes": 3_000, STATE: 3_000}
DECLARED_SUBJECT = "flights-value"
"""Terraform registers it. The local registry refuses the second of two at the same time, so the producer waits for it."""
ADDED = {"weather": 1_000}
"""Records of each topic as soon as it is there."""
ENDED = ("SUCCESS", "FAILED", "CANCELLED")
ROLLBACK_SECONDS = 900
"""How long three runs may take to fail."""
CHANGED_COLUMNS = ("distance", "cancelled")


@dataclass(kw_only=True)
class Story:
    """One demonstration: a project that `frazil init` makes, and a checkout in which its releases are built.

    Its results are in `summary` and the folder `out`. Commands run in the project.
    """

    steps: Steps
    checkout: Path
    out: Path
    summary: Summary
    _commands: Commands = field(init=False)
    _accounting: Accounting = field(init=False)
    _clouds: Clouds = field(init=False)
    _registry: str = field(init=False)

    def run(self) -> None:
        """Run all steps. Raises `StepFailed`."""
        self._begin()
        with self._producing() as producing:
            self._accounting = Accounting(steps=self.steps, clouds=self._clouds, producing=producing)
            self._deploy_first(producing)
            self._change(producing)
            self._roll_back()
            self._move()
            self._land_all(producing)
        Destruction(commands=self._commands, clouds=self._clouds, accounted=self.summary.topics).run()

    def _begin(self) -> None:
        steps = self.steps
        self._commands = Commands(steps=steps, checkout=self.checkout, out=self.out, summary=self.summary)
        own_checkout.commit(self.checkout, "Frazil")
        site = str(self.out / "site")
        pip = ("python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", site, ".")
        steps.run("wheel", *pip, folder=self.checkout, more={"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
        steps.environment["PYTHONPATH"] = site  # from now on, commands are those of the installed wheel
        steps.run("init", "frazil", "init", ".", "--kafka", "local", "--aws", "--yes")
        (steps.folder / "node_modules").symlink_to(self.checkout / "node_modules")
        project.declare(steps.folder)
        own_checkout.begin(steps.folder, "What is deployed first")
        started = steps.run("local cloud", *STANDIN, "up", ".", more=self._commands.standin_path)
        services = json.loads(started.stdout)
        steps.environment.update(services["exports"])
        steps.environment["FRAZIL_ENV"] = DEV.name
        self._registry = services["parts"]["registry"]["url"]
        self._clouds = Clouds(exports=services["exports"], bootstrap=services["parts"]["kafka"]["bootstrap"])
        self._commands.release("first", beside=("bootstrap", ("frazil", "deploy", "bootstrap", "dev", "--yes")))

    @contextmanager
    def _producing(self) -> Iterator[Producing]:
        producing = Producing(self._clouds.bootstrap, self._registry)
        try:
            yield producing
        finally:
            producing.stop()

    def _deploy_first(self, producing: Producing) -> None:
        deployment = self._commands.deployment("first")
        own_checkout.raise_version(self.checkout)
        with self._written_to(producing, BEGUN_WITH, "deploy"):
            self._commands.release("second", beside=("deploy", deployment))
        # Terraform has scheduled it; the local cloud has no clock.
        self._commands.fire("maintain", f"{DEV.names.prefix}-maintain")

    def _change(self, producing: Producing) -> None:
        steps, before = self.steps, self._clouds.columns(pipelines(self.steps)["flights"])
        with steps.watch("the topic to retire is landed"):
            producing.end(RETIRED)
            self._accounting.wait_for([RETIRED], "the topic to retire is landed")
        retired = {RETIRED: pipelines(steps)[RETIRED]}
        self.summary.topics.update(self._accounting.accounts(retired, f"verify {RETIRED}"))
        project.change(steps.folder)
        own_checkout.commit(steps.folder, "New columns, a new topic and its pipeline, planes is retired")
        (self.out / DIFFERENCE).write_text(own_checkout.difference(steps.folder))
        reviewed = steps.run("review of the change", *self._commands.review("second"), expect=(1,))
        (self.out / REVIEW).write_text(reviewed.stdout)
        self.summary.reviewed = next(line.lstrip("# ") for line in reviewed.stdout.splitlines() if line.startswith("#"))
        produced = producing.count()
        with self._written_to(producing, ADDED, "deploy the change"):
            accepted = "--accept-danger=planes has landed, its producer has ended, and its records stay"
            deployed = steps.run("deploy the change", *self._commands.deployment("second", accepted)).stdout
        self._unchanged("deploy the change", deployed, "foundation")
        self.summary.accepted = accepted.partition("=")[2]
        self.summary.produced_meanwhile = producing.count() - produced
        producing.turn_to("flights", 1)
        with steps.watch("columns arrive"):
            after = self._columns_after(before)
        self.summary.columns = {name: [before.get(name, "none"), after[name]] for name in CHANGED_COLUMNS}
        self._maintained()

    def _unchanged(self, step: str, deployed: str, stack: str) -> None:
        """Check that a stack's plan was empty."""
        is_empty = f"{DEV.name}-{stack}: nothing changes" in deployed.splitlines()
        self.steps.require(is_empty, step, f"a plan of {stack} changes something")
        self.summary.unchanged.append(f"{stack} ({step})")

    def _columns_after(self, before: dict[str, str]) -> dict[str, str]:
        """Wait until the table's columns have changed, and return them."""
        for _ in range(MOST_LOOKS):
            self._accounting.lag("flights")
            after = self._clouds.columns(pipelines(self.steps)["flights"])
            if all(after.get(name) not in (None, before.get(name)) for name in CHANGED_COLUMNS):
                return after
        self.steps.require(False, "columns arrive", "the table has not got the new columns")
        return {}

    def _maintained(self) -> None:
        """Check that the maintenance run succeeds while the other one lands records."""
        with self.steps.watch("maintenance ends"):
            looks = (self._commands.runs("maintain") for _ in range(MOST_LOOKS))
            (run,) = next((runs for runs in looks if runs[0]["state"] in ENDED), [{"state": "not ended"}])
            self.steps.require(run["state"] == "SUCCESS", "maintenance ends", f"the run is {run}")
        self.summary.maintained = f"{run['release']}: {run['state']} in {run['seconds']:.0f} s, beside the ingest"

    def _roll_back(self) -> None:
        """Deploy a release of which no run can start, by Terraform alone. Only the deployed reconciler acts from there on."""
        steps = self.steps
        own_checkout.raise_version(self.checkout)
        own_checkout.break_ingest(self.checkout)
        self._commands.release("third")
        project.number(steps.folder, 3)
        own_checkout.commit(steps.folder, "A release of which no run can start")
        steps.run("upload of a bad release", "frazil", "release", "upload", "dev", "--from", str(self.out / "third"))
        self._commands.cdktf(
            "deployment of a bad release", "third", "deploy", LAST, "--ignore-missing-stack-dependencies"
        )
        with steps.watch("the deployed reconciler rolls back"):
            self._commands.fire("", DEV.names.role("reconcile-ingest"))
            given_up = self._clouds.given_up_within(ROLLBACK_SECONDS)
            steps.require(given_up == 1, "the deployed reconciler rolls back", f"{given_up} generations were given up")
            looks = (self._commands.runs() for _ in range(MOST_LOOKS))
            found = next((runs for runs in looks if self._is_rolled_back(runs)), None)
            steps.require(found is not None, "the deployed reconciler rolls back", "generation 2 does not run again")
        failed = sum(run["state"] == "FAILED" for run in found or ())
        self.summary.rolled_back = f"generation 3 was given up after {failed} runs, generation 2 runs again"

    @staticmethod
    def _is_rolled_back(runs: list[dict[str, Any]]) -> bool:
        states = [(run["generation"], run["state"]) for run in runs]
        return states[0] == (2, "RUNNING") and states.count((3, "FAILED")) == 3

    def _move(self) -> None:
        """Move the run to a larger application. The one before is stopped, and stays until everything is destroyed."""
        steps, (former, *others) = self.steps, self._clouds.applications()
        project.move(steps.folder)
        own_checkout.commit(steps.folder, "A larger application")
        move = ("frazil", "deploy", "move-application", "dev", "--yes", "--release", self._commands.manifest("second"))
        moved = steps.run("move the application", *move).stdout
        steps.require("move: done" in moved, "move the application", "it is not finished")
        self._unchanged("move the application", moved, "confluent")
        after = self._clouds.applications()
        added = [name for name in after if name != former]
        is_moved = not others and len(added) == 1 and after[former] == "STOPPED"
        steps.require(is_moved, "move the application", f"the applications are {after}")
        self.summary.moved = f"from {former} to {added[0]}"

    def _land_all(self, producing: Producing) -> None:
        steps, wanted = self.steps, pipelines(self.steps)
        with steps.watch("land what is left"):
            producing.stop()
            self._accounting.wait_for(wanted, "land what is left")
        self.summary.topics.update(self._accounting.accounts(wanted, "verify at the end"))
        self.summary.runs = [
            {key: run[key] for key in ("state", "generation", "release", "seconds")} for run in self._commands.runs()
        ]

    @contextmanager
    def _written_to(self, producing: Producing, topics: Mapping[str, int], step: str) -> Iterator[None]:
        """Write the first records of topics when the deployment has created them, before its runs must prove themselves."""
        deployed = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            written = pool.submit(self._written, producing, topics, deployed)
            try:
                yield
            finally:
                deployed.set()
            self.steps.require(written.result(), step, f"it has not made the topics {', '.join(topics)}")

    def _written(self, producing: Producing, topics: Mapping[str, int], deployed: threading.Event) -> bool:
        """Return whether the topics were there, at the latest when the deployment had ended, and have their records."""
        is_last = False
        while not is_last:
            is_last = deployed.wait(1)
            if topics.keys() <= set(self._clouds.topics()) and DECLARED_SUBJECT in producing.subjects():
                for topic, count in topics.items():
                    producing.add(topic, at_once=count)
                producing.start()
                return True
        return False
