"""Environments, found by name in `.frazil/environments` or by file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from frazil.declaration import Environment, InvalidDeclaration, parse_environment
from frazil.errors import InvalidInput

FOLDER = Path(".frazil/environments")


def environment(choice: str, folder: Path = FOLDER) -> Environment:
    """Read the environment of a name, like `local`, or of a file: a choice with a slash, or one that ends in `.json`.

    Raises `InvalidInput` if it does not exist, or if the file of a name is of another environment. Raises `InvalidDeclaration`
    with the problems of its document.
    """
    is_file = "/" in choice or choice.endswith(".json")
    file = Path(choice) if is_file else folder / f"{choice}.json"
    try:
        source = file.read_bytes()
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        what = "it does not exist" if is_missing else f"it cannot be read ({error.strerror})"
        raise InvalidInput(what, where=f"environment {choice}", do=_remedy(choice, file, folder)) from None
    try:
        found = parse_environment(source)
    except InvalidDeclaration as invalid:
        problems = [replace(problem, path=f"{file}: {problem.path}") for problem in invalid.problems]
        raise InvalidDeclaration(problems) from None
    if not is_file and found.name != choice:
        do = f"Rename the file, or the environment in it; {file} as --env takes the file as it is"
        raise InvalidInput(f"its file names the environment {found.name}", where=f"environment {choice}", do=do)
    return found


def known(folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the names of the environments in `folder`."""
    return tuple(sorted(file.stem for file in folder.glob("*.json")))


def is_known(choice: str, folder: Path = FOLDER) -> bool:
    """Return whether a choice is the name of an environment in `folder`, or names a file."""
    return "/" in choice or choice.endswith(".json") or choice in known(folder)


def _remedy(choice: str, file: Path, folder: Path) -> str:
    if choice == "local":
        return "`frazil local up` starts the local parts and writes it; --env names another"
    others = [name for name in known(folder) if name != choice]
    existing = f"; existing: {', '.join(others)}" if others else ""
    return (
        f"Write {file} (docs/environment.schema.json describes it), fetch that of a deployment with `frazil environments fetch`, "
        f"or give --env a name or a file{existing}"
    )
