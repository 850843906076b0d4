"""Environments, found by name in the project file or in `.frazil/environments`, or by file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from frazil.declaration import Environment, InvalidDeclaration, Problem, parse_environment
from frazil.declaration.checks.constraints import below
from frazil.errors import InvalidInput
from frazil.project.project_file import (
    NAME,
    ProjectFile,
    project_file,
    project_folder,
    state_folder,
    stated_environments,
)


def documents_folder() -> Path:
    """Return the folder of the environments' documents."""
    return state_folder() / "environments"


def environment(choice: str) -> Environment:
    """Read the environment of a name, like `local`, or of a file: a choice with a slash, or one that ends in `.json`.

    The environment of a name is in the project file, or a document in `documents_folder`.
    Raises `InvalidInput` if it does not exist or is in both, or if the file of a name is of another environment. Raises
    `InvalidDeclaration` with the problems of its document, or of the project file.
    """
    is_file = "/" in choice or choice.endswith(".json")
    file = Path(choice) if is_file else documents_folder() / f"{choice}.json"
    project = None if is_file else project_file()
    if project and choice in project.content.environments:
        if file.exists():
            clash = _clash(project, choice, file)
            raise InvalidInput(clash.what, where=clash.path, do=clash.do)
        return project.content.environments[choice]
    try:
        source = file.read_bytes()
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        what = "it does not exist" if is_missing else f"it cannot be read ({error.strerror})"
        raise InvalidInput(what, where=f"environment {choice}", do=_remedy(choice, file)) from None
    try:
        found = parse_environment(source)
    except InvalidDeclaration as invalid:
        problems = [replace(problem, path=f"{file}: {problem.path}") for problem in invalid.problems]
        raise InvalidDeclaration(problems) from None
    if not is_file and found.name != choice:
        do = f"Rename the file, or the environment in it; {file} as --env takes the file as it is"
        raise InvalidInput(f"its file names the environment {found.name}", where=f"environment {choice}", do=do)
    return found


def known() -> tuple[str, ...]:
    """Return the names of the environments in the project file and in `documents_folder`."""
    documents = (file.stem for file in documents_folder().glob("*.json"))
    return tuple(sorted({*documents, *stated_environments()}))


def is_known(choice: str) -> bool:
    """Return whether a choice is the name of an environment, or names a file."""
    return "/" in choice or choice.endswith(".json") or choice in known()


def clashes_with_documents(project: ProjectFile) -> list[Problem]:
    """Return a problem for each environment of the project file that has a document, too."""
    files = {name: documents_folder() / f"{name}.json" for name in project.content.environments}
    return [_clash(project, name, file) for name, file in files.items() if file.exists()]


def _clash(project: ProjectFile, name: str, file: Path) -> Problem:
    return Problem(
        f"{project.path}: {below('environments', name)}", f"{file} has the same environment", "Remove one of the two"
    )


def _remedy(choice: str, file: Path) -> str:
    if choice == "local":
        return "`frazil local up` starts the local parts and writes it; --env names another"
    others = [name for name in known() if name != choice]
    existing = f"; existing: {', '.join(others)}" if others else ""
    return (
        f"Write [environments.{choice}] into {project_folder() / NAME}, or {file} (docs/project.md), fetch that of a deployment "
        f"with `frazil deploy fetch OUTPUTS`, or give --env a name or a file{existing}"
    )
