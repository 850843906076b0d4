"""`python -m stacks.deploy ENV STACK`: plan one stack, review that plan, and apply it. `frazil deploy` runs it for each stack.

The plan of a stack needs outputs of the stacks before it, so each stack has its own plan, review and digest. The stacks of
groups follow `ingestion`. Exit codes: 0 applied, or nothing to apply; 1 refused: an open danger, or not confirmed; 2 invalid
input; 5 not planned; 6 Terraform failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from frazil.exit_codes import Exit
from policies.review.markdown import markdown
from policies.review.normal_form import SHOWN, is_empty
from policies.review.plan_changes import Verb
from policies.review.review import Review
from stacks.deployed import file_of
from stacks.deployments import DEPLOYMENTS, Deployment
from stacks.reader_keys import VARIABLE
from stacks.review import ended_by_signals, is_declared, json_object, review_of
from stacks.saved_plans import Applied, PlanDiffers, SavedPlans, apply_saved, planned
from stacks.terraform_command import NotPlanned, TerraformCommand, program
from stacks.terraform_plans import APP, STACKS, synthesise

OWNER = "owner"
"""The stack that the account's owner deploys. It exists only if a deployment declares who deploys."""

Ask = Callable[[str], bool]


def main(
    arguments: Sequence[str],
    settings: Mapping[str, str],
    now: datetime,
    deployments: Mapping[str, Deployment] = DEPLOYMENTS,
    app: Sequence[str] = APP,
    *,
    ask: Ask | None = None,
) -> int:
    """Deploy one stack. Return the exit code that the module's docstring lists. `ask` is None without a terminal."""
    chosen = _arguments(arguments, deployments)
    if not is_declared(chosen.environment, deployments):
        return Exit.INVALID_INPUT
    try:
        terraform = program(settings)
        # Only this user can read the folder with the plan, and it is always removed.
        with tempfile.TemporaryDirectory(prefix="frazil-deploy-") as folder:
            return _Deploying(chosen, deployments[chosen.environment], Path(folder), settings, terraform, ask).run(
                app, now
            )
    except (NotPlanned, PlanDiffers, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return Exit.UNCHECKED


class _Deploying:
    """The deployment of one stack in a private folder."""

    def __init__(
        self,
        chosen: argparse.Namespace,
        deployment: Deployment,
        folder: Path,
        settings: Mapping[str, str],
        terraform: str,
        ask: Ask | None,
    ) -> None:
        self._chosen, self._deployment, self._folder = chosen, deployment, folder
        self._settings, self._terraform, self._ask = settings, terraform, ask
        self._stack = f"{deployment.name}-{chosen.stack}"

    def run(self, app: Sequence[str], now: datetime) -> int:
        """Synthesise, plan, review, apply. Return the exit code."""
        step = {} if self._chosen.key_step is None else {VARIABLE: str(self._chosen.key_step)}
        folders = synthesise(self._deployment, self._folder, {**self._settings, **step}, app)
        folders = {self._stack: self._folder / "cdktf.out" / "stacks" / self._stack, **folders}
        if not folders[self._stack].is_dir():
            raise ValueError(f"{self._stack}: the stack does not exist. Declare deployer_principals or github")
        for name in (name for name in folders if name == self._stack or name.startswith(f"{self._stack}-")):
            if code := self._deployed(name, folders[name], now):
                return code
        if self._chosen.outputs is not None:
            outputs = {self._stack: self._outputs(folders[self._stack])}
            self._chosen.outputs.write_text(json.dumps(outputs), "utf-8")
        return Exit.SUCCESS

    def _deployed(self, name: str, folder: Path, now: datetime) -> int:
        saved = planned(
            self._deployment.name, {name: folder}, self._settings, self._terraform, is_again=self._chosen.again
        )
        [plan] = saved.stacks
        if plan.plan is None or plan.why_not:
            raise NotPlanned(f"{name}: {plan.why_not or 'Terraform made no plan'}")
        return self._applied(name, saved, self._reviewed(saved, now))

    def _reviewed(self, saved: SavedPlans, now: datetime) -> Review:
        return review_of(
            self._deployment,
            saved.stacks,
            today=now.date(),
            time=now.isoformat(" ", "minutes"),
            reason=self._chosen.accept_danger,
            comments=json_object(self._chosen.acceptances) if self._chosen.acceptances else None,
        )

    def _applied(self, name: str, saved: SavedPlans, found: Review) -> int:
        if found.open_codes:
            print(markdown(found), end="")
            print(f"{name}: refused: {', '.join(found.open_codes)}")
            return Exit.DECISION_REQUIRED
        if is_empty(saved.form):
            self._write_deployed()
            print(f"{name}: nothing changes", flush=True)
            return Exit.SUCCESS
        if not self._is_confirmed(name, found):
            return Exit.DECISION_REQUIRED
        self._write_deployed()  # before Terraform creates what it lists, so that an interrupted deployment is protected
        applied = apply_saved(
            saved, self._settings, self._terraform, digest=found.form.digest, on_stack=lambda stack: None
        )
        return self._reported(name, found, applied)

    def _is_confirmed(self, name: str, found: Review) -> bool:
        """Return whether the plan is confirmed: by --yes, or by an answer on the terminal below its review."""
        if self._chosen.yes:
            return True
        print(markdown(found), end="", flush=True)
        if self._ask is None:
            print(f"{name}: not applied: it was not confirmed. Give --yes where there is no terminal")
            return False
        is_wanted = self._ask(f"Apply {name} ({_counts(found)})? [y/N] ")
        if not is_wanted:
            print(f"{name}: not applied")
        return is_wanted

    def _write_deployed(self) -> None:
        """Write the file of deployed objects into the project; the person who deploys commits it."""
        file = file_of(self._deployment, self._settings.get("FRAZIL_DEPLOYED", ""))
        written = self._folder / "deployed" / file.name
        if not written.is_file() or (file.is_file() and file.read_bytes() == written.read_bytes()):
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        beside = file.with_suffix(".new")
        shutil.copyfile(written, beside)
        os.replace(beside, file)
        print(f"{file}: lists what holds data; commit it", flush=True)

    def _reported(self, name: str, found: Review, applied: Applied) -> int:
        if applied.failed:
            print(f"{name}: failed: {applied.errors}", flush=True)
            return Exit.FAILED
        if applied.left:
            raise NotPlanned(f"{name}: {applied.left[name]}")
        print(f"{name}: applied {_counts(found)}, plan {found.form.digest[:SHOWN]}", flush=True)
        return Exit.SUCCESS

    def _outputs(self, stack: Path) -> dict[str, object]:
        """Return the outputs that are no secrets."""
        read = json.loads(TerraformCommand(stack, self._settings, self._terraform).must("output", "-json"))
        return {name: each["value"] for name, each in read.items() if not each["sensitive"]}


def _counts(found: Review) -> str:
    """Return the numbers of created, updated, deleted and replaced resources."""
    signs = {"+": Verb.CREATE, "~": Verb.UPDATE, "-": Verb.DELETE, "±": Verb.REPLACE}
    return " ".join(f"{sign}{found.count(verb)}" for sign, verb in signs.items())


def _arguments(arguments: Sequence[str], deployments: Mapping[str, Deployment]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stacks.deploy", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("environment", metavar="ENV", help=f"one of {', '.join(deployments)}")
    parser.add_argument("stack", choices=(OWNER, *STACKS), help="the stack to deploy")
    parser.add_argument("--accept-danger", default="", metavar="REASON", help="apply in spite of dangers")
    parser.add_argument("--acceptances", type=Path, metavar="FILE", help="what `frazil acceptances` printed")
    parser.add_argument("--again", action="store_true", help="raise the generation of an unchanged desired state")
    parser.add_argument("--key-step", type=int, metavar="N", help="the step of a rotation of keys")
    parser.add_argument("--outputs", type=Path, metavar="FILE", help="write the outputs that are no secrets")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser.parse_args(arguments)


def _asked(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def run(arguments: Sequence[str], deployments: Mapping[str, Deployment] = DEPLOYMENTS, app: Sequence[str] = APP) -> int:
    """Deploy as a process of its own, which removes its plan if it is ended. Return the exit code."""
    ask = _asked if sys.stdin.isatty() else None
    return ended_by_signals(lambda: main(arguments, os.environ, datetime.now(UTC), deployments, app, ask=ask))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
