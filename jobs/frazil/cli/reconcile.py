"""`frazil jobs reconcile`: bring the runs of a job to their desired state."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from frazil.cli import aws
from frazil.cli.console import err, out, plain, show_json
from frazil.cli.left_runs import end_left_runs, left_runs, removed_from
from frazil.cli.options import AsJson, EnvironmentName, EnvironmentOption, JobName, environment_name
from frazil.clients.secrets import Secrets
from frazil.errors import FrazilError
from frazil.exit_codes import Exit
from frazil.project import environments

if TYPE_CHECKING:
    from frazil.declaration import Environment
    from frazil.rollout.reconcile import Reconciler
    from frazil.rollout.steps import Step

LOOK_SECONDS, LOCAL_LOOK_SECONDS = 10.0, 1.0
"""Seconds between two checks while runs start; local runs start in seconds and use no quota."""

Minutes = Annotated[int, typer.Option("--minutes", min=1, max=100_000, help="Minutes that it may take.")]


def reconcile(
    context: typer.Context,
    env: EnvironmentName = None,
    option: EnvironmentOption = None,
    job: JobName = None,
    check: Annotated[bool, typer.Option("--check", help="Print the next steps, and do nothing.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Wait for the deployed reconciler, and start nothing.")
    ] = False,
    minutes: Minutes = 120,
    as_json: AsJson = False,
) -> None:
    """Bring job runs to the deployed state.

    For example: frazil jobs reconcile prod --check

    \b
    Ends the old run, then starts the new one.
    An unhealthy generation is rolled back to the one before.

    \b
    Exit codes:
      0 the desired generation runs
      1 rolled back, or an operator must decide
      2 invalid input
      3 a service is unavailable, or another reconciler runs
      4 with --check: runs differ from the desired state
    """
    place, secrets = environments.environment(environment_name(context, env, option)), context.find_root().obj
    at_work = reconciler(place, secrets)
    if check and watch:
        raise typer.BadParameter("give one of --check and --watch")
    removed = removed_from(place, secrets, job)
    jobs = [each for each in aws.jobs_of(aws.artifact_store(place, secrets), job) if each not in removed]
    if check:
        drifts: dict[str, tuple[Step, ...]] = {each: at_work.drift(each) for each in jobs}
        _print_drift({**drifts, **left_runs(place, secrets, removed)}, as_json=as_json)
    else:
        end_left_runs(place, secrets, removed, minutes=minutes, watches=watch)
        bring_about(at_work, jobs, minutes=minutes, as_json=as_json, watches=watch)


def reconciler(place: Environment, secrets: Secrets) -> Reconciler:
    """Return the reconciler of an environment. Raises `InvalidInput` in one that was not deployed."""
    from frazil.rollout.readiness import ProofReadiness
    from frazil.rollout.reconcile import Reconciler

    store = aws.artifact_store(place, secrets)
    return Reconciler(
        store=store,
        bucket=store.bucket,
        emr=aws.emr(place, secrets),
        readiness=ProofReadiness(store),
        clock=time.time,
        wait=time.sleep,
        look_seconds=LOCAL_LOOK_SECONDS if aws.is_local(place) else LOOK_SECONDS,
        trusted=place.trusted_keys or (),
    )


def bring_about(
    at_work: Reconciler, jobs: Sequence[str], *, minutes: int, as_json: bool, watches: bool = False
) -> None:
    """Reconcile jobs one after another, print each step, and end with 1 if the desired state of one does not run.

    With `watches`, another reconciler takes the steps.
    The error of a job does not keep the others from being reconciled. The last error is raised at the end.
    """
    ended: list[tuple[dict[str, Any], bool]] = []
    errors: list[FrazilError] = []
    for job in jobs:
        try:
            ended.append(_reconciled(at_work, job, minutes=minutes, is_printed=not as_json, watches=watches))
        except FrazilError as error:
            if errors:
                err().print(plain(f"error: {errors[-1]}"), markup=False, soft_wrap=True)
            errors.append(error)
    if errors:
        raise errors[-1]
    if as_json:
        _show([members for members, _ in ended])
    if not all(is_wanted for _, is_wanted in ended):
        raise typer.Exit(Exit.DECISION_REQUIRED)


def _reconciled(
    at_work: Reconciler, job: str, *, minutes: int, is_printed: bool, watches: bool
) -> tuple[dict[str, Any], bool]:
    """Reconcile one job. Return the result as JSON, and whether the desired generation runs."""
    done: list[Step] = []

    def print_step(step: Step) -> None:
        if not done or sentence(done[-1]) != sentence(step):
            err().print(plain(sentence(step)), markup=False, soft_wrap=True)
            done.append(step)

    holder = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    printing = replace(at_work, on_step=print_step)
    if watches:
        runs = printing.watch(job, patience_seconds=minutes * 60)
    else:
        runs = printing.reconcile(job, holder=holder, patience_seconds=minutes * 60)
    wanted = at_work.desired(job)
    is_wanted = wanted.is_stopped if runs is None else runs == wanted
    stopped = list(runs.stopped if runs else wanted.stopped)
    if is_printed:
        without = f" without {', '.join(stopped)}" if stopped else ""
        what = f"generation {runs.generation} runs{without}" if runs else "nothing runs, as is wanted"
        out().print(
            plain(f"{job}: {what}" + ("" if is_wanted else f"; {wanted.generation} was given up")), markup=False
        )
    members = {
        "job": job,
        "wanted": wanted.generation,
        "runs": runs.generation if runs else None,
        "stopped": stopped,
        "steps": [document(step) for step in done],
    }
    return members, is_wanted


def _show(results: Sequence[dict[str, Any]]) -> None:
    """Print the result of one job, or those of several as one object."""
    show_json(results[0] if len(results) == 1 else {"jobs": list(results)})


def _print_drift(drifts: Mapping[str, tuple[Step, ...]], *, as_json: bool) -> None:
    if as_json:
        results = [
            {"drift": bool(steps), "steps": [document(step) for step in steps]}
            | ({"job": job} if len(drifts) > 1 else {})
            for job, steps in drifts.items()
        ]
        _show(results)
    else:
        for job, steps in drifts.items():
            before = f"{job}: " if len(drifts) > 1 else ""
            for step in steps:
                out().print(plain(f"{before}{sentence(step)}"), markup=False, soft_wrap=True)
        if not any(drifts.values()):
            out().print("nothing to do")
    if any(drifts.values()):
        raise typer.Exit(Exit.CHANGES)


def sentence(step: Step) -> str:
    """Return a step for people: `cancel run 00f1: it is of another generation`."""
    members = document(step)
    what = " ".join(str(members[key]) for key in ("step", "run", "generation", "application") if key in members)
    return f"{what}: {members['why']}" if members.get("why") else what


def document(step: Step) -> dict[str, Any]:
    """Return a step as JSON."""
    names = {"Cancel": "cancel run", "Start": "start generation", "Prove": "proven generation"}
    names |= {
        "GiveUp": "give up generation",
        "Forget": "forget application",
        "Wait": "wait",
        "Leave": "leave",
        "Halt": "halt",
    }
    members: dict[str, Any] = {"step": names[type(step).__name__]}
    for field in fields(step):
        value = getattr(step, field.name)
        match field.name:
            case "run":
                members["run"] = value.id
            case "desired":
                members["generation"] = value.generation
            case _:
                members[field.name] = value.isoformat() if isinstance(value, datetime) else value
    return members
