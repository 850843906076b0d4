"""Pipelines, found in the file that declares them: Python with `Pipeline` objects, or their JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from frazil.declaration import (
    Environment,
    InvalidDeclaration,
    Pipeline,
    Problem,
    Topic,
    TopicPattern,
    TypePattern,
    parse_document,
)
from frazil.declaration.checks.cross_checks import Listed, clashes, misfits, type_clashes
from frazil.declaration.checks.validation import named
from frazil.errors import InvalidInput
from frazil.project.project_file import NAME, project_folder, stated_pipelines
from frazil.project.python_file import Names, run
from frazil.schema_files.declared_rows import file_problems

T = TypeVar("T")
Declared = Pipeline | TopicPattern | TypePattern

USUAL = Path("stacks/pipelines.py")
"""The file of declarations of a project whose file names none, in its folder."""
_EXAMPLE = 'Write pipelines = [Pipeline(topic=Topic("orders", …), table=Table("shop.orders"))]'


def usual() -> Path:
    """Return the file of declarations if a command names none: the project file's, or `USUAL`."""
    return stated_pipelines() or project_folder() / USUAL


class Found(NamedTuple):
    """The declarations of a file, checked together: its pipelines, each with its place, and its patterns of topics and types."""

    listed: tuple[Listed, ...]
    patterns: tuple[TopicPattern, ...] = ()
    place: str = ""
    types: tuple[TypePattern, ...] = ()

    @property
    def every_pattern(self) -> tuple[TopicPattern | TypePattern, ...]:
        """The patterns of topics and of types."""
        return (*self.patterns, *self.types)

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        """The pipelines without their places."""
        return tuple(one.pipeline for one in self.listed)

    def topic(self, name: str) -> Topic | None:
        """Return a topic as it is declared, by itself or by a pattern; None if it is not."""
        one = next((one for one in self.pipelines if one.topic.name == name), None)
        pattern = next((each for each in self.patterns if each.matches(name)), None)
        if one is None and pattern is not None:
            one = pattern.pipeline_of(name)
        return one.topic if one is not None else None

    @property
    def examples(self) -> tuple[Listed, ...]:
        """The pipelines, and that which the topics or types of each pattern share."""
        of_topics = (Listed(n, one.pipeline, self.place, "patterns") for n, one in enumerate(self.patterns))
        of_types = (Listed(n, one.pipeline, self.place, "types") for n, one in enumerate(self.types))
        return (*self.listed, *of_topics, *of_types)


def declared(file: Path) -> tuple[Pipeline, ...]:
    """Read the pipelines of a file that are declared one by one; see `found`."""
    return found(file).pipelines


def found(file: Path) -> Found:
    """Read the pipelines and patterns of a file.

    Raises `InvalidDeclaration` with the problems of the first invalid object in a Python file, or with all problems of a document;
    if all objects are valid, with all problems between them. Raises `InvalidInput` if the file does not exist, is not Python, or
    declares no pipeline.
    """
    of_file = _document(file) if file.suffix == ".json" else checked(ran(file))
    if not (of_file.listed or of_file.every_pattern):
        raise InvalidInput("the file declares no pipelines", where=str(file), do=_EXAMPLE)
    return of_file


def ran(file: Path) -> Names:
    """Run a Python file of declarations and return its names with their values."""
    read(file)  # if the file does not exist, this error names the remedy
    return run(file)


def checked(names: Names) -> Found:
    """Return the pipelines and patterns of a Python file. Raises `InvalidDeclaration` with all conflicts of them."""
    every = _listed(names)
    return _of([one for one in every if isinstance(one, Pipeline)], every, names.file)


def _of(pipelines: Sequence[Pipeline], every: Sequence[Declared], file: Path) -> Found:
    listed = tuple(Listed(index, pipeline, str(file)) for index, pipeline in enumerate(pipelines))
    patterns = tuple(one for one in every if isinstance(one, TopicPattern))
    types = tuple(one for one in every if isinstance(one, TypePattern))
    of_file = Found(listed, patterns, str(file), types)
    of_types = [one for one in of_file.examples if one.of == "types"]
    if problems := [*clashes(listed), *type_clashes(of_types), *_schema_problems(of_file.examples)]:
        raise InvalidDeclaration(problems)
    return of_file


def _schema_problems(listed: Iterable[Listed]) -> Iterator[Problem]:
    """Yield what is wrong with the content of declared schema files."""
    for one in listed:
        yield from (problem.moved("", f"{one.path}.") for problem in file_problems(one.pipeline))


def refuse_misfits(pipelines: Iterable[Listed], environment: Environment) -> None:
    """Raise `InvalidDeclaration` with the problems of each pipeline in the environment."""
    problems = [*misfits(pipelines, environment)]
    if problems:
        raise InvalidDeclaration(problems)


def read(file: Path) -> bytes:
    """Return the content of a file of declarations. Raises `InvalidInput` if it does not exist or cannot be read."""
    try:
        if file.is_file():
            return file.read_bytes()
    except OSError as error:
        raise InvalidInput.unreadable(file, error) from None
    raise InvalidInput(
        "the file does not exist",
        where=str(file),
        do=f"Run in the project's folder, or name another file: `pipelines` in {NAME}, or FRAZIL_PIPELINES=FILE",
    )


def chosen(pipelines: Sequence[Pipeline], names: Sequence[str]) -> tuple[Pipeline, ...]:
    """Return the pipelines with these names, in the order of the names, each once."""
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    unknown = [name for name in dict.fromkeys(names) if name not in by_name]
    if unknown:
        raise InvalidInput(
            f"the pipeline {', '.join(unknown)} does not exist",
            do=f"Name one of {', '.join(sorted(by_name))}" if by_name else "No topic has become one yet: `frazil run`",
        )
    return tuple(by_name[name] for name in dict.fromkeys(names))


def _document(file: Path) -> Found:
    try:
        of_file = parse_document(read(file))
    except InvalidDeclaration as invalid:
        placed = [replace(problem, path=f"{file}: {problem.path}") for problem in invalid.problems]
        raise InvalidDeclaration(placed) from None
    return _of(of_file.pipelines, (*of_file.patterns, *of_file.types), file)


def _listed(names: Names) -> tuple[Declared, ...]:
    """Return the file's `pipelines`, or else every pipeline or pattern that the file assigns to a name, alone or in a tuple."""
    if names.values.get("pipelines") is None:
        values = [value if isinstance(value, tuple) else (value,) for value in names.values.values()]
        every = (one for value in values for one in value if isinstance(one, Declared))
        return tuple({id(one): one for one in every}.values())
    return members(names, "pipelines", Pipeline, TopicPattern, TypePattern, do=_EXAMPLE)


def members(names: Names, name: str, *kinds: type[T], do: str) -> tuple[T, ...]:
    """Return the members of a list in the file; of none if it does not exist.

    Raises `InvalidInput` if it is not a list or tuple, or if a member is of another class. A generator is empty for the second
    reader, and what it runs would fail without the line of the file.
    """
    found: Any = names.values.get(name, ())
    if not isinstance(found, list | tuple):
        raise InvalidInput(f"`{name}` is {named(found)}, not a list", where=str(names.file), do=do)
    for index, value in enumerate(found):
        if not isinstance(value, kinds):
            what = f"`{name}[{index}]` is {named(value)}, not a {kinds[0].__name__}"
            raise InvalidInput(what, where=str(names.file), do=do)
    return tuple(found)
