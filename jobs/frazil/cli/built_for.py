"""What a release must be built for, by the environments that the checkout or the project declares."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frazil.cli.deployment_program import deployment_program
from frazil.errors import InvalidInput
from frazil.release.manifest import Architecture

UNKNOWN = 3
"""How `stacks.describe` ends for an environment that is not declared."""


@dataclass(frozen=True, slots=True)
class BuiltFor:
    """An EMR label, and processors."""

    label: str
    architecture: Architecture


def built_for(environment: str, start: Path) -> BuiltFor:
    """Return what the project or the checkout around `start` declares of an environment.

    Raises `InvalidInput` outside of both, and for an environment that is not declared.
    """
    found = declared(environment, start)
    if found is None:
        what = "no deployment of this name is declared here"
        do = "Declare it in infra_app.py or stacks/deployments.py, or give --label and --architecture"
        raise InvalidInput(what, where=f"environment {environment}", do=do)
    return found


def declared(environment: str, start: Path) -> BuiltFor | None:
    """Return the same; None if nothing declares the environment."""
    found = description(environment, start)
    return None if found is None else BuiltFor(found["label"], Architecture(found["architecture"]))


def required_description(environment: str, start: Path) -> dict[str, Any]:
    """Return the description of an environment. Raises `InvalidInput` if nothing declares it."""
    found = description(environment, start)
    if found is None:
        raise InvalidInput("it is not declared", where=f"environment {environment}", do="Declare its deployment")
    return found


def description(environment: str, start: Path) -> dict[str, Any] | None:
    """Return what `stacks/describe.py` prints of a declared environment; None if nothing declares it."""
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
