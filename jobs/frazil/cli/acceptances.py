"""`frazil deploy acceptances`: the dangers that code owners accepted on a pull request."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Annotated

import typer

from frazil.cli.console import err, show_json
from frazil.cli.options import EnvironmentOption, environment_name
from frazil.errors import InvalidInput


def acceptances(
    context: typer.Context,
    env: Annotated[str | None, typer.Argument(metavar="ENV", help="A declared deployment.")] = None,
    option: EnvironmentOption = None,
    repository: Annotated[
        str, typer.Option("--repository", metavar="OWNER/NAME", envvar="GITHUB_REPOSITORY", help="GitHub repository.")
    ] = "",
    number: Annotated[int, typer.Option("--pull-request", metavar="NUMBER", min=1, help="Pull request.")] = 0,
    author_may_accept: Annotated[
        bool, typer.Option("--author-may-accept", help="Count authors of the pull request, too.")
    ] = False,
    api: Annotated[
        str, typer.Option("--api", metavar="URL", envvar="GITHUB_API_URL", help="Address of GitHub's API.")
    ] = "https://api.github.com",
) -> None:
    """Print the dangers that code owners accepted, as JSON.

    For example: frazil deploy acceptances prod --repository shop/lake --pull-request 12

    \b
    A code owner accepts by a comment:
      frazil accept DIGEST CODE,…: REASON
    Owners are those of deployed/ENV.json on the base branch.
    Edited comments do not count.
    GITHUB_TOKEN needs read permissions.

    \b
    Exit codes:
      0 printed
      2 invalid input
      3 GitHub is unavailable
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
    name = environment_name(context, env, option)
    accepted, ignored = read(name, pull, author_may_accept=author_may_accept)
    for each in ignored:
        err().print(f"{each.url}: the comment does not count: {each.why}", markup=False)
    show_json(
        {
            "environment": name,
            "accepted": [asdict(each) for each in accepted],
            "ignored": [asdict(each) for each in ignored],
        }
    )
