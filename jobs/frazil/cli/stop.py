"""`frazil jobs stop` and `frazil jobs start`: stop and start pipelines of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from frazil.cli import aws
from frazil.cli.options import AsJson, EnvironmentChoice
from frazil.cli.reconcile import Minutes, bring_about, reconciler
from frazil.clients.secrets import Secrets
from frazil.project import environments

Names = Annotated[list[str], typer.Argument(metavar="PIPELINE...", help="Pipelines of the job, by name.")]


def stop(
    context: typer.Context,
    names: Names,
    env: EnvironmentChoice = "local",
    minutes: Minutes = 120,
    as_json: AsJson = False,
) -> None:
    """Stop pipelines of a job.

    For example: frazil jobs stop orders --env prod

    \b
    A deployment does not start them; `frazil jobs start` does.
    A run without these pipelines replaces the job's run.
    Records stay in their topics, subject to retention.

    \b
    Exit codes:
      same as `frazil jobs reconcile`
    """
    _change(context, names, env, minutes, is_stopped=True, as_json=as_json)


def start(
    context: typer.Context,
    names: Names,
    env: EnvironmentChoice = "local",
    minutes: Minutes = 120,
    as_json: AsJson = False,
) -> None:
    """Start stopped pipelines at the offsets of their tables.

    For example: frazil jobs start orders --env prod

    \b
    Exit codes:
      same as `frazil jobs reconcile`
    """
    _change(context, names, env, minutes, is_stopped=False, as_json=as_json)


def _change(
    context: typer.Context, names: list[str], env: str, minutes: int, *, is_stopped: bool, as_json: bool
) -> None:
    from frazil.rollout.group_jobs import job_of
    from frazil.rollout.stopped_pipelines import change_stop

    place = environments.environment(env)
    secrets: Secrets = context.find_root().obj
    at_work, store = reconciler(place, secrets), aws.artifact_store(place, secrets)
    job = job_of(store, names)
    change_stop(store, at_work.desired(job), *names, is_stopped=is_stopped)
    bring_about(at_work, [job], minutes=minutes, as_json=as_json)
