"""Review plans: what Terraform would do, stack by stack, planned in a private folder that is gone afterwards.

A plan's JSON holds secrets in plain text. It is read into memory and never leaves the folder. Nothing is locked or written:
a plan needs to read the state, and what stands.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from policies.review.masking import hidden
from policies.review.review import StackPlan
from stacks.deployed import file_of
from stacks.deployments import DEPLOYMENTS

STACKS = ("foundation", "confluent", "ingestion")
"""In the order in which they are deployed: each takes outputs of those before it."""

_ERROR = re.compile(r"^(?:[│|╷]\s*)?Error: (.+)$", re.MULTILINE)


class NotPlanned(Exception):
    """Synthesis or Terraform failed; the text is what it said."""


def synthesise(environment: str, folder: Path, settings: Mapping[str, str]) -> dict[str, Path]:
    """The folders of the environment's stacks, by name, below `folder`. Raises `NotPlanned`."""
    out = folder / "cdktf.out"
    state = Path.cwd() / ".frazil"
    if state.is_dir():
        # The local environment keeps its state beside `cdktf.out`, and is to find it from here, too.
        (folder / ".frazil").symlink_to(state)
    # Synthesis compares with the file of deployed objects and writes it; a review writes into a copy.
    file, copy = file_of(DEPLOYMENTS[environment], settings.get("FRAZIL_DEPLOYED", "")), folder / "deployed"
    copy.mkdir()
    if file.is_file():
        shutil.copyfile(file, copy / file.name)
    told = {"FRAZIL_ENVIRONMENTS": environment, "CDKTF_OUTDIR": str(out), "FRAZIL_DEPLOYED": str(copy)}
    ended = subprocess.run(
        [sys.executable, "-m", "stacks.app"],
        env={**settings, **told},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise NotPlanned(ended.stderr.strip().removeprefix("error: ") or "synthesis failed")
    return {f"{environment}-{what}": out / "stacks" / f"{environment}-{what}" for what in STACKS}


def synthesised(folder: Path) -> dict[str, Any]:
    """A stack's JSON."""
    told: dict[str, Any] = json.loads((folder / "cdk.tf.json").read_text("utf-8"))
    return told


def plans(folders: Mapping[str, Path], settings: Mapping[str, str], terraform: str) -> Iterator[StackPlan]:
    """Plan each stack, all at once. Raises `NotPlanned` where Terraform fails for a reason that is not the plan's own."""
    runs = [_Terraform(folder, settings, terraform) for folder in folders.values()]
    for run in runs:  # one after another: they share what providers are downloaded to
        run.must("init", "-input=false", "-no-color")
    with ThreadPoolExecutor(len(runs)) as pool:
        ended = list(pool.map(_Terraform.planned, runs))
    waiting: list[str] = []
    for (name, folder), (planning, plan) in zip(folders.items(), ended, strict=True):
        told, why_not = plan, ""
        if planning.returncode == 1:
            if told is None and not waiting:
                raise NotPlanned(f"{name}: {(planning.stderr or planning.stdout).strip()}")
            why_not = _why_not(planning.stderr, told or {}, waiting)
            told = {**told, "errored": True} if told is not None else None
        yield StackPlan(name=name, synthesised=synthesised(folder), plan=told, why_not=why_not)
        if told is None or _makes_outputs(told):
            waiting.append(name)


def _why_not(stderr: str, plan: Mapping[str, Any], waiting: Sequence[str]) -> str:
    """Why Terraform made no plan, or no whole one: the headings of what it said, without the plan's secrets."""
    said = hidden("; ".join(dict.fromkeys(_ERROR.findall(stderr))), plan) or "its log says why"
    if not waiting:
        return f"Terraform refuses this plan: {said}"
    return f"Terraform cannot plan it: {said}. Outputs of {', '.join(waiting)} do not stand yet: apply that, then review again"


class _Terraform:
    """Terraform in a stack's folder."""

    def __init__(self, folder: Path, settings: Mapping[str, str], program: str) -> None:
        self._folder, self._program = folder, program
        # Logs of Terraform's would hold the plan's values, at a place of their own.
        kept = {name: value for name, value in settings.items() if not name.startswith("TF_LOG")}
        self._settings = {**kept, "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1", **_provider_cache(folder, kept)}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it; whatever it ends with."""
        return subprocess.run(
            [self._program, *arguments],
            cwd=self._folder,
            env=self._settings,
            capture_output=True,
            text=True,
            check=False,
        )

    def must(self, *arguments: str) -> str:
        """Run it, and raise `NotPlanned` if it fails."""
        ended = self(*arguments)
        if ended.returncode:
            raise NotPlanned(f"{self._folder.name}: {(ended.stderr or ended.stdout).strip()}")
        return ended.stdout

    def planned(self) -> tuple[subprocess.CompletedProcess[str], dict[str, Any] | None]:
        """Plan; how that ended, and the plan as JSON if there is one. The JSON is not written anywhere."""
        ended = self("plan", "-input=false", "-no-color", "-lock=false", "-detailed-exitcode", "-out=plan")
        is_there = (self._folder / "plan").is_file()
        return ended, json.loads(self.must("show", "-json", "plan")) if is_there else None


def _provider_cache(folder: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """One download of the providers for all stacks, unless somebody has set up how they are found."""
    if settings.keys() & {"TF_PLUGIN_CACHE_DIR", "TF_CLI_CONFIG_FILE"}:
        return {}
    shared = folder.parent.parent.parent / "providers"
    shared.mkdir(exist_ok=True)
    return {"TF_PLUGIN_CACHE_DIR": str(shared), "TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE": "1"}


def _makes_outputs(plan: Mapping[str, Any]) -> bool:
    """Whether outputs of this stack come with its application."""
    return any("create" in each.get("actions", ()) for each in (plan.get("output_changes") or {}).values())


def given(named: Sequence[str], folders: Mapping[str, Path]) -> Iterator[StackPlan]:
    """Plans that were made already: `FILE`, named for its stack (`dev-confluent.json`), or `STACK=FILE`.

    Raises `NotPlanned` for a stack that is none, or a file that is no plan.
    """
    files = {}
    for each in named:
        stack, is_named, file = each.partition("=")
        path = Path(file if is_named else each)
        files[stack if is_named else path.stem] = path
    unknown = sorted(files.keys() - folders.keys())
    if unknown:
        raise NotPlanned(f"{', '.join(unknown)}: there is no such stack; there are {', '.join(folders)}")
    for name, folder in folders.items():
        if name in files:
            yield StackPlan(name=name, synthesised=synthesised(folder), plan=_read(files[name]))


def _read(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise NotPlanned(f"{file}: it cannot be read: {type(error).__name__}") from None
    if not isinstance(told, dict) or ("resource_changes" not in told and "planned_values" not in told):
        raise NotPlanned(f"{file}: it is no plan, as `terraform show -json` tells it")
    return told
