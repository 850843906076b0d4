"""`frazil reconcile`: what runs becomes what is wanted."""

from __future__ import annotations

import os
import socket
import time
import uuid
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli import cloud, environments
from frazil.cli.exits import Exit
from frazil.cli.options import AsJson
from frazil.cli.screen import err, out, plain, show_json
from frazil.clients.secrets import Secrets

if TYPE_CHECKING:
    from frazil.control.decide import Step

DRIFTED = 2
"""The exit code of `--check` when something is to be done, as `terraform plan -detailed-exitcode` has it."""


def reconcile(
    context: typer.Context,
    env: Annotated[str, typer.Argument(metavar="ENV", help="The environment: a name or a document.")],
    job: Annotated[str, typer.Option("--job", help="The job, as its desired state names it.")] = "ingest",
    check: Annotated[bool, typer.Option("--check", help="Tell what would be done, and do nothing.")] = False,
    minutes: Annotated[int, typer.Option("--minutes", min=1, help="How long it may take at most.")] = 120,
    as_json: AsJson = False,
) -> None:
    """Have EMR Serverless run what was deployed: end the old run, start the new one, wait until it has proven itself.

    For example: frazil reconcile prod --check

    A generation that does not prove itself is given up, and the one before runs again. Exit codes: 0 what is wanted
    runs; 1 it was given up, or a person must look; 2 with --check: something is to be done; 3 a service is away, or
    another reconciler is at work.
    """
    from frazil.control.proof import TableProofs
    from frazil.control.reconcile import Reconciler

    place = environments.environment(env)
    secrets: Secrets = context.find_root().obj
    store = cloud.artifact_store(place, secrets)
    done: list[Step] = []

    def tell(step: Step) -> None:
        if not done or done[-1] != step:
            err().print(plain(sentence(step)), markup=False, soft_wrap=True)
            done.append(step)

    reconciler = Reconciler(
        store=store,
        bucket=store.bucket,
        emr=cloud.emr(place, secrets),
        proofs=TableProofs(store, secrets),
        clock=time.time,
        wait=time.sleep,
        tell=tell,
    )
    if check:
        _tell_drift(reconciler.drift(job), as_json=as_json)
        return
    holder = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    runs = reconciler.reconcile(job, holder=holder, patience_seconds=minutes * 60)
    wanted = reconciler.desired(job)
    is_wanted = wanted.is_stopped if runs is None else runs == wanted
    if as_json:
        told = {"job": job, "wanted": wanted.generation, "runs": runs.generation if runs else None}
        show_json({**told, "steps": [document(step) for step in done]})
    else:
        what = f"generation {runs.generation} runs" if runs else "nothing runs, as is wanted"
        out().print(
            plain(f"{job}: {what}" + ("" if is_wanted else f"; {wanted.generation} was given up")), markup=False
        )
    if not is_wanted:
        raise typer.Exit(Exit.REFUSED)


def _tell_drift(steps: tuple[Step, ...], *, as_json: bool) -> None:
    if as_json:
        show_json({"drift": bool(steps), "steps": [document(step) for step in steps]})
    else:
        for step in steps:
            out().print(plain(sentence(step)), markup=False, soft_wrap=True)
        if not steps:
            out().print("nothing to do")
    if steps:
        raise typer.Exit(DRIFTED)


def sentence(step: Step) -> str:
    """A step for people: `cancel run 00f1: it is of another generation`."""
    told = document(step)
    what = " ".join(str(told[key]) for key in ("step", "run", "generation") if key in told)
    return f"{what}: {told['why']}" if told.get("why") else what


def document(step: Step) -> dict[str, Any]:
    """A step as JSON."""
    names = {"Cancel": "cancel run", "Start": "start generation", "Prove": "proven generation"}
    names |= {"GiveUp": "give up generation", "Wait": "wait", "Halt": "halt"}
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
