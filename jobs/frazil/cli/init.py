"""`frazil init`: a new project."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from frazil.cli.console import out, say, show_json
from frazil.cli.options import ENV, AsJson, argument, flag
from frazil.errors import InvalidInput
from frazil.project.new_project import BOOTSTRAP, REGISTRY, Cluster, NewProject, write_files
from frazil.version import VERSION

LOCAL = "local"
"""The environment that `frazil local up` writes."""
HERE = "workstation"
"""The environment of runs on this machine, in a project that deploys: `dev` is a deployment then."""


def init(
    folder: Annotated[Path, argument("[DIR]", "Folder of the project.")] = Path(),
    kafka: Annotated[
        Cluster | None, flag("--kafka", "Kafka: local services, plain broker, or Confluent Cloud.")
    ] = None,
    bootstrap: Annotated[str | None, flag("--bootstrap", "Bootstrap servers of the broker.", "HOST:PORT")] = None,
    registry: Annotated[str | None, flag("--registry", "Schema registry.", "URL")] = None,
    aws: Annotated[bool | None, flag("--aws/--no-aws", "Add stacks that deploy to AWS.", show_default=False)] = None,
    env: Annotated[str | None, flag(ENV, "Name of the environment to write.", "NAME")] = None,
    yes: Annotated[bool, flag("--yes -y", "Ask nothing; take defaults.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a new project: project file, declarations, tests, workflows.

    For example: frazil init shop --kafka local

    Asks for omitted values, on a terminal.
    Overwrites no file.

    Exit codes: 0 written; 2 a file exists, or a value is invalid
    """
    asks = not yes and not as_json and sys.stdin is not None and sys.stdin.isatty()
    if kafka is None and not asks and not yes:
        raise InvalidInput("no Kafka is chosen", do=f"Give --kafka {'|'.join(Cluster)}, or --yes for {Cluster.LOCAL}")
    cluster = kafka or (_asked_cluster() if asks else Cluster.LOCAL)
    if cluster is Cluster.LOCAL:
        for name, value in {"bootstrap": bootstrap, "registry": registry}.items():
            if value is not None:
                what, do = "the local services have their own addresses", f"Omit it, or give --kafka {Cluster.PLAIN}"
                raise InvalidInput(what, where=f"--{name}", do=do)
        if env not in (None, LOCAL):
            raise InvalidInput(f"`frazil local up` writes the environment {LOCAL}", where="--env", do="Leave out --env")
        bootstrap, registry, env = "", "", LOCAL
    else:
        bootstrap = bootstrap or _asked("Bootstrap servers", BOOTSTRAP[cluster], asks=asks)
        registry = _asked("Schema registry", REGISTRY.get(cluster, ""), asks=asks) if registry is None else registry
    if aws is None:
        aws = asks and typer.confirm("Deploy to AWS", default=False, err=True)
    project = NewProject(
        cluster=cluster,
        environment=env or (HERE if aws else "dev"),
        bootstrap=bootstrap,
        registry=registry,
        has_aws=aws,
    )
    files = project.files(VERSION)
    write_files(folder, files)
    commands = project.next_commands(Path(shlex.quote(str(folder))))
    if as_json:
        show_json({"folder": str(folder), "files": list(files), "next": list(commands)})
        return
    for name in files:
        say(str(folder / name))
    out().print("\nNext:")
    for command in commands:
        say(f"  {command}")


def _asked(question: str, default: str, *, asks: bool) -> str:
    """Return the answer on a terminal, or the default."""
    if not asks:
        return default
    answer: str = typer.prompt(question, default=default, show_default=bool(default), err=True)
    return answer.strip()


def _asked_cluster() -> Cluster:
    """Ask until the answer is one of the clusters."""
    while True:
        answer = _asked(f"Kafka: {', '.join(Cluster)}", Cluster.LOCAL.value, asks=True)
        if answer in list(Cluster):
            return Cluster(answer)
        typer.echo(f"Write one of {', '.join(Cluster)}", err=True)
