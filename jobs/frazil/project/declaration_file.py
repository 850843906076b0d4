"""Pipelines, found in the file that declares them: Python with `Pipeline` objects, or their JSON document."""

from __future__ import annotations
import __future__

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from frazil.declaration import InvalidDeclaration, Pipeline, Problem, check, parse
from frazil.declaration.declared import Invalid, Located, collecting
from frazil.declaration.validation import named
from frazil.errors import InvalidInput

USUAL = Path("stacks/pipelines.py")
_EXAMPLE = 'Write pipelines = [Pipeline(topic=Topic("orders", …), table=Table("shop.orders"))]'


def declared(file: Path) -> tuple[Pipeline, ...]:
    """Read the pipelines of a file, checked together.

    Raises `InvalidDeclaration` with the place of every problem: the line of a Python file, the path in a document. Raises
    `InvalidInput` if the file does not exist, fails to run, or declares no pipeline.
    """
    if not file.is_file():
        raise InvalidInput(
            "the file does not exist",
            where=str(file),
            do=f"Run in the project's folder, which has {USUAL}, or name another file: FRAZIL_PIPELINES=FILE",
        )
    if file.suffix == ".json":
        pipelines = _document(file)
    else:
        pipelines = listed(namespace(file), file)
        problems = check(pipelines)
        if problems:
            raise _placed(problems, f"{file}: ")
    if not pipelines:
        raise InvalidInput("the file declares no pipelines", where=str(file), do=_EXAMPLE)
    return pipelines


def chosen(pipelines: Sequence[Pipeline], names: Sequence[str]) -> tuple[Pipeline, ...]:
    """Return the pipelines with these names, in the order of the names, each once."""
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    unknown = [name for name in dict.fromkeys(names) if name not in by_name]
    if unknown:
        raise InvalidInput(
            f"the pipeline {', '.join(unknown)} does not exist", do=f"Name one of {', '.join(sorted(by_name))}"
        )
    return tuple(by_name[name] for name in dict.fromkeys(names))


def _document(file: Path) -> tuple[Pipeline, ...]:
    try:
        return parse(file.read_bytes())
    except InvalidDeclaration as invalid:
        raise _placed(invalid.problems, f"{file}: ") from None


def namespace(file: Path) -> dict[str, Any]:
    """Run a Python file of declarations and return its names with their values.

    The file runs statement by statement, so a problem of one statement does not hide those of the next ones. An error of a
    statement that uses a value which could not be made is a consequence, and is not reported. Raises `InvalidDeclaration`
    with the line of every problem.
    """
    module = ModuleType(f"frazil_declarations_{file.stem}")
    module.__file__ = str(file)
    problems: list[Problem] = []
    unmade: set[str] = set()
    with _importable(module, file.resolve().parent), collecting(str(file)) as notes:
        for statement, code in _statements(file):
            error = _error_of(code, module)
            found = [*notes.taken(), *_problems(error, statement, file, unmade)]
            problems += [
                replace(each, path=f"{_short(place)}:{line}: {each.path}".removesuffix(": "))
                for place, line, each in found
            ]
            if found or error or unmade & _used(statement):
                unmade |= _bound(statement)
    if problems:
        raise InvalidDeclaration(problems)
    return vars(module)


def _short(file: str) -> str:
    """Return the path of an imported module, which Python knows from the root, as seen from the current folder."""
    return file.removeprefix(f"{Path.cwd()}/")


def _error_of(code: Any, module: ModuleType) -> Exception | SystemExit | None:
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the user's own declarations is the point
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a person's file raises is reported with its line
        return error
    return None


def _problems(
    error: Exception | SystemExit | None, statement: ast.stmt, file: Path, unmade: set[str]
) -> Iterator[Located]:
    """Yield the problems behind an error of the statement, unless the error is a consequence of earlier ones."""
    if error is None:
        return
    line = _line(error.__traceback__, file) or statement.lineno
    if isinstance(error, InvalidDeclaration):
        yield from (Located(str(file), line, problem) for problem in error.problems)
    elif error.name not in unmade if isinstance(error, NameError) else not unmade & _used(statement):
        what = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
        yield Located(str(file), line, Problem("", what.removesuffix("."), "Correct the line"))


def listed(declared: Mapping[str, Any], file: Path) -> tuple[Pipeline, ...]:
    """Return the file's `pipelines`, or else every `Pipeline` that the file assigns to a name.

    Raises `InvalidInput` if `pipelines` is no list or tuple: a generator is empty for the second reader, and what it runs would
    fail without the line of the file.
    """
    found: Any = declared.get("pipelines")
    if found is None:
        return tuple(dict.fromkeys(value for value in declared.values() if isinstance(value, Pipeline)))
    if not isinstance(found, list | tuple):
        raise InvalidInput(f"`pipelines` is {named(found)}, not a list", where=str(file), do=_EXAMPLE)
    for index, value in enumerate(found):
        if not isinstance(value, Pipeline):
            what = f"`pipelines[{index}]` is {named(value)}, not a Pipeline"
            raise InvalidInput(what, where=str(file), do=_EXAMPLE)
    return tuple(found)


def _statements(file: Path) -> Iterator[tuple[ast.stmt, Any]]:
    """Yield each statement of the file and its code. The file's `from __future__` imports apply to all of them."""
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
    """Make the modules beside the file importable, as `python FILE` does."""
    earlier = set(sys.modules)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        del sys.modules[module.__name__]
        for name in set(sys.modules) - earlier:
            # Such a module had problems: the next import runs it again.
            if any(isinstance(value, Invalid) for value in vars(sys.modules[name]).values()):
                del sys.modules[name]


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that the statement gives a value to."""
    names: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
    return names


def _used(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _line(traceback: TracebackType | None, file: Path) -> int | None:
    """Return the line of the file that was running."""
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(file):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _placed(problems: Iterable[Problem], place: str) -> InvalidDeclaration:
    return InvalidDeclaration([replace(problem, path=f"{place}{problem.path}") for problem in problems])
