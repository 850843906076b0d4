"""The check of a project: its declarations, its project file, and both together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frazil.declaration import InvalidDeclaration, Problem
from frazil.declaration.checks.cross_checks import misfits
from frazil.errors import InvalidInput
from frazil.project import declaration_file
from frazil.project.environments import clashes_with_documents, environment
from frazil.project.project_file import ProjectFile, project_file


def checked_pipelines(file: Path, *, choice: str | None, with_project: bool) -> declaration_file.Found:
    """Return the declarations of a file, checked for the environment `choice` if there is one.

    `with_project` checks the project file too, and the pipelines for each of its environments. Raises `InvalidDeclaration`
    with all problems.
    """
    problems: list[Problem] = []
    found = declaration_file.Found(())
    project: ProjectFile | None = None
    try:
        with _noted(problems):
            found = declaration_file.found(file)
    except InvalidInput:
        if with_project:
            project_file()  # its problems may be why there is no such file
        raise
    if with_project:
        with _noted(problems):
            project = project_file()
    if project is not None:
        problems += clashes_with_documents(project)
        for name, place in project.content.environments.items():
            if name != choice:
                problems += [each.moved("", f"environment {name}: ") for each in misfits(found.examples, place)]
    if choice is not None and not problems:
        declaration_file.refuse_misfits(found.examples, environment(choice))
    if problems:
        raise InvalidDeclaration(problems)
    return found


@contextmanager
def _noted(problems: list[Problem]) -> Iterator[None]:
    """Add the problems that are raised in the block."""
    try:
        yield
    except InvalidDeclaration as invalid:
        problems += invalid.problems
