"""The commands of releases, deployments and runs that the demonstration gives more than once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.demo import checkout as own_checkout
from tests.demo.project import DEV
from tests.demo.steps import Steps
from tests.demo.summary import Summary


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Commands in the project, and in the checkout of Frazil that builds releases."""

    steps: Steps
    checkout: Path
    out: Path
    summary: Summary

    def release(self, name: str) -> None:
        """Build a release of the checkout as it is, and commit that first."""
        own_checkout.commit(self.checkout, name)
        build = ("frazil", "release", "build", "--for", "local", "--out", str(self.out / name), "--json")
        built = self.steps.run(f"{name} release", *build, folder=self.checkout, more={"PYTHONPATH": ""})
        result = json.loads(built.stdout)
        self.summary.releases.append(f"{result['release']['version']} ({result['digest'][:12]})")
        self.steps.require(not result["release"]["is_dirty"], f"{name} release", "it is not of a commit")

    def manifest(self, name: str) -> str:
        """Return the path of a release's manifest."""
        return str(self.out / name / "manifest.json")

    def review(self, release: str) -> tuple[str, ...]:
        """Return the command that reviews the deployment of a release."""
        return ("frazil", "review", "dev", "--release", self.manifest(release))

    def deploy(self, step: str, release: str, *options: str, expect: tuple[int, ...] = (0,)) -> str:
        """Deploy all stacks and reconcile the runs. From then on, commands know the environment `dev`."""
        command = ("frazil", "deploy", "dev", "--yes", "--release", release, *options)
        return self.steps.run(step, *command, expect=expect).stdout

    def cdktf(
        self,
        step: str,
        release: str,
        *arguments: str,
        expect: tuple[int, ...] = (0,),
        more: Mapping[str, str] | None = None,
    ) -> str:
        """Run the CDK's own program, without what `frazil deploy` checks. Return what it says."""
        chosen = {"FRAZIL_ENVIRONMENTS": DEV.name, "FRAZIL_RELEASE": self.manifest(release), **(more or {})}
        command = ("npx", "--no-install", "cdktf", *arguments, "--auto-approve", "--skip-provider-lock", "--no-color")
        ended = self.steps.run(step, *command, expect=expect, more=chosen)
        return ended.stdout + ended.stderr

    def fire(self, step: str, schedule: str) -> None:
        """Run a schedule that Terraform has made. The local cloud has no clock."""
        command = ("frazil", "local", "run-schedule", schedule, "--region", DEV.region)
        self.steps.run(step or "run a schedule", *command, quiet=not step)

    def runs(self, job: str = "ingest") -> list[dict[str, Any]]:
        """Return a job's runs, the newest first."""
        shown = self.steps.run("runs", "frazil", "runs", "dev", "--job", job, "--json", quiet=True)
        runs: list[dict[str, Any]] = json.loads(shown.stdout)["runs"]
        return runs
