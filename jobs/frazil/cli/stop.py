"""`frazil stop` and `frazil start`: pipelines of a job that runs for ever, by what is wanted of it."""

from __future__ import annotations

from typing import Annotated

import typer

from frazil.cli import aws
from frazil.cli.options import AsJson, EnvironmentChoice, JobName
from frazil.cli.reconcile import Minutes, bring_about, reconciler
from frazil.clients.secrets import Secrets
from frazil.project import environments

Names = Annotated[list[str], typer.Argument(metavar="PIPELINE...", help="Pipelines of the job, by name.")]


def stop(
    context: typer.Context,
    names: Names,
    env: EnvironmentChoice = "local",
    job: JobName = "ingest",
    minutes: Minutes = 120,
    as_json: AsJson = False,
) -> None:
    """Have pipelines land nothing more, until they are started again; a deployment does not start them.

    For example: frazil stop orders --environment prod

    The job's run is replaced by one without them, or by none if no pipeline is left, as `frazil reconcile` does. What is not
    landed stays in its topic, as long as that keeps it. Exit codes: those of `frazil reconcile`; 2 also for a job whose runs
    a schedule starts.
    """
    _change(context, names, env, job, minutes, is_stopped=True, as_json=as_json)


def start(
    context: typer.Context,
    names: Names,
    env: EnvironmentChoice = "local",
    job: JobName = "ingest",
    minutes: Minutes = 120,
    as_json: AsJson = False,
) -> None:
    """Have stopped pipelines go on, from where their tables end.

    For example: frazil start orders --environment prod

    Exit codes: those of `frazil reconcile`.
    """
    _change(context, names, env, job, minutes, is_stopped=False, as_json=as_json)


def _change(
    context: typer.Context, names: list[str], env: str, job: str, minutes: int, *, is_stopped: bool, as_json: bool
) -> None:
    from frazil.rollout.stopped_pipelines import change_stop

    place = environments.environment(env)
    secrets: Secrets = context.find_root().obj
    at_work = reconciler(place, secrets)
    change_stop(aws.artifact_store(place, secrets), at_work.desired(job), *names, is_stopped=is_stopped)
    bring_about(at_work, job, minutes=minutes, as_json=as_json)
