"""`frazil reconcile`: what runs becomes what is wanted."""

from __future__ import annotations

import os
import socket
import time
import uuid
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli import aws
from frazil.cli.console import err, out, plain, show_json
from frazil.cli.options import AsJson, EnvironmentName, JobName
from frazil.clients.secrets import Secrets
from frazil.exit_codes import Exit
from frazil.project import environments

if TYPE_CHECKING:
    from frazil.declaration import Environment
    from frazil.rollout.reconcile import Reconciler
    from frazil.rollout.steps import Step

LOOK_SECONDS, LOCAL_LOOK_SECONDS = 10.0, 1.0
"""Between two looks while there is nothing to do but wait; local runs begin in seconds, and ask nobody's quota."""

Minutes = Annotated[int, typer.Option("--minutes", min=1, help="How long it may take at most.")]


def reconcile(
    context: typer.Context,
    env: EnvironmentName,
    job: JobName = "ingest",
    check: Annotated[bool, typer.Option("--check", help="Tell what would be done, and do nothing.")] = False,
    minutes: Minutes = 120,
    as_json: AsJson = False,
) -> None:
    """Have EMR Serverless run what was deployed: end the old run, start the new one, wait until it has proven itself.

    For example: frazil reconcile prod --check

    A generation that does not prove itself is given up, and the one before runs again. Exit codes: 0 what is wanted
    runs; 1 it was given up, or a person must look; 2 invalid input; 3 a service is unavailable, or another reconciler is
    at work; 4 with --check: something is to be done.
    """
    at_work = reconciler(environments.environment(env), context.find_root().obj)
    if check:
        _tell_drift(at_work.drift(job), as_json=as_json)
    else:
        bring_about(at_work, job, minutes=minutes, as_json=as_json)


def reconciler(place: Environment, secrets: Secrets) -> Reconciler:
    """The reconciler of an environment. Raises `InvalidInput` in one that was not deployed."""
    from frazil.rollout.readiness import TableReadiness
    from frazil.rollout.reconcile import Reconciler

    store = aws.artifact_store(place, secrets)
    return Reconciler(
        store=store,
        bucket=store.bucket,
        emr=aws.emr(place, secrets),
        readiness=TableReadiness(store, secrets),
        clock=time.time,
        wait=time.sleep,
        look_seconds=LOCAL_LOOK_SECONDS if aws.is_local(place) else LOOK_SECONDS,
    )


def bring_about(at_work: Reconciler, job: str, *, minutes: int, as_json: bool) -> None:
    """Reconcile, tell each step as it is done, and end with 1 if what is wanted does not run."""
    done: list[Step] = []

    def tell(step: Step) -> None:
        if not done or done[-1] != step:
            err().print(plain(sentence(step)), markup=False, soft_wrap=True)
            done.append(step)

    holder = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    runs = replace(at_work, on_step=tell).reconcile(job, holder=holder, patience_seconds=minutes * 60)
    wanted = at_work.desired(job)
    is_wanted = wanted.is_stopped if runs is None else runs == wanted
    stopped = list(runs.stopped if runs else wanted.stopped)
    if as_json:
        told = {"job": job, "wanted": wanted.generation, "runs": runs.generation if runs else None, "stopped": stopped}
        show_json({**told, "steps": [document(step) for step in done]})
    else:
        without = f" without {', '.join(stopped)}" if stopped else ""
        what = f"generation {runs.generation} runs{without}" if runs else "nothing runs, as is wanted"
        out().print(
            plain(f"{job}: {what}" + ("" if is_wanted else f"; {wanted.generation} was given up")), markup=False
        )
    if not is_wanted:
        raise typer.Exit(Exit.DECISION_REQUIRED)


def _tell_drift(steps: tuple[Step, ...], *, as_json: bool) -> None:
    if as_json:
        show_json({"drift": bool(steps), "steps": [document(step) for step in steps]})
    else:
        for step in steps:
            out().print(plain(sentence(step)), markup=False, soft_wrap=True)
        if not steps:
            out().print("nothing to do")
    if steps:
        raise typer.Exit(Exit.CHANGES)


def sentence(step: Step) -> str:
    """A step for people: `cancel run 00f1: it is of another generation`."""
    told = document(step)
    what = " ".join(str(told[key]) for key in ("step", "run", "generation") if key in told)
    return f"{what}: {told['why']}" if told.get("why") else what


def document(step: Step) -> dict[str, Any]:
    """A step as JSON."""
    names = {"Cancel": "cancel run", "Start": "start generation", "Prove": "proven generation"}
    names |= {"GiveUp": "give up generation", "Wait": "wait", "Leave": "leave", "Halt": "halt"}
    told: dict[str, Any] = {"step": names[type(step).__name__]}
    for field in fields(step):
        value = getattr(step, field.name)
        match field.name:
            case "run":
                told["run"] = value.id
            case "desired":
                told["generation"] = value.generation
            case _:
                told[field.name] = value.isoformat() if isinstance(value, datetime) else value
    return told
