"""The program of a project that deploys: its `infra_app.py` gives the deployments to `run`.

| arguments | effect |
| --- | --- |
| none | synthesise, as `cdktf.json` asks; `stacks.workflow.app` has the variables |
| `review ENV …` | review a deployment, as `frazil deploy plan` asks |
| `apply ENV …` | apply the reviewed plan, as `frazil deploy apply` asks |
| `lock` | write the lock of Terraform's providers |
| `deploy ENV STACK …` | plan, review and apply one stack, as `frazil deploy up` asks |
| `describe ENV` | print what a deployment declares as JSON, as commands ask |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from frazil.errors.missing_package import missing_package
from frazil.exit_codes import Exit
from stacks.spec.deployments import Deployment


def run(*deployments: Deployment, release: str) -> NoReturn:
    """Do what the arguments of the process ask, for these deployments, and end the process.

    `release` is the manifest of the release to run, or `none`. The variables `FRAZIL_RELEASE` and `FRAZIL_ENVIRONMENTS` count
    more than `release` and the given deployments.
    """
    sys.exit(main(sys.argv, deployments, release))


def main(argv: Sequence[str], deployments: Sequence[Deployment], release: str) -> int:
    """Return the exit code of what the arguments ask. `argv` begins with the program's file."""
    try:
        return _done(argv, deployments, release)
    except ModuleNotFoundError as error:
        if (missing := missing_package(error.name)) is None:
            raise
        print(f"error: {missing}", file=sys.stderr)
        return Exit.SERVICE_UNAVAILABLE


def _done(argv: Sequence[str], deployments: Sequence[Deployment], release: str) -> int:
    named = {deployment.name: deployment for deployment in deployments}
    names = [deployment.name for deployment in deployments]
    for name in named:
        if names.count(name) > 1:
            return _refused(f"the deployment {name} is declared twice. Remove one")
    program, verb, arguments = argv[0], argv[1] if len(argv) > 1 else "", argv[2:]
    if not verb:
        return _synthesise(named, release)
    if verb in ("review", "apply", "deploy"):
        from stacks.workflow import apply, deploy, review  # load the rules of policies

        run = {"review": review.run, "apply": apply.run, "deploy": deploy.run}[verb]
        return run(arguments, named, (str(Path(program).absolute()),))
    if verb == "lock" and not arguments:
        from stacks.workflow import provider_lock

        return provider_lock.main()
    if verb != "describe":
        return _refused(f"{verb} does not exist. Write one of review, apply, deploy, lock, describe")
    if len(arguments) != 1:
        return _refused("describe takes one environment")
    from stacks.workflow import describe

    return describe.main(arguments, named, release)


def _refused(why: str) -> int:
    print(f"error: {why}", file=sys.stderr)
    return Exit.INVALID_INPUT


def _synthesise(deployments: Mapping[str, Deployment], release: str) -> int:
    from stacks.workflow import app  # starts Node

    settings = {name: value for name, value in os.environ.items() if value.strip()}
    settings = {"FRAZIL_ENVIRONMENTS": ",".join(deployments), "FRAZIL_RELEASE": release, **settings}
    code = app.main(settings, deployments)
    if not code and "CDKTF_OUTDIR" not in settings:  # not started by cdktf or by a command
        for name in settings["FRAZIL_ENVIRONMENTS"].split(","):
            print(f"{name.strip()}: synthesised into cdktf.out. Next: frazil deploy plan {name.strip()} --offline")
    return code
