"""`frazil deploy bootstrap` and `frazil deploy rotate-keys`: prepare an AWS account, and replace the keys of the jobs."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from frazil.cli.console import note, out, say
from frazil.cli.deploy.plan import NO_RELEASE, Declared
from frazil.cli.deploy.program import DeploymentProgram, declared_deployment, options
from frazil.cli.deploy.up import Reason, Yes
from frazil.cli.jobs import aws
from frazil.cli.jobs.reconcile import Minutes, reconciler
from frazil.cli.options import EnvironmentOption, command_secrets, flag
from frazil.clients.aws_account import Account, account_clients
from frazil.errors import AccountUnavailable, InvalidInput
from frazil.exit_codes import Exit
from frazil.project import environments
from frazil.rollout.group_jobs import ingest_jobs

if TYPE_CHECKING:
    from frazil.clients.secrets import Secrets


OWNER = "owner"
"""The stack of the account's owner: boundary, and the roles that deploy and review."""

_PERMISSIONS = "the owner stack is permissions, and the account's owner deploys it"
"""Why its new permissions are no reason to refuse. Without --yes, the review is printed before the question."""


class Part(NamedTuple):
    """A part of a prepared account: whether it exists, and how it is made."""

    name: str
    exists: Callable[[], bool]
    make: Callable[[], None]


def bootstrap(
    env: Declared = None,
    option: EnvironmentOption = None,
    check: Annotated[bool, flag("--check", "Print what is missing, and do nothing.")] = False,
    yes: Annotated[bool, flag("--yes", "Apply the owner stack without a question.")] = False,
) -> None:
    """Prepare an AWS account for its first deployment.

    For example: frazil deploy bootstrap dev --check

    Makes the bucket of Terraform's states, with a key.
    Makes the service-linked role of EMR Serverless.
    Deploys the owner stack: boundary, deployer, reviewer.
    Needs credentials of the account's owner.
    A repeated command changes nothing.

    Exit codes: 0 prepared; 1 refused or not confirmed; 2 invalid input, or another account; 3 AWS is
    unavailable; 4 with --check: parts are missing; 5; 6
    """
    program, name, declared = declared_deployment(env, option)
    account = Account(account_clients(declared["region"]), declared["region"])
    if (found := account.number()) != declared["account"]:
        what = f"the credentials are of account {found}, and the deployment is in {declared['account']}"
        raise InvalidInput(what, where=f"environment {name}", do="Log in to that account")
    missing = [part for part in parts(account, declared, name) if not _is_prepared(part, is_check=check)]
    is_bounded = account.has_policy(declared["boundary"])
    if check:
        say(f"boundary: {'exists' if is_bounded else 'missing'}")
    _print_quota(account.cores(), declared["cores"])
    if check:
        if missing or not is_bounded:
            raise typer.Exit(Exit.CHANGES)
        return
    _deploy_owner(program, account, declared, name, is_bounded=is_bounded, yes=yes)


def parts(account: Account, declared: dict[str, Any], name: str) -> tuple[Part, ...]:
    """Return the parts in the order in which they are made."""
    bucket, alias, policy = declared["state_bucket"], declared["state_key"], declared["state_bucket_policy"]
    key = partial(account.key, alias)

    def is_protected() -> bool:
        found = key()
        return found is not None and account.has_bucket(bucket) and account.is_protected(bucket, found, policy)

    make_key = partial(account.make_key, alias, declared["state_key_policy"], name)
    return (
        Part("key of the states", lambda: key() is not None, make_key),
        Part(f"bucket {bucket}", partial(account.has_bucket, bucket), partial(account.make_bucket, bucket)),
        Part("its versions, encryption and policy", is_protected, lambda: account.protect(bucket, key() or "", policy)),
        Part("role of EMR Serverless itself", account.has_service_role, account.make_service_role),
    )


def _is_prepared(part: Part, *, is_check: bool) -> bool:
    """Make a part that does not exist, unless it is a check. Return whether it existed."""
    exists = part.exists()
    if not exists and not is_check:
        part.make()
    say(f"{part.name}: {'exists' if exists else 'missing' if is_check else 'made'}")
    return exists


def _deploy_owner(
    program: DeploymentProgram, account: Account, declared: dict[str, Any], name: str, *, is_bounded: bool, yes: bool
) -> None:
    """Deploy the owner stack. This also writes the first file of deployed objects, if the environment has no state."""
    if not is_bounded and (declared["has_given_boundary"] or not declared["has_owner"]):
        what = f"the permissions boundary {declared['boundary']} does not exist"
        do = "Declare access.deployers and no boundary, or create it yourself (docs/policies.md)"
        raise InvalidInput(what, where=f"environment {name}", do=do)
    if not declared["has_owner"]:
        say("boundary: exists; no access.deployers are declared, so there is no owner stack")
        return
    file = Path(program.root, os.environ.get("FRAZIL_DEPLOYED", "").strip() or "deployed", f"{name}.json")
    if not file.is_file() and account.has_states(declared["state_bucket"], name):
        what = "the file is missing, and the environment is deployed"
        raise InvalidInput(what, where=str(file), do="Restore the committed file (docs/deploy.md)")
    program.run(
        *options(accept_danger=_PERMISSIONS, yes=yes), "--", name, OWNER, variables={"FRAZIL_RELEASE": NO_RELEASE}
    )


def _print_quota(cores: float | None, wanted: int) -> None:
    if cores is None:
        say(f"quota: not known; the deployment needs {wanted} vCPU of EMR Serverless, and new accounts have 16")
    else:
        more = ": request an increase" if cores < wanted else ""
        say(f"quota: {cores:g} vCPU of EMR Serverless, and the deployment needs {wanted}{more}")


STEPS = 3
"""The steps of a rotation (`stacks/spec/reader_keys.py`): both keys exist, the old one is deleted, done."""
STACK = "confluent"


def rotate(
    env: Declared = None,
    option: EnvironmentOption = None,
    reason: Reason = "",
    yes: Yes = False,
    minutes: Minutes = 120,
) -> None:
    """Replace the API keys of the jobs.

    For example: frazil deploy rotate-keys dev

    Creates new keys, and writes them into the secret.
    Waits until all runs use them.
    Deletes the old keys.
    After an interruption, repeat the command.
    Commit deployed/ENV.json at the end.

    Exit codes: 0 rotated; 1 refused, not confirmed, or runs did not take the keys; 2; 3; 5; 6
    """
    program, name, declared = declared_deployment(env, option)
    given = options(accept_danger=reason.strip(), yes=yes)
    if ingest_jobs(aws.declared_artifact_store(declared)):
        environments.environment(name)  # its runs are awaited after the first step, and one unknown would end it there
    for step in remaining(_step(declared, name)):
        if step % STEPS == 2:
            _await_runs(declared, name, command_secrets(), minutes)
        _apply(program, name, step, given)
    say(f"keys: rotated. Commit deployed/{name}.json")


def remaining(step: int) -> range:
    """Return the steps of the rotation that begins, or that was interrupted, at a step of the file."""
    begins = step + 1 if step % STEPS == 0 else step
    return range(begins, begins + (-begins % STEPS) + 1)


def _step(declared: dict[str, Any], name: str) -> int:
    """Return the step of the file of deployed objects. Raises `InvalidInput` if Frazil has no keys to rotate."""
    where = f"environment {name}"
    if not declared["has_own_keys"]:
        do = "Create a key at Confluent, write the secret, delete the old key"
        raise InvalidInput("its keys were given by reader_secret", where=where, do=do)
    step: int | None = declared["key_step"]
    if step is None:
        do = "Deploy it, or restore the committed file"
        raise InvalidInput(f"deployed/{name}.json is missing", where=where, do=do)
    return step


def _apply(program: DeploymentProgram, name: str, step: int, given: list[str]) -> None:
    """Plan, review and apply the stack of Confluent at a step. No release: it has no part in that stack."""
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        more = [*given, f"--key-step={step}", f"--outputs={Path(folder, 'outputs.json')}"]
        program.run(*more, "--", name, STACK, variables={"FRAZIL_RELEASE": NO_RELEASE})


def _await_runs(declared: dict[str, Any], name: str, secrets: Secrets, minutes: int) -> None:
    """Wait until the runs of each job use the keys of the secret."""
    from frazil.rollout.renewed_keys import wait_for_keys

    since = _stored_at(declared)
    jobs = ingest_jobs(aws.declared_artifact_store(declared))
    if not jobs:
        out().print("keys: no release is deployed, so no run has keys")
        return
    at_work, holder = reconciler(environments.environment(name), secrets), f"{socket.gethostname()}-{os.getpid()}"
    for job in jobs:
        wait_for_keys(at_work, job, since, holder=holder, patience_seconds=minutes * 60, on_wait=note)
        say(f"{job}: all runs use the new keys")


def _stored_at(declared: dict[str, Any]) -> datetime:
    """Return when the keys in the secret were written. Raises `AccountUnavailable`."""
    secret, region = declared["reader_secret"], declared["region"]
    found = Account(account_clients(region), region).stored_at(secret)
    if found is None:
        raise AccountUnavailable("the secret does not exist", where=f"secret {secret}", do="Deploy the environment")
    return found
