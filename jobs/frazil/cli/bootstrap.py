"""`frazil deploy bootstrap`: prepare an AWS account for the first deployment of an environment."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from frazil.cli.built_for import required_description
from frazil.cli.console import out, plain
from frazil.cli.deployment_program import DeploymentProgram, required_program
from frazil.cli.options import EnvironmentOption, environment_name
from frazil.cli.review import NO_RELEASE
from frazil.clients.aws_account import Account, account_clients
from frazil.errors import InvalidInput
from frazil.exit_codes import Exit

OWNER = "owner"
"""The stack of the account's owner: boundary, and the roles that deploy and review."""

_PERMISSIONS = "the owner stack is permissions, and the account's owner deploys it"
"""Why its new permissions are no reason to refuse. Without --yes, the review is printed before the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a prepared account: whether it exists, and how it is made."""

    name: str
    exists: Callable[[], bool]
    make: Callable[[], None]


def bootstrap(
    context: typer.Context,
    env: Annotated[str | None, typer.Argument(metavar="ENV", help="A declared deployment.")] = None,
    option: EnvironmentOption = None,
    check: Annotated[bool, typer.Option("--check", help="Print what is missing, and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Apply the owner stack without a question.")] = False,
) -> None:
    """Prepare an AWS account for its first deployment.

    For example: frazil deploy bootstrap dev --check

    \b
    Makes the bucket of Terraform's states, with a key.
    Makes the service-linked role of EMR Serverless.
    Deploys the owner stack: boundary, deployer, reviewer.
    Needs credentials of the account's owner.
    A repeated command changes nothing.

    \b
    Exit codes:
      0 prepared
      1 refused or not confirmed
      2 invalid input, or another account
      3 AWS is unavailable
      4 with --check: parts are missing
      5 not planned
      6 Terraform failed
    """
    program = required_program("deploy")
    name = environment_name(context, env, option)
    declared = required_description(name, program.root)
    account = Account(account_clients(declared["region"]), declared["region"])
    if (found := account.number()) != declared["account"]:
        what = f"the credentials are of account {found}, and the deployment is in {declared['account']}"
        raise InvalidInput(what, where=f"environment {name}", do="Log in to that account")
    missing = _prepared(parts(account, declared, name), is_check=check)
    is_bounded = account.has_policy(declared["boundary"])
    if check:
        _print("boundary", "exists" if is_bounded else "missing")
    _print_quota(account.cores(), declared["cores"])
    if check:
        if missing or not is_bounded:
            raise typer.Exit(Exit.CHANGES)
        return
    _deploy_owner(program, account, declared, name, is_bounded=is_bounded, yes=yes)


def parts(account: Account, declared: dict[str, Any], name: str) -> tuple[Part, ...]:
    """Return the parts in the order in which they are made."""
    bucket, alias = declared["state_bucket"], declared["state_key"]
    policy = declared["state_bucket_policy"]

    def is_protected() -> bool:
        key = account.key(alias)
        return key is not None and account.has_bucket(bucket) and account.is_protected(bucket, key, policy)

    return (
        Part(
            name="key of the states",
            exists=lambda: account.key(alias) is not None,
            make=lambda: account.make_key(alias, declared["state_key_policy"], name),
        ),
        Part(
            name=f"bucket {bucket}",
            exists=lambda: account.has_bucket(bucket),
            make=lambda: account.make_bucket(bucket),
        ),
        Part(
            name="its versions, encryption and policy",
            exists=is_protected,
            make=lambda: account.protect(bucket, account.key(alias) or "", policy),
        ),
        Part(
            name="role of EMR Serverless itself",
            exists=account.has_service_role,
            make=account.make_service_role,
        ),
    )


def _prepared(wanted: tuple[Part, ...], *, is_check: bool) -> bool:
    """Make the parts that do not exist, unless it is a check. Return whether any was missing."""
    is_any = False
    for part in wanted:
        if part.exists():
            _print(part.name, "exists")
            continue
        is_any = True
        if not is_check:
            part.make()
        _print(part.name, "missing" if is_check else "made")
    return is_any


def _deploy_owner(
    program: DeploymentProgram, account: Account, declared: dict[str, Any], name: str, *, is_bounded: bool, yes: bool
) -> None:
    """Deploy the owner stack. This also writes the first file of deployed objects, if the environment has no state."""
    if not is_bounded and (declared["has_given_boundary"] or not declared["has_owner"]):
        what = f"the permissions boundary {declared['boundary']} does not exist"
        do = "Declare deployer_principals and no boundary, or create it yourself (docs/policies.md)"
        raise InvalidInput(what, where=f"environment {name}", do=do)
    if not declared["has_owner"]:
        _print("boundary", "exists; no deployer_principals are declared, so there is no owner stack")
        return
    file = Path(program.root, os.environ.get("FRAZIL_DEPLOYED", "").strip() or "deployed", f"{name}.json")
    if not file.is_file() and account.has_states(declared["state_bucket"], name):
        what = "the file is missing, and the environment is deployed"
        raise InvalidInput(what, where=str(file), do="Restore the committed file (docs/deploy.md)")
    options = (f"--accept-danger={_PERMISSIONS}", *(("--yes",) if yes else ()))
    if code := program.run(*options, "--", name, OWNER, variables={"FRAZIL_RELEASE": NO_RELEASE}):
        raise typer.Exit(code)


def _print_quota(cores: float | None, wanted: int) -> None:
    if cores is None:
        _print("quota", f"not known; the deployment needs {wanted} vCPU of EMR Serverless, and new accounts have 16")
    elif cores < wanted:
        _print("quota", f"{cores:g} vCPU of EMR Serverless, and the deployment needs {wanted}: request an increase")
    else:
        _print("quota", f"{cores:g} vCPU of EMR Serverless, and the deployment needs {wanted}")


def _print(part: str, what: str) -> None:
    out().print(plain(f"{part}: {what}"), markup=False, soft_wrap=True)
