"""The program that knows the deployments around a folder, and what it says of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from frazil.cli.options import environment_name
from frazil.errors import InvalidInput, LocalPartFailed
from frazil.errors.missing_package import missing_package
from frazil.exit_codes import Exit
from frazil.project.project_file import DEPLOYMENTS, NAME

PACKAGE = "cdktf"
"""A package of the extra `infra`."""
OWN = "frazil_deploy"
"""The package of the wheel that a project's program imports (ADR 48)."""


@dataclass(frozen=True, slots=True)
class DeploymentProgram:
    """The folder in which the program runs, and how it begins: deployment has packages that no command imports."""

    root: Path
    command: tuple[str, ...]

    def run(self, *arguments: str, variables: Mapping[str, str] | None = None) -> None:
        """Run the verb at this process's terminal, with further variables.

        Raises `typer.Exit` with its code, if that is not 0. A code that Frazil does not have is `UNCHECKED`.
        """
        command, settings = [*self.command, *arguments], {**os.environ, **(variables or {})}
        if code := subprocess.run(command, cwd=self.root, env=settings, check=False).returncode:
            raise typer.Exit(code if code in frozenset(Exit) else Exit.UNCHECKED)


def options(**values: str | Path | bool | None) -> list[str]:
    """Return the options of a program that have a value. A path is absolute, since the program runs in another folder."""
    made = []
    for name, value in values.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            made.append(option)
        elif value:
            made.append(f"{option}={value.absolute() if isinstance(value, Path) else value}")
    return made


def deployment_program(start: Path, verb: str) -> DeploymentProgram | None:
    """Return the program for a verb of `stacks/workflow/program.py`, by the nearest folder that has one; None if no folder has.

    Raises `LocalPartFailed` if the packages of deployment are not installed.
    """
    module = verb.replace("-", "_")
    for folder in (start, *start.parents):
        if (folder / NAME).is_file() and (folder / DEPLOYMENTS).is_file():
            if find_spec(PACKAGE) is None and (missing := missing_package(PACKAGE)):
                raise missing
            if find_spec(OWN) is None and OWN in (folder / DEPLOYMENTS).read_text("utf-8"):
                what, do = f"Frazil is installed from a checkout, which has no {OWN}", "Install the wheel"
                raise LocalPartFailed(what, where=str(folder / DEPLOYMENTS), do=f"{do} (docs/install.md)")
            return DeploymentProgram(folder, (sys.executable, DEPLOYMENTS, verb))
        if (folder / "stacks" / "workflow" / f"{module}.py").is_file():
            return DeploymentProgram(folder, (sys.executable, "-m", f"stacks.workflow.{module}"))
    return None


def own_program(module: str) -> DeploymentProgram:
    """Return a program of this version that needs no deployment: of the wheel, or of the checkout that is installed."""
    if find_spec(OWN) is not None:
        return DeploymentProgram(Path.cwd(), (sys.executable, "-m", f"{OWN}.{module}"))
    return DeploymentProgram(Path(__file__).resolve().parents[4], (sys.executable, "-m", module))


def required_program(verb: str) -> DeploymentProgram:
    """Return the program around the working folder. Raises `InvalidInput` if there is none."""
    program = deployment_program(Path.cwd(), verb)
    if program is None:
        what, do = "no deployment is declared here", "Run in a project with infra_app.py, or in a checkout of Frazil"
        raise InvalidInput(what, where=str(Path.cwd()), do=do)
    return program


def declared_deployment(env: str | None, option: str | None) -> tuple[DeploymentProgram, str, dict[str, Any]]:
    """Return the program that deploys, the environment that a command is about, and its description."""
    program, name = required_program("deploy"), environment_name(env, option)
    return program, name, required_description(name, program.root)


UNKNOWN = 3
"""The exit code of `stacks.workflow.describe` for an environment that is not declared."""


def required_description(environment: str, start: Path) -> dict[str, Any]:
    """Return the description of an environment. Raises `InvalidInput` if nothing declares it."""
    found = description(environment, start)
    if found is None:
        do = "Declare its deployment in infra_app.py or stacks/spec/deployments.py"
        raise InvalidInput("it is not declared", where=f"environment {environment}", do=do)
    return found


def description(environment: str, start: Path) -> dict[str, Any] | None:
    """Return what `stacks/workflow/describe.py` prints of a declared environment; None if nothing declares it."""
    program = deployment_program(start, "describe")
    if program is None:
        return None
    command = [*program.command, environment]
    ended = subprocess.run(command, cwd=program.root, capture_output=True, text=True, check=False)
    if ended.returncode == UNKNOWN:
        return None
    if ended.returncode:
        raise InvalidInput(ended.stderr.strip(), where=str(program.root), do="Correct its deployments")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
