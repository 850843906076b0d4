"""The project file `frazil.toml`, found in the working folder or above it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from frazil.declaration.problems import InvalidDeclaration, Problem
from frazil.declaration.project import Project, parse_project
from frazil.errors import InvalidInput

NAME = "frazil.toml"
DEPLOYMENTS = "infra_app.py"
"""The program of a project that deploys: it declares the deployments."""
STATE = ".frazil"
"""The folder of a project that holds what commands write for themselves."""


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
    """Read the project file; None if there is none. Raises `InvalidDeclaration` with every problem and its place."""
    path = project_folder() / NAME
    if not os.path.isfile(path):
        return None
    try:
        content = parse_project(_parsed(path), lambda given: os.path.abspath(path.parent / given))
    except InvalidDeclaration as invalid:
        raise InvalidDeclaration(_placed(path, invalid)) from None
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


def _placed(path: Path, invalid: InvalidDeclaration) -> list[Problem]:
    return [replace(each, path=f"{path}: {each.path}".removesuffix(": ")) for each in invalid.problems]


def _tolerant(path: Path) -> dict[str, Any]:
    with suppress(InvalidInput):
        if os.path.isfile(path):  # to read a pipe would wait without an end
            return _parsed(path)
    return {}
