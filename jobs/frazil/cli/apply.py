"""`frazil apply`: plan a deployment again, and apply that plan if it is the reviewed one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.deployment_program import deployment_program
from frazil.cli.options import EnvironmentOption, environment_name
from frazil.errors import InvalidInput
from frazil.exit_codes import Exit


def apply(
    context: typer.Context,
    env: Annotated[str | None, typer.Argument(metavar="ENV", help="A declared deployment.")] = None,
    option: EnvironmentOption = None,
    reviewed: Annotated[
        Path | None, typer.Option("--reviewed", metavar="FILE", help="Normal form that the review wrote.")
    ] = None,
    acceptances: Annotated[
        Path | None, typer.Option("--acceptances", metavar="FILE", help="Output of frazil acceptances.")
    ] = None,
) -> None:
    """Plan a deployment again, and apply the reviewed plan.

    For example: frazil apply dev --reviewed reviewed.json

    \b
    Applies nothing if the plan is another one.
    Applies nothing if a danger is not accepted.
    Prints the difference as Markdown.
    Needs Terraform and the deployer's permissions.

    \b
    Exit codes:
      0 applied, or nothing changes
      1 refused
      2 invalid input
      4 applied in part; review the rest
      5 not planned
      6 Terraform failed
    """
    program = deployment_program(Path.cwd(), "apply")
    if program is None:
        what, do = "no deployment is declared here", "Run in a project with infra_app.py, or in a checkout of Frazil"
        raise InvalidInput(what, where=str(Path.cwd()), do=do)
    name = environment_name(context, env, option)
    files = {"--reviewed": reviewed, "--acceptances": acceptances}
    arguments = [f"{flag}={file.absolute()}" for flag, file in files.items() if file is not None]
    ended = subprocess.run([*program.command, *arguments, "--", name], cwd=program.root, env=os.environ, check=False)
    if ended.returncode:
        raise typer.Exit(ended.returncode if ended.returncode in frozenset(Exit) else Exit.UNCHECKED)
