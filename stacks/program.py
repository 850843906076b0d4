"""The program of a project that deploys: its `infra_app.py` gives the deployments to `run`.

| arguments | effect |
| --- | --- |
| none | synthesise, as `cdktf.json` asks; `stacks.app` has the variables |
| `review ENV …` | review a deployment, as `frazil review` asks |
| `built-for ENV` | print the EMR label and architecture of an environment, as `frazil release` asks |
| `artifact-bucket ENV` | print the name of the bucket of releases, for workflows |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from frazil.exit_codes import Exit
from stacks import built_for
from stacks.deployments import Deployment


def run(*deployments: Deployment, release: str) -> NoReturn:
    """Do what the arguments of the process ask, for these deployments, and end the process.

    `release` is the manifest of the release to run, or `none`. The variables `FRAZIL_RELEASE` and `FRAZIL_ENVIRONMENTS` count
    more than `release` and the given deployments.
    """
    sys.exit(main(sys.argv, deployments, release))


def main(argv: Sequence[str], deployments: Sequence[Deployment], release: str) -> int:
    """Return the exit code of what the arguments ask. `argv` begins with the program's file."""
    named = {deployment.name: deployment for deployment in deployments}
    if len(named) < len(deployments):
        print("error: two deployments have the same name. Rename one", file=sys.stderr)
        return Exit.INVALID_INPUT
    program, verb, arguments = argv[0], argv[1] if len(argv) > 1 else "", argv[2:]
    verbs: dict[str, Callable[[], int]] = {
        "": lambda: _synthesise(named, release),
        "review": lambda: _review(arguments, named, program),
        "built-for": lambda: built_for.main(arguments, named),
        "artifact-bucket": lambda: _bucket(arguments, named),
    }
    if verb not in verbs:
        print(f"error: {verb} does not exist. Write one of {', '.join(filter(None, verbs))}", file=sys.stderr)
        return Exit.INVALID_INPUT
    return verbs[verb]()


def _synthesise(deployments: Mapping[str, Deployment], release: str) -> int:
    from stacks import app  # starts Node

    settings = {name: value for name, value in os.environ.items() if value.strip()}
    stated = {"FRAZIL_ENVIRONMENTS": ",".join(deployments), "FRAZIL_RELEASE": release}
    return app.main({**stated, **settings}, deployments)


def _review(arguments: Sequence[str], deployments: Mapping[str, Deployment], program: str) -> int:
    from stacks import review

    return review.run(arguments, deployments, (str(Path(program).absolute()),))


def _bucket(arguments: Sequence[str], deployments: Mapping[str, Deployment]) -> int:
    [name] = arguments
    if name not in deployments:
        print(f"error: the environment {name} does not exist. Name one of {', '.join(deployments)}", file=sys.stderr)
        return Exit.INVALID_INPUT
    print(deployments[name].names.bucket("artifacts"))
    return Exit.SUCCESS
