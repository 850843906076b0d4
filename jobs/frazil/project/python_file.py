"""A Python file of declarations: run statement by statement, so that all of its problems are found at once."""

from __future__ import annotations
import __future__

import ast
import io
import os
import sys
import tokenize
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from frazil.declaration import InvalidDeclaration, Problem
from frazil.declaration.declared import collecting
from frazil.declaration.invalid import Invalid, Located, is_consequence, text_of
from frazil.errors import InvalidInput

_TOO_DEEP = (MemoryError, RecursionError)  # what Python's parser and compiler raise for deep nesting


@dataclass(frozen=True, slots=True)
class Names:
    """What a file binds: its names with their values, and where the declared values were made."""

    file: Path
    values: Mapping[str, Any]
    made: Mapping[int, tuple[object, str, int]]

    def place(self, value: object) -> str:
        """Return the file and line that made a value, or the file alone."""
        _, file, line = self.made.get(id(value), (None, str(self.file), 0))
        return f"{_short(file)}:{line}" if line else str(self.file)


def run(source: bytes, file: Path) -> Names:
    """Run the source of a Python file of declarations and return its names.

    The file runs statement by statement, so a problem of one statement does not hide those of the next ones. An error of a
    statement that uses a value which could not be made is a consequence, and is not reported. What the file prints goes to
    stderr. Raises `InvalidDeclaration` with the line of every problem, and `InvalidInput` if the file is not Python.
    """
    module = ModuleType(f"frazil_declarations_{file.stem}")
    module.__file__ = str(file)
    folder = file.resolve().parent
    problems: list[Problem] = []
    unmade: set[str] = set()
    statements = _statements(source, file)
    with _importable(module, folder), collecting(str(file)) as notes, _stdout_on_stderr():
        for statement, code in statements:
            error = _error_of(code, module)
            found = notes.taken()
            if error and not ((found or problems) and _is_known(error, statement, unmade)):
                found += _located(error, file, folder, statement.lineno)
            problems += [
                replace(each, path=f"{_short(place)}:{line}: {each.path}".removesuffix(": "))
                for place, line, each in found
            ]
            if found or error or unmade & _used(statement):
                unmade |= _bound(statement)
        if problems:
            raise InvalidDeclaration(problems)
    return Names(file, vars(module), notes.made)


def _short(file: str) -> str:
    """Return the path of an imported module, which Python knows from the root, as seen from the current folder."""
    return file.removeprefix(f"{_current_folder()}/")


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return None


def _error_of(code: CodeType, module: ModuleType) -> BaseException | None:
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the user's own declarations is the point
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a person's file raises is reported with its line
        return error
    return None


def _is_known(error: BaseException, statement: ast.stmt, unmade: set[str]) -> bool:
    """Return whether the error is a consequence of problems that are reported already."""
    if isinstance(error, InvalidDeclaration) and error.problems:
        return False
    names = {error.name, "*"} if isinstance(error, NameError) else _used(statement)
    return bool(unmade & names) or is_consequence(error)


def _located(error: BaseException, file: Path, folder: Path, line: int) -> Iterator[Located]:
    """Yield the problems behind an error of a statement at `line`."""
    place = _innermost(error, file, folder) or (str(file), line)
    if isinstance(error, InvalidDeclaration) and error.problems:
        yield from (Located(*place, problem) for problem in error.problems)
        return
    what = f"{type(error).__name__}: {text_of(error)}".removesuffix(": ").removesuffix(".")
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        place = (error.filename, error.lineno or 1)
        what = f"this is not Python: {error.msg}"
    yield Located(*place, Problem("", what, "Correct the line"))


def _innermost(error: BaseException, file: Path, folder: Path) -> tuple[str, int] | None:
    """Return the file and line that was running: of the file itself, or of a module beside it."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if name == str(file) or _is_beside(name, folder):
            found = name, traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def _is_beside(name: str | None, folder: Path) -> bool:
    """Return whether a file is in the folder of the declarations, or below it, and is no installed package."""
    path = Path(name or "")
    return path.is_relative_to(folder) and "site-packages" not in path.relative_to(folder).parts


def _statements(source: bytes, file: Path) -> list[tuple[ast.stmt, CodeType]]:
    """Return each statement of the file and its code. The file's `from __future__` imports apply to all of them."""
    try:
        tree = ast.parse(source, str(file))
        with warnings.catch_warnings():  # they are shown when the statements are compiled
            warnings.simplefilter("ignore")
            compile(tree, str(file), "exec", dont_inherit=True)
        flags = 0
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                for name in statement.names:
                    flags |= getattr(__future__, name.name).compiler_flag
        return [
            (statement, compile(ast.Module([statement], []), str(file), "exec", flags=flags, dont_inherit=True))
            for statement in tree.body
        ]
    except _TOO_DEEP:
        line, what = _too_deep(source), "an expression or a block is nested too deep"
    except (SyntaxError, ValueError) as error:
        line, what = (error.lineno, error.msg) if isinstance(error, SyntaxError) else (None, str(error))
        if not line and b"\0" in source:
            line = source[: source.index(b"\0")].count(b"\n") + 1
    raise InvalidInput(f"this is not Python: {what}", where=f"{file}:{line}" if line else str(file))


def _too_deep(source: bytes) -> int | None:
    """Return the line at which the first statement begins that is nested too deep; None if no single one is."""
    tokens: list[tokenize.TokenInfo] = []
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type != tokenize.NEWLINE:
                tokens.append(token)
                continue
            words, tokens = [each for each in tokens if each.type not in _LAYOUT], []
            try:
                with suppress(SyntaxError):
                    compile(" ".join(word.string for word in words), "<statement>", "exec", dont_inherit=True)
            except _TOO_DEEP:
                return words[0].start[0]
    return None


_LAYOUT = {tokenize.ENCODING, tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT}


@contextmanager
def _importable(module: ModuleType, folder: Path) -> Iterator[None]:
    """Make the modules beside the file importable, as `python FILE` does. Afterwards Python's paths are as before."""
    earlier, path, entries = set(sys.modules), sys.path, list(sys.path)
    here = _current_folder()
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(folder))
    try:
        yield
    except InvalidDeclaration:
        for name in set(sys.modules) - earlier:
            # Such a module may hold values with problems: the next import runs it again.
            values = getattr(sys.modules[name], "__dict__", {})
            if _is_beside(values.get("__file__"), folder) or any(
                isinstance(value, Invalid) for value in values.values()
            ):
                del sys.modules[name]
        raise
    finally:
        sys.path = path
        sys.path[:] = entries
        sys.modules.pop(module.__name__, None)
        if here is not None:
            os.chdir(here)


_REPLACED: list[object] = []
"""Streams that files made of the process's own ones. They are kept, because Python closes the inner stream with the outer one."""


@contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """Print to stderr, and restore both streams afterwards."""
    streams = sys.stdout, sys.stderr
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        _REPLACED.extend(stream for stream in (sys.stdout, sys.stderr) if stream not in streams)
        sys.stdout, sys.stderr = streams


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that the statement gives a value to; `*` for all names of a module."""
    found: set[str | None] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.MatchAs | ast.MatchStar):
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping):
            found.add(node.rest)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
    return {name for name in found if name}


def _used(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
