"""`frazil doctor`: check what pipelines need in an environment, and print the remedy of each failure."""

from __future__ import annotations

import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from frazil.cli.console import out, plain, show_json
from frazil.cli.deploy.program import description
from frazil.cli.options import AsJson, EnvironmentChoice, PipelineNames, PipelinesFile, flag
from frazil.clients.secrets import Secrets
from frazil.exit_codes import Exit
from frazil.project import declaration_file

if TYPE_CHECKING:
    from frazil.doctor.check_result import Check

SIGNS = {
    "ok": ("✓", "ok  ", "green"),
    "warning": ("!", "warn", "yellow"),
    "failed": ("✗", "FAIL", "red"),
    "skipped": ("–", "skip", "dim"),
}
"""The sign of each result, a word where the terminal has no such sign, and a style."""
WIDTH = 24
"""Characters of a check's name, up to which what was found is aligned."""


def doctor(
    context: typer.Context,
    names: PipelineNames = None,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    columns: Annotated[bool, flag("--columns", "Print the columns that topics would become.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check what pipelines need in an environment.

    For example: frazil doctor --env prod

    \b
    Checks all declared pipelines by default.
    Starts no Spark. Ends within 10 seconds.
    Checks the AWS account of a declared deployment.
    Writes one small object below the warehouse, and deletes it.

    \b
    Exit codes:
      0 no failure
      1 a jar differs from its locked hash
      2 a file of the project is invalid
      3 a service, a secret or Java is unavailable
      6 a schema cannot be read
    """
    from frazil.doctor.check_result import exit_of_checks
    from frazil.doctor.examination import examination, project

    secrets: Secrets = context.find_root().obj
    loaded = project(file, env, names or [])
    console = out()
    checks: list[Check] = []
    described = description(env, Path.cwd())
    declared = None if described is None else (env, described)
    for check in examination(loaded, secrets, now=time.time, new_id=lambda: uuid.uuid4().hex, declared=declared):
        checks.append(check)
        if not as_json:
            _print_check(console, check)
            for column, kind in check.columns if columns else ():
                console.print(Text(f"    {plain(column)}  {plain(kind)}", style="dim"), soft_wrap=True)
    code = exit_of_checks(checks)
    counts = {name: sum(check.result.value == name for check in checks) for name in SIGNS}
    if as_json:
        show_json({"checks": [check.document() for check in checks], "counts": counts, "exit_code": int(code)})
    else:
        console.print(Text(", ".join(f"{number} {name}" for name, number in counts.items() if number)))
    if code is not Exit.SUCCESS:
        raise typer.Exit(code)


def _print_check(console: Console, check: Check) -> None:
    sign, word, style = SIGNS[check.result.value]
    text = Text()
    text.append(sign if has_signs() else word, style=style)
    text.append(f" {plain(check.name):{WIDTH}} {plain(check.found)}", style="dim" if check.result == "skipped" else "")
    console.print(text, soft_wrap=True)
    if check.remedy:
        console.print(Text(f"    {plain(check.remedy)}", style=style), soft_wrap=True)


def has_signs() -> bool:
    """Return whether stdout can print the signs: not every encoding has them."""
    try:
        "".join(sign for sign, *_ in SIGNS.values()).encode(sys.stdout.encoding or "ascii")
        return True
    except (UnicodeEncodeError, LookupError):
        return False
