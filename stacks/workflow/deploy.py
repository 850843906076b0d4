"""`python -m stacks.workflow.deploy ENV STACK…`: for each stack, review its plan and apply it. `frazil deploy up` runs it.

Each stack has its own plan, review and digest. All are planned at once. If a stack has changed its outputs, those after it
are planned again. The stacks of groups follow `ingestion`.

Exit codes: 0 applied, or nothing to apply; 1 refused: an open danger, or not confirmed; 2 invalid input; 5 not planned;
6 Terraform failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

from frazil.declaration import parse_document
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.errors import InvalidInput
from frazil.exit_codes import Exit
from frazil.rollout.desired import INGEST, job_name
from policies.review.markdown.page import markdown
from policies.review.plan.compared_plans import SHOWN, is_empty
from policies.review.review import Review
from stacks.spec.deployments import DEPLOYMENTS, Deployment
from stacks.spec.reader_keys import VARIABLE
from stacks.workflow.deployed import file_of, replace_file
from stacks.workflow.review import ended_by_signals, is_declared, json_object, parser_of, review_of
from stacks.workflow.saved_plans import PlanDiffers, SavedPlans, apply_saved, of_stacks, planned
from stacks.workflow.terraform_command import NotPlanned, TerraformCommand, program, write_outputs
from stacks.workflow.terraform_plans import APP, STACKS, declared_pipelines, plans, synthesise


def refuse_moves(group: str, folders: Iterable[Path], file: Path | None) -> None:
    """Raise `InvalidDeclaration` if a pipeline or a pattern leaves a group or comes to it, which alone would be deployed.

    `folders` are those of the synthesised stacks of ingestion. The file has the pipelines of each deployed ingest job.
    """
    deployed: dict[str, list[str]] = json.loads(file.read_text("utf-8")) if file is not None else {}
    documents = [parse_document(each) for each in declared_pipelines(folders)]
    declared = {one.name: job_name(INGEST, one.group) for each in documents for one in each.pipelines}
    declared |= {one.match: job_name(INGEST, one.pipeline.group) for each in documents for one in each.patterns}
    own, do = job_name(INGEST, group), "Deploy all groups: leave out --group"
    if problems := [
        Problem(f"pipeline {name}", f"it moves from the job {job} to {new}, and only {own} would be deployed", do)
        for job, names in sorted(deployed.items())
        for name in sorted(names)
        if (new := declared.get(name, job)) != job and own in (job, new)
    ]:
        raise InvalidDeclaration(problems)


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
    """Deploy stacks. Return the exit code that the module's docstring lists. `ask` is None without a terminal."""
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
    except InvalidInput as error:
        print(f"error: {error}", file=sys.stderr)
        return Exit.INVALID_INPUT
    except (NotPlanned, PlanDiffers, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return Exit.UNCHECKED


class _Deploying:
    """The deployment of stacks in a private folder."""

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
        self._stacks = tuple(f"{deployment.name}-{stack}" for stack in chosen.stacks)

    def run(self, app: Sequence[str], now: datetime) -> int:
        """Synthesise, plan, review, apply. Return the exit code."""
        step = {} if self._chosen.key_step is None else {VARIABLE: str(self._chosen.key_step)}
        folders = self._folders(synthesise(self._deployment, self._folder, {**self._settings, **step}, app))
        early = self._planned_early(folders)
        for name, folder in folders.items():
            saved = early.pop(name, None) or self._planned(name, folder)
            found = self._reviewed(saved, now)
            if code := self._applied(name, saved, found):
                return code
            if found.form.stacks[name]["outputs"]:
                early.clear()
        if self._chosen.outputs is not None:
            places = {name: self._folder / "cdktf.out" / "stacks" / name for name in self._stacks}
            write_outputs(self._chosen.outputs, places, self._settings, self._terraform)
        return Exit.SUCCESS

    def _folders(self, found: Mapping[str, Path]) -> dict[str, Path]:
        """Return the folders of the wanted stacks in their order, each followed by those of its groups."""
        wanted: dict[str, Path] = {}
        for stack in self._stacks:
            shared = self._folder / "cdktf.out" / "stacks" / stack
            if not shared.is_dir():
                raise ValueError(f"{stack}: the stack does not exist. Declare access.deployers or access.github")
            groups = {name: folder for name, folder in found.items() if name.startswith(f"{stack}-")}
            wanted |= self._group(stack, shared, groups) if self._chosen.group else {stack: shared, **groups}
        return wanted

    def _group(self, stack: str, shared: Path, groups: Mapping[str, Path]) -> dict[str, Path]:
        """Return the folder of the one wanted group. Raises `InvalidInput` if it cannot be deployed alone."""
        name = f"{stack}-{self._chosen.group}"
        if name not in groups:
            known = ", ".join(each.removeprefix(f"{stack}-") for each in groups) or "no group is declared"
            raise InvalidInput("the stack does not exist", where=name, do=f"Groups: {known}")
        refuse_moves(self._chosen.group, [shared, *groups.values()], self._chosen.deployed_pipelines)
        command = TerraformCommand(shared, self._settings, self._terraform)
        command.initialised()
        if not command.outputs():
            raise InvalidInput(
                "it is not deployed, and its groups need what it shares", where=stack, do="Deploy all groups once"
            )
        return {name: groups[name]}

    def _planned_early(self, folders: Mapping[str, Path]) -> dict[str, SavedPlans]:
        """Plan all stacks at once. Return the plans up to the first stack that needs outputs which do not exist yet."""
        if len(folders) == 1:
            return {}
        stacks = plans(folders, self._settings, self._terraform, is_again=self._chosen.again)
        complete = takewhile(lambda stack: stack.plan is not None and not stack.why_not, stacks)
        return {each.name: of_stacks((each,), folders) for each in complete}

    def _planned(self, name: str, folder: Path) -> SavedPlans:
        found = planned({name: folder}, self._settings, self._terraform, is_again=self._chosen.again)
        [plan] = found.stacks
        if plan.plan is None or plan.why_not:
            raise NotPlanned(f"{name}: {plan.why_not or 'Terraform made no plan'}")
        return found

    def _reviewed(self, saved: SavedPlans, now: datetime) -> Review:
        return review_of(
            self._deployment,
            saved.stacks,
            today=now.date(),
            reason=self._chosen.accept_danger,
            comments=json_object(self._chosen.acceptances) if self._chosen.acceptances else None,
        )

    def _applied(self, name: str, saved: SavedPlans, found: Review) -> int:
        if found.open_codes:
            print(markdown(found), end="")
            print(f"{name}: refused: {', '.join(found.open_codes)}")
            return Exit.DECISION_REQUIRED
        if is_empty(found.form):
            self._write_deployed()
            print(f"{name}: nothing changes", flush=True)
            return Exit.SUCCESS
        if not self._is_confirmed(name, found):
            return Exit.DECISION_REQUIRED
        self._write_deployed()  # before Terraform creates what it lists, so that an interrupted deployment is protected
        applied = apply_saved(saved, found.form, self._settings, self._terraform)
        if applied.failed:
            print(f"{name}: failed: {applied.errors}", flush=True)
            return Exit.FAILED
        if applied.left:
            raise NotPlanned(f"{name}: {applied.left[name]}")
        print(f"{name}: applied {found.counts()}, plan {found.form.digest[:SHOWN]}", flush=True)
        return Exit.SUCCESS

    def _is_confirmed(self, name: str, found: Review) -> bool:
        """Return whether the plan is confirmed: by --yes, or by an answer on the terminal below its review."""
        if self._chosen.yes:
            return True
        print(markdown(found), end="", flush=True)
        if self._ask is None:
            print(f"{name}: not applied: it was not confirmed. Give --yes where there is no terminal")
            return False
        is_wanted = self._ask(f"Apply {name} ({found.counts()})? [y/N] ")
        if not is_wanted:
            print(f"{name}: not applied")
        return is_wanted

    def _write_deployed(self) -> None:
        """Write the file of deployed objects into the project; the person who deploys commits it."""
        file = file_of(self._deployment, self._settings.get("FRAZIL_DEPLOYED", ""))
        written = self._folder / "deployed" / file.name
        if written.is_file() and replace_file(file, written.read_bytes()):
            print(f"{file}: lists what holds data; commit it", flush=True)


def _arguments(arguments: Sequence[str], deployments: Mapping[str, Deployment]) -> argparse.Namespace:
    parser = parser_of("deploy", __doc__, deployments)
    parser.add_argument("stacks", nargs="+", choices=(OWNER, *STACKS), help="the stacks to deploy, in their order")
    parser.add_argument("--accept-danger", default="", metavar="REASON", help="apply in spite of dangers")
    parser.add_argument("--again", action="store_true", help="raise the generation of an unchanged desired state")
    parser.add_argument("--group", default="", metavar="NAME", help="of the stacks of ingestion, that of one group")
    parser.add_argument(
        "--deployed-pipelines", type=Path, metavar="FILE", help="those of each deployed job, for --group"
    )
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
