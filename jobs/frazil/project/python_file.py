"""A Python file of declarations, imported; its first problem has the line that raised it."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from frazil.declaration import InvalidDeclaration, Problem
from frazil.declaration.checks.constraints import unknown
from frazil.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a file binds, with their values."""

    file: Path
    values: Mapping[str, Any]


def run(file: Path) -> Names:
    """Run a Python file of declarations and return its names. Standard output of the file goes to stderr.

    Raises `InvalidDeclaration` with the problems of the first invalid object, or with the first error, at its line. Raises
    `InvalidInput` if the file is not Python.
    """
    try:
        with _importable(file.resolve().parent), redirect_stdout(sys.stderr):
            return Names(file, runpy.run_path(str(file)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - each error of a user's file is reported with its line
        raise _located(error, file) from None


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Make the modules next to the file importable, as `python FILE` does."""
    entries = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = entries


def _located(error: BaseException, file: Path) -> InvalidInput:
    """Return the error as one of the line that raised it."""
    place = _place(error, file)
    if isinstance(error, InvalidDeclaration) and error.problems:
        return InvalidDeclaration(replace(each, path=f"{place}: {each.path}") for each in error.problems)
    if isinstance(error, SyntaxError):
        place = f"{_short(error.filename or str(file))}:{error.lineno}" if error.lineno else place
        return InvalidInput(f"this is not Python: {error.msg}", where=place, do="Correct the line")
    text = " ".join(str(error).split()).removesuffix(".")
    do = "Correct the line"
    if isinstance(error, AttributeError) and isinstance(error.obj, type):
        text, do = unknown(error.name, [name for name in dir(error.obj) if not name.startswith("_")], "member")
    return InvalidDeclaration([Problem(place, f"{type(error).__name__}: {text}".removesuffix(": "), do)])


def _place(error: BaseException, file: Path) -> str:
    """Return the file and line that were running: of the file itself, or of a module in its folder."""
    folder, place = file.resolve().parent, str(file)
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = Path(frame.f_code.co_filename).resolve()
        is_own = module.is_relative_to(folder) and "site-packages" not in module.relative_to(folder).parts
        if is_own and not frame.f_globals["__name__"].startswith("frazil."):
            place = f"{_short(frame.f_code.co_filename)}:{line}"
    return place


def _short(file: str) -> str:
    """Return the path as seen from the current folder."""
    return file.removeprefix(f"{Path.cwd()}/")
