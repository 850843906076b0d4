"""`frazil deploy cost`: what topics cost in a month, before anything is declared."""

from __future__ import annotations

from typing import Annotated

import typer

from frazil.cli.deployment_program import own_program
from frazil.cli.options import AsJson


def cost(
    topics: Annotated[int, typer.Option("--topics", metavar="N", min=1, help="Number of topics.")],
    gb_a_day: Annotated[float, typer.Option("--gb-a-day", metavar="GB", min=0, help="GB a day of each topic.")],
    as_json: AsJson = False,
) -> None:
    """Estimate a month's bill, next to Tableflow's.

    For example: frazil deploy cost --topics 50 --gb-a-day 5

    \b
    Needs neither account nor project.
    Uses dated list prices, and prints all assumptions.

    \b
    Exit codes:
      0 printed
      2 invalid input
    """
    arguments = [f"--topics={topics}", f"--gb-a-day={gb_a_day:.15g}", *(["--json"] if as_json else [])]
    if code := own_program("stacks.monthly_bill").run(*arguments):
        raise typer.Exit(code)
