"""The content of a project file, `frazil.toml`: where the declarations are, and the environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from frazil.declaration.constraints import NOT_EMPTY, below, shown
from frazil.declaration.declared import declared
from frazil.declaration.document_schema import document_schema
from frazil.declaration.environment import ENVIRONMENT_NAME, Environment
from frazil.declaration.from_json import from_json
from frazil.declaration.frozen_map import FrozenMap
from frazil.declaration.problems import InvalidDeclaration, Problem
from frazil.declaration.validation import hints

_PATHS = frozenset({"ca", "file", "path", "warehouse"})
"""The members of an environment that hold paths of this machine."""
_RELATIVE = ("./", "../")


@declared
class Project:
    """What commands take from the project file if neither an option nor a variable says it."""

    pipelines: Annotated[str | None, "The file of declarations, relative to this file.", NOT_EMPTY] = None
    environment: Annotated[str | None, "The environment of commands that name none.", ENVIRONMENT_NAME] = None
    environments: Annotated[
        Mapping[str, Environment], "The environments by name. Paths may be relative to this file: ./ or ../."
    ] = FrozenMap()


def parse_project(document: Mapping[str, Any], absolute: Callable[[str], str]) -> Project:
    """Return the project that the parsed TOML describes. `absolute` returns the complete path of a relative one.

    Raises `InvalidDeclaration` with every problem.
    """
    tables = document.get("environments")
    tables = tables if isinstance(tables, Mapping) else {}
    problems = [
        Problem(f"{_place(name)}.name", "the name of the table is the environment's name", "Remove it")
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
        elif name in _PATHS and isinstance(value, str) and value.startswith(_RELATIVE):
            found[name] = absolute(value)
        else:
            found[name] = value
    return found


def _dotted(path: str, tables: Mapping[str, Any]) -> str:
    """Return the path with the names of tables as TOML writes them: `environments.dev`."""
    for name in tables:
        place = f"environments[{shown(name)}]"
        if path.startswith(place):
            return f"{_place(name)}{path.removeprefix(place)}"
    return path


def _place(name: str) -> str:
    return below("environments", name)


def project_schema() -> dict[str, Any]:
    """Return the JSON Schema of a project file, for editors; `docs/project.schema.json` is a copy."""
    meaning = "The project file, frazil.toml: where the declarations are, and the environments."
    schema = document_schema("Frazil project", meaning, hints(Project), ())
    properties, definitions = schema["properties"], schema["$defs"]
    named = definitions["environment"]
    relative = {
        kind: {name: _relative(name, member) for name, member in definition["properties"].items()}
        for kind, definition in definitions.items()
    }
    relative["environment"].pop("name")
    return schema | {
        "properties": {name: member for name, member in properties.items() if name not in {"$schema", "version"}},
        "required": [],
        "$defs": {kind: definition | {"properties": relative[kind]} for kind, definition in definitions.items()}
        | {"environment": named | {"properties": relative["environment"], "required": named["required"][1:]}},
    }


def _relative(name: str, member: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a member that may be a relative path here."""
    if name not in _PATHS:
        return member
    if "anyOf" in member:
        return {**member, "anyOf": [_relative(name, each) for each in member["anyOf"]]}
    return {**member, "pattern": rf"^\.\.?/|{member['pattern']}"} if "pattern" in member else member
