"""The program that knows the deployments around a folder: that of a project, or of a checkout of Frazil."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from frazil.project.project_file import DEPLOYMENTS, NAME


@dataclass(frozen=True, slots=True)
class DeploymentProgram:
    """The folder in which the program runs, and how it begins: deployment has packages that no command imports."""

    root: Path
    command: tuple[str, ...]


def deployment_program(start: Path, verb: str) -> DeploymentProgram | None:
    """Return the program for a verb of `stacks/program.py`, by the nearest folder that has one; None if no folder has."""
    module = verb.replace("-", "_")
    for folder in (start, *start.parents):
        if (folder / NAME).is_file() and (folder / DEPLOYMENTS).is_file():
            return DeploymentProgram(folder, (sys.executable, DEPLOYMENTS, verb))
        if (folder / "stacks" / f"{module}.py").is_file():
            return DeploymentProgram(folder, (sys.executable, "-m", f"stacks.{module}"))
    return None
