"""`frazil deploy apply`: plan a deployment again, and apply that plan if it is the reviewed one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.built_for import description
from frazil.cli.deployment_program import required_program
from frazil.cli.options import EnvironmentOption, environment_name
from frazil.doctor.given_objects_check import refuse_wrong_in_account


def apply(
    context: typer.Context,
    env: Annotated[str | None, typer.Argument(metavar="ENV", help="A declared deployment.")] = None,
    option: EnvironmentOption = None,
    reviewed: Annotated[
        Path | None, typer.Option("--reviewed", metavar="FILE", help="Normal form that the review wrote.")
    ] = None,
    acceptances: Annotated[
        Path | None, typer.Option("--acceptances", metavar="FILE", help="Output of frazil deploy acceptances.")
    ] = None,
    outputs: Annotated[
        Path | None, typer.Option("--outputs", metavar="FILE", help="Write the outputs of the stacks.")
    ] = None,
) -> None:
    """Plan a deployment again, and apply the reviewed plan.

    For example: frazil deploy apply dev --reviewed reviewed.json

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
    program = required_program("apply")
    name = environment_name(context, env, option)
    if (declared := description(name, program.root)) is not None:
        refuse_wrong_in_account(declared)
    files = {"--reviewed": reviewed, "--acceptances": acceptances, "--outputs": outputs}
    arguments = [f"{flag}={file.absolute()}" for flag, file in files.items() if file is not None]
    if code := program.run(*arguments, "--", name):
        raise typer.Exit(code)
