"""The commands of releases, deployments and runs that the demonstration gives more than once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.demo import checkout as own_checkout
from tests.demo.project import DEV
from tests.demo.steps import Steps
from tests.demo.summary import Summary

STANDIN = ("python", "-m", "tests.standin")
"""The command of the local cloud, which is in the checkout."""


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Commands in the project, and in the checkout of Frazil that builds releases."""

    steps: Steps
    checkout: Path
    out: Path
    summary: Summary

    def release(self, name: str, *, beside: tuple[str, Sequence[str]] | None = None) -> str:
        """Build a release of the checkout as it is, and commit that first.

        The command `beside` it, with the name of its step, is run at the same time; return its output.
        """
        own_checkout.commit(self.checkout, name)
        # In the checkout, by the code of the checkout.
        build = ("env", "-C", str(self.checkout), "PYTHONPATH=", "frazil", "release", "build", "--for", "local")
        build = (*build, "--out", str(self.out / name), "--json")
        step, others = (f"{name} release", []) if beside is None else (beside[0], [beside[1]])
        built, *ended = self.steps.run_at_once(step, build, *others)
        result = json.loads(built.stdout)
        self.summary.releases.append(f"{result['release']['version']} ({result['digest'][:12]})")
        self.steps.require(not result["release"]["is_dirty"], step, f"the {name} release is not of a commit")
        return ended[0].stdout if ended else ""

    @property
    def standin_path(self) -> Mapping[str, str]:
        """The variables with which Python finds the installed wheel, then the checkout, and no `tests` of the project."""
        return {"PYTHONPATH": f"{self.steps.environment['PYTHONPATH']}:{self.checkout}", "PYTHONSAFEPATH": "1"}

    def manifest(self, name: str) -> str:
        """Return the path of a release's manifest."""
        return str(self.out / name / "manifest.json")

    def review(self, release: str) -> tuple[str, ...]:
        """Return the command that reviews the deployment of a release."""
        return ("frazil", "deploy", "plan", "dev", "--release", self.manifest(release))

    def deployment(self, release: str, *options: str) -> tuple[str, ...]:
        """Return the command that deploys all stacks and reconciles the runs. Behind it, commands know the environment `dev`."""
        return ("frazil", "deploy", "up", "dev", "--yes", "--release", self.manifest(release), *options)

    def cdktf(
        self,
        step: str,
        release: str,
        *arguments: str,
        expect: tuple[int, ...] = (0,),
        more: Mapping[str, str] | None = None,
    ) -> str:
        """Run the CDK's own program, without what `frazil deploy up` checks. Return what it says."""
        chosen = {"FRAZIL_ENVIRONMENTS": DEV.name, "FRAZIL_RELEASE": self.manifest(release), **(more or {})}
        command = ("npx", "--no-install", "cdktf", *arguments, "--auto-approve", "--skip-provider-lock", "--no-color")
        ended = self.steps.run(step, *command, expect=expect, more=chosen)
        return ended.stdout + ended.stderr

    def fire(self, step: str, schedule: str) -> None:
        """Run a schedule that Terraform has made. The local cloud has no clock."""
        command = (*STANDIN, "run-schedule", ".", schedule, DEV.region)
        self.steps.run(step or "run a schedule", *command, more=self.standin_path, quiet=not step)

    def runs(self, job: str = "ingest") -> list[dict[str, Any]]:
        """Return a job's runs, the newest first."""
        shown = self.steps.run("runs", "frazil", "jobs", "list", "dev", "--job", job, "--json", quiet=True)
        runs: list[dict[str, Any]] = json.loads(shown.stdout)["runs"]
        return runs
