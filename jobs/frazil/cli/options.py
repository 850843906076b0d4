"""Options and arguments that several commands share, with their completion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from frazil.errors import FrazilError
from frazil.project import environments, pipelines


def _pipeline_names(context: typer.Context, incomplete: str) -> list[str]:
    """The names that complete what was typed; none when the declarations cannot be read: no place to complain."""
    file = context.params.get("file") or pipelines.USUAL
    try:
        return [p.name for p in pipelines.declared(Path(file)) if p.name.startswith(incomplete)]
    except FrazilError:
        return []


def _environment_names(incomplete: str) -> list[str]:
    return [name for name in environments.known() if name.startswith(incomplete)]


PipelineName = Annotated[
    str, typer.Argument(metavar="PIPELINE", help="A declared pipeline, by name.", autocompletion=_pipeline_names)
]
PipelineNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="PIPELINE...", help="Declared pipelines, by name.", autocompletion=_pipeline_names),
]
PipelinesFile = Annotated[
    Path,
    typer.Option(
        "--pipelines",
        metavar="FILE",
        envvar="FRAZIL_PIPELINES",
        help="Where pipelines are declared: a Python file, or their JSON document.",
    ),
]
EnvironmentChoice = Annotated[
    str,
    typer.Option(
        "--env",
        "--environment",
        metavar="NAME|FILE",
        envvar="FRAZIL_ENV",
        help="The environment: a name in .frazil/environments, or a document.",
        autocompletion=_environment_names,
    ),
]
EnvironmentName = Annotated[
    str,
    typer.Argument(metavar="ENV", help="The environment: a name or a document.", autocompletion=_environment_names),
]
JobName = Annotated[str, typer.Option("--job", help="The job, as its desired state names it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON object on stdout.")]
