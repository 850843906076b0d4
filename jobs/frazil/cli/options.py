"""Options and arguments that several commands share, with their completion."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer._click.globals import get_current_context  # typer brings a click of its own

from frazil.clients.secrets import Secrets
from frazil.declaration import Pipeline
from frazil.errors import FrazilError, InvalidInput
from frazil.project import declaration_file, environments, project_file

VARIABLE = "FRAZIL_ENV"
ENV = "--env --environment"
OPTION = "option"
"""The parameter of a command about an environment that holds `--env`."""


def flag(names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """Return an option with these names, separated by spaces."""
    return typer.Option(*names.split(), help=help, metavar=metavar, **more)


def argument(metavar: str, help: str, **more: Any) -> Any:
    """Return an argument."""
    return typer.Argument(metavar=metavar, help=help, **more)


def _pipeline_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the names that complete a word; none if the declarations cannot be read."""
    file = context.params.get("file") or declaration_file.usual()
    try:
        return [p.name for p in declaration_file.declared(Path(file)) if p.name.startswith(incomplete)]
    except FrazilError:
        return []


def _environment_names(incomplete: str) -> list[str]:
    return [name for name in environments.known() if name.startswith(incomplete)]


def _pipelines_file(parameter: typer.CallbackParam, value: Path | None) -> Path | None:
    """Return the project's declarations for an omitted option."""
    found = project_file.project_file() if _is_omitted(parameter.name or "") else None
    return value if found is None else found.pipelines or declaration_file.usual()


def _environment(parameter: typer.CallbackParam, value: str | None) -> str | None:
    """Return the project's environment for an omitted option."""
    found = project_file.project_file() if _is_omitted(parameter.name or "") else None
    return value if found is None else found.content.environment or value


PipelineName = Annotated[str, argument("PIPELINE", "A declared pipeline, by name.", autocompletion=_pipeline_names)]
PipelineNames = Annotated[
    list[str] | None, argument("PIPELINE...", "Declared pipelines, by name.", autocompletion=_pipeline_names)
]
PipelinesFile = Annotated[
    Path,
    flag(
        "--pipelines",
        "Declarations of pipelines: a Python file, or a JSON document.",
        "FILE",
        envvar="FRAZIL_PIPELINES",
        show_default="the project's",
        callback=_pipelines_file,
    ),
]
EnvironmentChoice = Annotated[
    str,
    flag(
        ENV,
        "Environment: a name, or a document.",
        "NAME|FILE",
        envvar=VARIABLE,
        show_default="the project's",
        autocompletion=_environment_names,
        callback=_environment,
    ),
]
"""The environment of a command about a pipeline."""

EnvironmentName = Annotated[
    str | None, argument("ENV", "Environment: a name or a document.", autocompletion=_environment_names)
]
"""The environment of a command about an environment, see `environment_name`."""

EnvironmentOption = Annotated[
    str | None,
    flag(ENV, "Same as ENV.", "NAME|FILE", envvar=VARIABLE, autocompletion=_environment_names, callback=_environment),
]

JobName = Annotated[str | None, flag("--job", "Job, by its name in the desired state; default: all.")]
"""The job of a command about job runs. If it is omitted, `jobs_of` finds the deployed ones."""
AsJson = Annotated[bool, flag("--json", "Print one JSON object to stdout.")]


def chosen_pipelines(declared: Sequence[Pipeline], names: Sequence[str], *, is_all: bool) -> tuple[Pipeline, ...]:
    """Return the named pipelines, or all. Raises `InvalidInput` without names and `--all`, and with both."""
    if is_all == bool(names):
        what = "--all and names exclude each other" if is_all else "no pipeline is named"
        names_of = f"Name some of {', '.join(p.name for p in declared)}, or give" if declared else "Give"
        raise InvalidInput(what, do=f"{names_of} --all")
    return tuple(declared) if is_all else declaration_file.chosen(declared, names)


def command_secrets() -> Secrets:
    """Return the secrets that the command which runs has read and masks."""
    root = get_current_context().find_root()
    if not isinstance(root.obj, Secrets):
        root.obj = Secrets(os.environ)
    secrets: Secrets = root.obj
    return secrets


def environment_name(env: str | None, option: str | None) -> str:
    """Return the environment that a command is about: ENV, `--env`, FRAZIL_ENV, or the project's, in this order.

    Raises `InvalidInput` if argument and option differ, and if there is none.
    """
    if env is not None and option is not None and env != option and _source(OPTION) == "COMMANDLINE":
        what = f"the argument names {env}, the option names {option}"
        raise InvalidInput(what, where="environment", do="Name one environment")
    chosen = env if env is not None else option
    if chosen is None:
        command = get_current_context().command_path.partition(" ")[2]  # with its groups: `release upload`
        do = f"Name it: `frazil {command} ENV`, or set {VARIABLE}"
        raise InvalidInput("no environment is named", do=do)
    return chosen


def declared_if_any(file: Path) -> declaration_file.Found:
    """Return what the file declares; nothing if the file of a default does not exist, for commands that do not need it."""
    return declaration_file.Found(()) if _is_omitted("file") and not file.exists() else declaration_file.found(file)


def _source(parameter: str) -> str:
    """Return where the value of a parameter is from."""
    source = get_current_context().get_parameter_source(parameter)
    return "" if source is None else source.name


def _is_omitted(parameter: str) -> bool:
    """Return whether neither the command line nor a variable has the option."""
    return _source(parameter) in ("", "DEFAULT")
