"""`frazil deploy rotate-keys`: new API keys for the jobs, in the free slot, before the old ones are deleted."""

from __future__ import annotations

import os
import socket
import tempfile
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from frazil.cli import aws
from frazil.cli.built_for import required_description
from frazil.cli.console import err, out, plain
from frazil.cli.deploy import Declared, Reason, Yes, flags
from frazil.cli.deployment_program import DeploymentProgram, required_program
from frazil.cli.options import EnvironmentOption, environment_name
from frazil.cli.reconcile import Minutes, reconciler
from frazil.cli.review import NO_RELEASE
from frazil.clients.aws_account import Account, account_clients
from frazil.errors import AccountUnavailable, InvalidInput
from frazil.project import environments
from frazil.rollout.group_jobs import ingest_jobs

if TYPE_CHECKING:
    from frazil.clients.secrets import Secrets

STEPS = 3
"""The steps of a rotation (`stacks/reader_keys.py`): both keys exist, the old one is deleted, done."""
STACK = "confluent"


def rotate(
    context: typer.Context,
    env: Declared = None,
    option: EnvironmentOption = None,
    reason: Reason = "",
    yes: Yes = False,
    minutes: Minutes = 120,
) -> None:
    """Replace the API keys of the jobs.

    For example: frazil deploy rotate-keys dev

    \b
    Creates new keys, and writes them into the secret.
    Waits until all runs use them.
    Deletes the old keys.
    After an interruption, repeat the command.
    Commit deployed/ENV.json at the end.

    \b
    Exit codes:
      0 rotated
      1 refused, not confirmed, or runs did not take the keys
      2 invalid input
      3 a service is unavailable
      5 not planned
      6 Terraform failed
    """
    program = required_program("deploy")
    name = environment_name(context, env, option)
    declared = required_description(name, program.root)
    options = flags(reason, None, again=False, yes=yes)
    if ingest_jobs(aws.declared_artifact_store(declared)):
        environments.environment(name)  # its runs are awaited after the first step, and one unknown would end it there
    for step in remaining(_step(declared, name)):
        if step % STEPS == 2:
            _await_runs(declared, name, context.find_root().obj, minutes)
        _apply(program, name, step, options)
    out().print(plain(f"keys: rotated. Commit deployed/{name}.json"), markup=False)


def remaining(step: int) -> range:
    """Return the steps of the rotation that begins, or that was interrupted, at a step of the file."""
    begins = step + 1 if step % STEPS == 0 else step
    return range(begins, begins + (-begins % STEPS) + 1)


def _step(declared: dict[str, Any], name: str) -> int:
    """Return the step of the file of deployed objects. Raises `InvalidInput` if Frazil has no keys to rotate."""
    where = f"environment {name}"
    if not declared["has_own_keys"]:
        what, do = (
            "its keys were given by reader_secret",
            "Create a key at Confluent, write the secret, delete the old key",
        )
        raise InvalidInput(what, where=where, do=do)
    step: int | None = declared["key_step"]
    if step is None:
        raise InvalidInput(
            f"deployed/{name}.json is missing", where=where, do="Deploy it, or restore the committed file"
        )
    return step


def _apply(program: DeploymentProgram, name: str, step: int, options: list[str]) -> None:
    """Plan, review and apply the stack of Confluent at a step. No release: it has no part in that stack."""
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        more = [*options, f"--key-step={step}", f"--outputs={Path(folder, 'outputs.json')}"]
        if code := program.run(*more, "--", name, STACK, variables={"FRAZIL_RELEASE": NO_RELEASE}):
            raise typer.Exit(code)


def _await_runs(declared: dict[str, Any], name: str, secrets: Secrets, minutes: int) -> None:
    """Wait until the runs of each job use the keys of the secret."""
    from frazil.rollout.renewed_keys import RenewedKeys

    since = _stored_at(declared)
    jobs = ingest_jobs(aws.declared_artifact_store(declared))
    if not jobs:
        out().print("keys: no release is deployed, so no run has keys")
        return
    renewed = RenewedKeys(
        reconciler=reconciler(environments.environment(name), secrets),
        holder=f"{socket.gethostname()}-{os.getpid()}",
        on_wait=lambda why: err().print(plain(why), markup=False, soft_wrap=True),
    )
    for job in jobs:
        renewed.wait(job, since, patience_seconds=minutes * 60)
        out().print(plain(f"{job}: all runs use the new keys"), markup=False)


def _stored_at(declared: dict[str, Any]) -> datetime:
    """Return when the keys in the secret were written. Raises `AccountUnavailable`."""
    secret, region = declared["reader_secret"], declared["region"]
    found = Account(account_clients(region), region).stored_at(secret)
    if found is None:
        raise AccountUnavailable("the secret does not exist", where=f"secret {secret}", do="Deploy the environment")
    return found
