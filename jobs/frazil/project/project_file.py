"""The project file `frazil.toml`, found in the working folder or above it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from frazil.declaration.checks.constraints import NOT_EMPTY, below, shown
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import InvalidDeclaration, Problem
from frazil.declaration.checks.validation import FrozenMap
from frazil.declaration.documents.from_json import from_json
from frazil.declaration.environment import ENVIRONMENT_NAME, Environment
from frazil.errors import InvalidInput

NAME = "frazil.toml"
DEPLOYMENTS = "infra_app.py"
"""The program of a project that deploys: it declares the deployments."""
STATE = ".frazil"
"""The folder of a project that holds what commands write for themselves."""


PATHS = frozenset({"ca", "file", "path", "warehouse"})
"""The members of an environment that hold paths of this machine."""
_RELATIVE = ("./", "../")


@declared
class Project:
    """The values that commands take from the project file if neither an option nor a variable says it."""

    pipelines: Annotated[str | None, "The file of declarations, relative to this file.", NOT_EMPTY] = None
    environment: Annotated[str | None, "The environment of commands that name none.", ENVIRONMENT_NAME] = None
    environments: Annotated[
        Mapping[str, Environment], "The environments by name. Paths may be relative to this file: ./ or ../."
    ] = FrozenMap()


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project file and its content."""

    path: Path
    content: Project

    @property
    def pipelines(self) -> Path | None:
        """The file of declarations, as seen from the working folder."""
        return None if self.content.pipelines is None else self.path.parent / self.content.pipelines


def project_folder() -> Path:
    """Return the nearest folder upwards that has a project file, as a relative path like `..`; without one `.`."""
    return next((folder for folder in _upwards() if os.path.isfile(folder / NAME)), Path())


def state_folder() -> Path:
    """Return the project's `.frazil`: its environments, logs, proofs and local services."""
    return project_folder() / STATE


def project_file() -> ProjectFile | None:
    """Read the project file; None if it does not exist. Raises `InvalidDeclaration` with every problem and its place."""
    path = project_folder() / NAME
    if not os.path.isfile(path):
        return None
    try:
        content = parse_project(_parsed(path), lambda given: os.path.abspath(path.parent / given))
    except InvalidDeclaration as invalid:
        placed = [replace(each, path=f"{path}: {each.path}".removesuffix(": ")) for each in invalid.problems]
        raise InvalidDeclaration(placed) from None
    return ProjectFile(path, content)


def stated_pipelines() -> Path | None:
    """Return the file of declarations that the project file names, also if the rest of it has problems."""
    path = project_folder() / NAME
    stated = _tolerant(path).get("pipelines")
    return path.parent / stated if isinstance(stated, str) and stated.strip() else None


def stated_environments() -> tuple[str, ...]:
    """Return the names of the project file's environments, also if they have problems."""
    stated = _tolerant(project_folder() / NAME).get("environments")
    return tuple(stated) if isinstance(stated, dict) else ()


def _upwards() -> Iterator[Path]:
    """Yield the working folder and those above it, as relative paths."""
    with suppress(FileNotFoundError):  # it was deleted
        for above in range(len(Path.cwd().parts)):
            yield Path(*[".."] * above)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InvalidInput.unreadable(path, error) from None
    except UnicodeDecodeError as error:
        what, do = f"byte {error.start} is not UTF-8", "Save it as UTF-8"
    except RecursionError:
        what, do = "the TOML is nested too deep", "Write one table for each environment"
    except ValueError as error:
        what, do = f"this is not TOML: {error}", "Correct it there"
    raise InvalidDeclaration([Problem("", what, do)])


def _tolerant(path: Path) -> dict[str, Any]:
    with suppress(InvalidInput):
        if os.path.isfile(path):  # to read a pipe would wait without an end
            return _parsed(path)
    return {}


def parse_project(document: Mapping[str, Any], absolute: Callable[[str], str]) -> Project:
    """Return the project that the parsed TOML describes. `absolute` returns the complete path of a relative one.

    Raises `InvalidDeclaration` with every problem.
    """
    tables = document.get("environments")
    tables = tables if isinstance(tables, Mapping) else {}
    problems = [
        Problem(f"{below('environments', name)}.name", "the name of the table is the environment's name", "Remove it")
        for name, table in tables.items()
        if isinstance(table, Mapping) and "name" in table
    ]
    named = {
        name: {**_with_paths(table, absolute), "name": name} if isinstance(table, Mapping) else table
        for name, table in tables.items()
    }
    read = None
    try:
        read = from_json(Project, {**document, **({"environments": named} if tables else {})}, "")
    except InvalidDeclaration as invalid:
        problems += [replace(each, path=_dotted(each.path, named)) for each in invalid.problems]
    if read is None or problems:
        raise InvalidDeclaration(problems)
    return read


def _with_paths(table: Mapping[str, Any], absolute: Callable[[str], str]) -> dict[str, Any]:
    """Return the table with complete paths. Only what begins with ./ or ../ is relative: `lake` may lack its slash."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            found[name] = _with_paths(value, absolute)
        elif name in PATHS and isinstance(value, str) and value.startswith(_RELATIVE):
            found[name] = absolute(value)
        else:
            found[name] = value
    return found


def _dotted(path: str, tables: Mapping[str, Any]) -> str:
    """Return the path with the names of tables as TOML writes them: `environments.dev`."""
    for name in tables:
        place = f"environments[{shown(name)}]"
        if path.startswith(place):
            return f"{below('environments', name)}{path.removeprefix(place)}"
    return path
