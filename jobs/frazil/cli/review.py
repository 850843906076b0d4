"""`frazil deploy plan`: what a deployment would do, before it does it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.deployment_program import required_program
from frazil.cli.options import AsJson, EnvironmentOption, environment_name
from frazil.errors import InvalidInput

NO_RELEASE = "none"
"""What `--release` says where nothing should run, as in a first deployment."""


def review(
    context: typer.Context,
    env: Annotated[str | None, typer.Argument(metavar="ENV", help="A declared deployment.")] = None,
    option: EnvironmentOption = None,
    plans: Annotated[
        list[str] | None,
        typer.Option("--plan", metavar="[STACK=]FILE", help="A plan, as printed by `terraform show -json`."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--pipelines", metavar="FILE", envvar="FRAZIL_PIPELINES", help="Pipelines to deploy."),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            metavar="FILE|none",
            envvar="FRAZIL_RELEASE",
            help="Manifest of the release to run, or none.",
        ),
    ] = None,
    synthesised: Annotated[
        Path | None, typer.Option("--synthesised", metavar="DIR", help="Plan another checkout's stacks.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Review a first deployment, without credentials.")] = False,
    only_changed: Annotated[
        bool, typer.Option("--only-changed", help="Plan nothing if those are this checkout's.")
    ] = False,
    before: Annotated[
        Path | None, typer.Option("--before", metavar="FILE", help="Deployed document of pipelines.")
    ] = None,
    assumptions: Annotated[
        Path | None,
        typer.Option("--assumptions", metavar="FILE", help="Assumptions of the cost estimate, as JSON."),
    ] = None,
    reason: Annotated[
        str,
        typer.Option("--accept-danger", metavar="REASON", help="Accept dangers; the review names the reason."),
    ] = "",
    acceptances: Annotated[
        Path | None, typer.Option("--acceptances", metavar="FILE", help="Output of frazil deploy acceptances.")
    ] = None,
    form: Annotated[
        Path | None, typer.Option("--form", metavar="FILE", help="Write the normal form of the plans.")
    ] = None,
    commit: Annotated[str, typer.Option("--commit", metavar="SHA", help="Commit that the review names.")] = "",
    as_json: AsJson = False,
) -> None:
    """Review a deployment: its changes, data, permissions and cost.

    For example: frazil deploy plan dev --release dist/release/manifest.json > review.md

    \b
    Changes nothing.
    Runs in a project, or in a checkout.
    Needs Terraform and read permissions, unless --offline.
    Plans hold secrets and are deleted; the review holds none.

    \b
    Exit codes:
      0 nothing changes
      1 refused because of a danger or a guardrail
      2 invalid input
      4 something changes
      5 not reviewed
    """
    if offline and (plans or synthesised or only_changed or acceptances or form):
        raise InvalidInput(
            "it has no plan of Terraform", where="--offline", do="Leave out --offline, or what needs a plan"
        )
    program = required_program("review")
    name = environment_name(context, env, option)
    arguments = [*(["--json"] if as_json else []), *([f"--accept-danger={reason}"] if reason.strip() else [])]
    for each in plans or ():
        stack, is_named, path = each.rpartition("=")
        arguments.append(f"--plan={stack}{is_named}{Path(path).absolute()}")
    files = {
        "--synthesised": synthesised,
        "--before": before,
        "--assumptions": assumptions,
        "--acceptances": acceptances,
        "--form": form,
    }
    for flag, path_of in files.items():
        arguments += [f"{flag}={path_of.absolute()}"] if path_of is not None else []
    arguments += ["--only-changed"] if only_changed else []
    arguments += ["--offline"] if offline else []
    arguments += [f"--commit={commit}"] if commit else []
    variables = {} if file is None else {"FRAZIL_PIPELINES": str(file.absolute())}
    if release:
        variables["FRAZIL_RELEASE"] = release if release == NO_RELEASE else str(Path(release).absolute())
    if code := program.run(*arguments, "--", name, variables=variables):
        raise typer.Exit(code)
