"""`frazil deploy plan`, `apply`, `acceptances` and `cost`: what a deployment would do, and what was accepted."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.console import note, show_json
from frazil.cli.deploy.program import description, options, own_program, required_program
from frazil.cli.options import EnvironmentOption, argument, environment_name, flag
from frazil.doctor.deployment_account import refuse_wrong_in_account
from frazil.errors import InvalidInput

NO_RELEASE = "none"
"""The value of `--release` if nothing should run, as in a first deployment."""

Declared = Annotated[str | None, argument("ENV", "A declared deployment.")]
Acceptances = Annotated[Path | None, flag("--acceptances", "Output of frazil deploy acceptances.", "FILE")]


def review(
    env: Declared = None,
    option: EnvironmentOption = None,
    file: Annotated[Path | None, flag("--pipelines", "Pipelines to deploy.", "FILE", envvar="FRAZIL_PIPELINES")] = None,
    release: Annotated[
        str | None, flag("--release", "Manifest of the release to run, or none.", "FILE|none", envvar="FRAZIL_RELEASE")
    ] = None,
    synthesised: Annotated[Path | None, flag("--synthesised", "Plan another checkout's stacks.", "DIR")] = None,
    offline: Annotated[bool, flag("--offline", "Review a first deployment, without credentials.")] = False,
    only_changed: Annotated[bool, flag("--only-changed", "Plan nothing if those are this checkout's.")] = False,
    assumptions: Annotated[
        Path | None, flag("--assumptions", "Assumptions of the cost estimate, as JSON.", "FILE")
    ] = None,
    topics: Annotated[Path | None, flag("--topics", "Output of frazil schema topics --json.", "FILE")] = None,
    reason: Annotated[str, flag("--accept-danger", "Accept dangers; the review names the reason.", "REASON")] = "",
    acceptances: Acceptances = None,
    form: Annotated[Path | None, flag("--form", "Write the normal form of the plans.", "FILE")] = None,
) -> None:
    """Review a deployment: its changes, data, permissions and cost.

    For example: frazil deploy plan dev --release dist/release/manifest.json > review.md

    Changes nothing.
    Runs in a project, or in a checkout.
    Needs Terraform and read permissions, unless --offline.
    Plans hold secrets and are deleted; the review holds none.

    Exit codes: 0 nothing changes; 1 refused because of a danger or a guardrail; 2; 4 something changes; 5 not
    reviewed
    """
    if offline and (synthesised or only_changed or acceptances or form):
        what = "it has no plan of Terraform"
        raise InvalidInput(what, where="--offline", do="Leave out --offline, or what needs a plan")
    program = required_program("review")
    name = environment_name(env, option)
    arguments = options(accept_danger=reason.strip())
    arguments += options(synthesised=synthesised, assumptions=assumptions, acceptances=acceptances)
    arguments += options(topics=topics, form=form)
    arguments += options(only_changed=only_changed, offline=offline)
    variables = {} if file is None else {"FRAZIL_PIPELINES": str(file.absolute())}
    if release:
        variables["FRAZIL_RELEASE"] = release if release == NO_RELEASE else str(Path(release).absolute())
    program.run(*arguments, "--", name, variables=variables)


def apply(
    env: Declared = None,
    option: EnvironmentOption = None,
    reviewed: Annotated[Path | None, flag("--reviewed", "Normal form that the review wrote.", "FILE")] = None,
    acceptances: Acceptances = None,
    outputs: Annotated[Path | None, flag("--outputs", "Write the outputs of the stacks.", "FILE")] = None,
) -> None:
    """Plan a deployment again, and apply the reviewed plan.

    For example: frazil deploy apply dev --reviewed reviewed.json

    Applies nothing if the plan is another one.
    Applies nothing if a danger is not accepted.
    Prints the difference as Markdown.
    Needs Terraform and the deployer's permissions.

    Exit codes: 0 applied, or nothing changes; 1 refused; 2; 4 applied in part; review the rest; 5; 6
    """
    program = required_program("apply")
    name = environment_name(env, option)
    if (declared := description(name, program.root)) is not None:
        refuse_wrong_in_account(declared)
    program.run(*options(reviewed=reviewed, acceptances=acceptances, outputs=outputs), "--", name)


def acceptances(
    env: Declared = None,
    option: EnvironmentOption = None,
    repository: Annotated[
        str, flag("--repository", "GitHub repository.", "OWNER/NAME", envvar="GITHUB_REPOSITORY")
    ] = "",
    number: Annotated[int, flag("--pull-request", "Pull request.", "NUMBER", min=1)] = 0,
    author_may_accept: Annotated[bool, flag("--author-may-accept", "Count authors of the pull request, too.")] = False,
    api: Annotated[
        str, flag("--api", "Address of GitHub's API.", "URL", envvar="GITHUB_API_URL")
    ] = "https://api.github.com",
) -> None:
    """Print the dangers that code owners accepted, as JSON.

    For example: frazil deploy acceptances prod --repository shop/lake --pull-request 12

    A code owner accepts by a comment:
      frazil accept DIGEST CODE,…: REASON
    Owners are those of deployed/ENV.json on the base branch.
    Edited comments do not count.
    GITHUB_TOKEN needs read permissions.

    Exit codes: 0 printed; 2; 3 GitHub is unavailable
    """
    from frazil.clients.github import PullRequest
    from frazil.project.acceptances import acceptances as read
    from frazil.project.code_owners import PLACES

    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise InvalidInput("it is not set", where="GITHUB_TOKEN", do="Give it read permission on the repository")
    if repository.count("/") != 1 or not number:
        raise typer.BadParameter("write --repository OWNER/NAME and --pull-request NUMBER")
    pull = PullRequest(repository, number, token=token, code_owner_files=PLACES, api=api)
    name = environment_name(env, option)
    accepted, ignored = read(name, pull, author_may_accept=author_may_accept)
    for each in ignored:
        note(f"{each.url}: the comment does not count: {each.why}")
    listed = {"accepted": list(map(asdict, accepted)), "ignored": list(map(asdict, ignored))}
    show_json({"environment": name, **listed})


def cost(
    topics: Annotated[int, flag("--topics", "Number of topics.", "N", min=1)],
    gb_a_day: Annotated[float, flag("--gb-a-day", "GB a day of each topic.", "GB", min=0)],
) -> None:
    """Estimate a month's bill, next to Tableflow's.

    For example: frazil deploy cost --topics 50 --gb-a-day 5

    Needs neither account nor project.
    Uses dated list prices, and prints all assumptions.

    Exit codes: 0 printed; 2
    """
    arguments = options(topics=str(topics), gb_a_day=f"{gb_a_day:.15g}")
    own_program("stacks.workflow.monthly_bill").run(*arguments)
