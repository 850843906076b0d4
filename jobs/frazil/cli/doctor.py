"""`frazil doctor`: check what pipelines need in an environment, and print the remedy of each failure."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from frazil.cli.console import SIGNS, checked, counted, out, plain, show_json
from frazil.cli.deploy.program import description
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineNames, PipelinesFile, command_secrets, flag
from frazil.exit_codes import Exit, worst
from frazil.project import declaration_file

if TYPE_CHECKING:
    from frazil.doctor.check_result import Check


def doctor(
    names: PipelineNames = None,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    columns: Annotated[bool, flag("--columns", "Print the columns that topics would become.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check what pipelines need in an environment.

    For example: frazil doctor --env prod

    Checks all declared pipelines by default.
    Starts no Spark. Ends within 10 seconds.
    Checks the AWS account of a declared deployment.
    Writes one small object below the warehouse, and deletes it.

    Exit codes: 0 no failure; 1 a jar differs from its locked hash; 2 a file of the project is invalid; 3 a
    service, a secret or Java is unavailable; 6 a schema cannot be read
    """
    from frazil.doctor.check_result import Result
    from frazil.doctor.examination import examination, project

    secrets = command_secrets()
    loaded = project(file, env, names or [])
    console = out()
    checks: list[Check] = []
    described = description(env, Path.cwd())
    declared = None if described is None else (env, described)
    for check in examination(loaded, secrets, now=time.time, new_id=lambda: uuid.uuid4().hex, declared=declared):
        checks.append(check)
        if not as_json:
            style = "dim" if check.result == "skipped" else ""
            console.print(checked(check.result, check.name, check.found, style), soft_wrap=True)
            if check.remedy:
                console.print(Text(f"    {plain(check.remedy)}", style=SIGNS[check.result][2]), soft_wrap=True)
            for column, kind in check.columns if columns else ():
                console.print(Text(f"    {plain(column)}  {plain(kind)}", style="dim"), soft_wrap=True)
    code = worst(check.exit for check in checks)
    counts = {each.value: sum(check.result is each for check in checks) for each in Result}
    if as_json:
        show_json({"checks": [check.document() for check in checks], "counts": counts, "exit_code": int(code)})
    else:
        console.print(counted(counts))
    if code is not Exit.SUCCESS:
        raise typer.Exit(code)
