"""Terraform's plans of an environment's stacks, made for a review in a private folder that is deleted afterwards.

A plan's JSON holds secrets in plain text. It is read into memory and never leaves the folder. A plan locks and writes
nothing: it reads the state and the deployed resources.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from policies.resources import read
from policies.review.plan.masking import hidden
from policies.review.plan.plan_gaps import StackPlan
from stacks.spec.deployments import Deployment
from stacks.workflow.deployed import file_of
from stacks.workflow.generations import expect_generations, has_generations, raise_generations
from stacks.workflow.terraform_command import NotPlanned, Planned, TerraformCommand, error_headings, errors

STACKS = ("foundation", "confluent", "ingestion")
"""The stacks in the order of their deployment: each needs outputs of those before it. Those of groups follow."""

APP = ("-m", "stacks.workflow.app")
"""The arguments of Python that synthesise the deployments of the checkout."""


def synthesise(
    deployment: Deployment, folder: Path, settings: Mapping[str, str], app: Sequence[str] = APP
) -> dict[str, Path]:
    """Synthesise an environment below `folder`. Return the folders of its stacks by name.

    `app` are the arguments of Python that run the app. Raises `NotPlanned` with its output.
    """
    environment = deployment.name
    out = folder / "cdktf.out"
    link_local_state(folder)
    # Synthesis compares with the file of deployed objects and writes it; a review writes into a copy.
    file, copy = file_of(deployment, settings.get("FRAZIL_DEPLOYED", "")), folder / "deployed"
    copy.mkdir()
    if file.is_file():
        shutil.copyfile(file, copy / file.name)
    chosen = {"FRAZIL_ENVIRONMENTS": environment, "CDKTF_OUTDIR": str(out), "FRAZIL_DEPLOYED": str(copy)}
    ended = subprocess.run(
        [sys.executable, *app],
        env={**settings, **chosen},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise NotPlanned(ended.stderr.strip().removeprefix("error: ") or "synthesis failed")
    of_groups = sorted(each.name for each in (out / "stacks").glob(f"{environment}-{STACKS[-1]}-*"))
    return {name: out / "stacks" / name for name in (*(f"{environment}-{what}" for what in STACKS), *of_groups)}


def link_local_state(folder: Path) -> None:
    """Let stacks below `folder` find the state of the local environment, which is next to `cdktf.out`."""
    state = Path.cwd() / ".frazil"
    if state.is_dir():
        (folder / ".frazil").symlink_to(state)


def synthesised(folder: Path) -> dict[str, Any]:
    """Read a stack's JSON."""
    stack: dict[str, Any] = json.loads((folder / "cdk.tf.json").read_text("utf-8"))
    return stack


def copied(deployment: Deployment, given: Path, folder: Path) -> dict[str, Path]:
    """Copy the stacks that another checkout synthesised below `folder`. Return their folders by name."""
    link_local_state(folder)
    names = [f"{deployment.name}-{what}" for what in STACKS]
    found: dict[str, Path] = {}
    for name in (*names, *sorted(each.name for each in given.glob(f"{names[-1]}-*"))):
        found[name] = folder / "cdktf.out" / "stacks" / name
        found[name].mkdir(parents=True)
        (found[name] / "cdk.tf.json").write_text(json.dumps(synthesised(given / name)), "utf-8")
    return found


def declared_by(folders: Mapping[str, Path]) -> dict[str, Any]:
    """Return stacks by name, without CDKTF's notes."""
    return {name: _without_notes(synthesised(folder)) for name, folder in folders.items()}


def _without_notes(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_notes(part) for name, part in value.items() if name != "//"}
    return [_without_notes(part) for part in value] if isinstance(value, list) else value


def plans(
    folders: Mapping[str, Path],
    settings: Mapping[str, str],
    terraform: str,
    *,
    is_again: bool = False,
) -> Iterator[StackPlan]:
    """Plan all stacks in parallel, with derived generations (`stacks/workflow/generations.py` has `is_again`).

    Raises `NotPlanned` if Terraform fails for a reason other than the plan.
    """

    def planned(run: TerraformCommand) -> Planned:
        if has_generations(run.folder):
            expect_generations(run.folder, run.state(), is_again=is_again)
        found = run.planned()
        is_other = found[1] is not None and raise_generations(run.folder, found[1], is_again=is_again)
        return run.planned() if is_other else found

    runs = [TerraformCommand(folder, settings, terraform) for folder in folders.values()]
    for run in runs:  # one after another: they share the cache of providers
        run.initialised()
    with ThreadPoolExecutor(len(runs)) as pool:
        ended = list(pool.map(planned, runs))
    known = [plan for _, plan in ended if plan is not None]
    waiting: list[str] = []
    declared = declared_pipelines(folders.values())
    for (name, folder), run, (planning, plan) in zip(folders.items(), runs, ended, strict=True):
        why_not = ""
        if planning.returncode == 1:
            marked = known if plan is not None else [*known, run.known_values()]
            if plan is None and not waiting:
                raise NotPlanned(f"{name}: {hidden(errors(planning), *marked)}")
            why_not = _why_not(hidden(error_headings(planning.stderr), *marked) or "its log says why", waiting)
            plan = {**plan, "errored": True} if plan is not None else None
        yield StackPlan(name=name, synthesised=synthesised(folder), plan=plan, why_not=why_not, pipelines=declared)
        outputs = (plan or {}).get("output_changes") or {}
        if plan is None or any("create" in each.get("actions", ()) for each in outputs.values()):  # known after apply
            waiting.append(name)


def _why_not(said: str, waiting: Sequence[str]) -> str:
    """Return why Terraform made no complete plan, from what may be shown of its errors."""
    if not waiting:
        return f"Terraform refuses this plan: {said}"
    return f"Terraform cannot plan it: {said}. Outputs of {', '.join(waiting)} do not exist yet: apply that, then review again"


def declared_pipelines(folders: Iterable[Path]) -> tuple[Mapping[str, Any], ...]:
    """Return the documents of pipelines in all stacks that were synthesised together, of which these are some."""
    folders_of_all = sorted({file.parent for folder in folders for file in folder.parent.glob("*/cdk.tf.json")})
    stacks = [stack for each in folders_of_all if "resource" in (stack := synthesised(each))]
    return tuple(document for each in stacks for document in read(each).documents if "pipelines" in document)
