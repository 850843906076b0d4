"""Pipelines, found in the file that declares them: Python with `Pipeline` objects, or their JSON document."""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from frazil.declaration import InvalidDeclaration, Pipeline, Problem, check, parse
from frazil.errors import FrazilError, InvalidInput

USUAL = Path("stacks/pipelines.py")
_EXAMPLE = 'Write pipelines = [Pipeline(topic=Topic("orders", …), table=Table("shop.orders"))]'


def declared(file: Path) -> tuple[Pipeline, ...]:
    """The pipelines of a file, as they stand together.

    Raises `InvalidDeclaration` with the place of every problem: the line of a Python file, the path in a document; and
    `InvalidInput` when there is no such file, it does not run, or it declares nothing.
    """
    if not file.is_file():
        raise InvalidInput(
            "there is no such file",
            where=str(file),
            do=f"Run in the project's folder, which has {USUAL}, or name a file by --pipelines",
        )
    if file.suffix == ".json":
        pipelines = _document(file)
    else:
        pipelines = _python(file)
        problems = check(pipelines)
        if problems:
            raise _placed(problems, f"{file}: ")
    if not pipelines:
        raise InvalidInput("it declares no pipelines", where=str(file), do=_EXAMPLE)
    return pipelines


def chosen(pipelines: Sequence[Pipeline], names: Sequence[str]) -> tuple[Pipeline, ...]:
    """The pipelines of these names, in the order of the names, each once."""
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    unknown = [name for name in dict.fromkeys(names) if name not in by_name]
    if unknown:
        raise InvalidInput(
            f"there is no pipeline {', '.join(unknown)}", do=f"Declared are {', '.join(sorted(by_name))}"
        )
    return tuple(by_name[name] for name in dict.fromkeys(names))


def _document(file: Path) -> tuple[Pipeline, ...]:
    try:
        return parse(file.read_bytes())
    except InvalidDeclaration as invalid:
        raise _placed(invalid.problems, f"{file}: ") from None


def _python(file: Path) -> tuple[Pipeline, ...]:
    """Run the file statement by statement, so that a wrong pipeline does not hide the problems of the next ones."""
    module = ModuleType(f"frazil_declarations_{file.stem}")
    module.__file__ = str(file)
    problems: list[Problem] = []
    missing: set[str] = set()
    with _importable(module, file.resolve().parent):
        for statement, code in _statements(file):
            try:
                exec(code, module.__dict__)  # noqa: S102 - running the user's own declarations is the point
            except InvalidDeclaration as invalid:
                line = _line(invalid.__traceback__, file) or statement.lineno
                problems += _placed(invalid.problems, f"{file}:{line}: ").problems
                missing |= _assigned(statement)
            except NameError as error:
                if error.name not in missing:
                    raise _failed(error, file, statement) from error
                missing |= _assigned(statement)
            except Exception as error:
                raise _failed(error, file, statement) from error
    if problems:
        raise InvalidDeclaration(problems)
    return _pipelines(module, file)


def _pipelines(module: ModuleType, file: Path) -> tuple[Pipeline, ...]:
    """`pipelines` if the file says so, else every `Pipeline` that has a name in it."""
    listed: Any = vars(module).get("pipelines")
    if listed is None:
        return tuple(dict.fromkeys(value for value in vars(module).values() if isinstance(value, Pipeline)))
    if isinstance(listed, Pipeline) or not isinstance(listed, Iterable):
        raise InvalidInput("`pipelines` is not a list", where=str(file), do=_EXAMPLE)
    found = tuple(listed)
    for index, value in enumerate(found):
        if not isinstance(value, Pipeline):
            what = f"`pipelines[{index}]` is of type {type(value).__name__}, not a Pipeline"
            raise InvalidInput(what, where=str(file), do=_EXAMPLE)
    return found


def _statements(file: Path) -> Iterator[tuple[ast.stmt, Any]]:
    """Each statement of the file and its code; the file's `from __future__` imports hold for all of them."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
        futures = [
            name.name
            for statement in tree.body
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
            for name in statement.names
        ]
        flags = 0
        for future in futures:
            flags |= getattr(__future__, future).compiler_flag
        for statement in tree.body:
            yield statement, compile(ast.Module([statement], []), str(file), "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        place = f"{file}:{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else str(file)
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InvalidInput(f"this is not Python: {what}", where=place) from error


@contextmanager
def _importable(module: ModuleType, folder: Path) -> Iterator[None]:
    """Have the file's neighbours importable, as when it is run by `python FILE`."""
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        del sys.modules[module.__name__]


def _assigned(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _line(traceback: TracebackType | None, file: Path) -> int | None:
    """The line of the file that was running."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(file):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _failed(error: Exception, file: Path, statement: ast.stmt) -> FrazilError:
    line = _line(error.__traceback__, file) or statement.lineno
    said = " ".join(str(error).split())
    return InvalidInput(f"{type(error).__name__}: {said}", where=f"{file}:{line}")


def _placed(problems: Iterable[Problem], place: str) -> InvalidDeclaration:
    return InvalidDeclaration([replace(problem, path=f"{place}{problem.path}") for problem in problems])
