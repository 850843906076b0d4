"""`frazil deploy move-application`: deploy, move the runs, and stop the application that they left.

The declaration says where runs go. Each step finds by itself what an earlier attempt has finished.
"""

from __future__ import annotations

import time

import typer

from frazil.cli import aws
from frazil.cli.built_for import required_description
from frazil.cli.console import err, out, plain
from frazil.cli.deploy import (
    Acceptances,
    Again,
    Declared,
    Reason,
    ReleaseFile,
    Yes,
    deployed,
    flags,
    reconcile_jobs,
)
from frazil.cli.deployment_program import required_program
from frazil.cli.options import EnvironmentOption, environment_name
from frazil.cli.reconcile import LOCAL_LOOK_SECONDS, LOOK_SECONDS, Minutes
from frazil.errors import InvalidInput

FORMER = "former_applications"
"""The member of a deployment's description, and the output of the stack `ingestion`, in the same order."""


def move_application(
    context: typer.Context,
    env: Declared = None,
    option: EnvironmentOption = None,
    release: ReleaseFile = None,
    reason: Reason = "",
    acceptances: Acceptances = None,
    again: Again = False,
    yes: Yes = False,
    minutes: Minutes = 120,
) -> None:
    """Move job runs to another application.

    For example: frazil deploy move-application prod

    \b
    Declare the new application and the former one first.
    Deploys both, as frazil deploy up does.
    Reconciles: old runs end, new ones start and prove themselves.
    Stops the former application after its last run.
    After an interruption, repeat the command.

    \b
    Exit codes:
      0 moved: the former application is stopped
      1 refused, rolled back, or runs are left
      2 invalid input
      3 a service is unavailable
      5 not planned
      6 Terraform failed
    """
    from frazil.rollout.former_application import stop_former

    program = required_program("deploy")
    name = environment_name(context, env, option)
    declared = required_description(name, program.root)
    former = declared[FORMER]
    if not former:
        do = "Give the new one a name in `application`, and list the one before in `former_applications` (docs/deploy.md)"
        raise InvalidInput("no former application is declared", where=f"environment {name}", do=do)
    _print("move", f"from {', '.join(former)} to {declared['application']}")
    made = deployed(program, name, declared, release, flags(reason, acceptances, again=again, yes=yes))
    if made is None:
        raise InvalidInput("no job runs", where=f"environment {name}", do="Deploy a release and a pipeline of Spark")
    secrets = context.find_root().obj
    try:
        reconcile_jobs(made.place, secrets, minutes)
    except typer.Exit:
        _print("move", f"not finished: a job still runs on {', '.join(former)}. Fix the cause, then repeat the command")
        raise
    ended = []
    for title, application in zip(former, made.outputs[FORMER], strict=True):

        def on_wait(why: str, title: str = title) -> None:
            err().print(plain(f"{title}: {why}"), markup=False, soft_wrap=True)

        exists = stop_former(
            application,
            aws.artifact_store(made.place, secrets),
            aws.emr(made.place, secrets),
            clock=time.time,
            wait=time.sleep,
            on_wait=on_wait,
            look_seconds=LOCAL_LOOK_SECONDS if aws.is_local(made.place) else LOOK_SECONDS,
            patience_seconds=minutes * 60,
        )
        ended.append(f"{title} ({application}) {'is stopped' if exists else 'does not exist'}, without runs")
    do = f'Remove it from former_applications, then run: frazil deploy up {name} --accept-danger "it is stopped"'
    _print("move", f"done: all jobs run on {declared['application']}; {'; '.join(ended)}. {do}")


def _print(step: str, what: str) -> None:
    out().print(plain(f"{step}: {what}"), markup=False, soft_wrap=True)
