"""Pipelines as a versioned JSON document: what crosses from those who declare to the jobs that run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import datetime
from typing import Annotated, Any, get_args

from frazil.declaration.checks.cross_checks import check
from frazil.declaration.checks.problems import InvalidDeclaration
from frazil.declaration.checks.validation import Hint, hints, required_fields, root_of, taken_apart, validate
from frazil.declaration.documents.from_json import VERSION, from_json, members
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.environment import Environment
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.several.topic_pattern import TopicPattern
from frazil.declaration.several.type_pattern import TypePattern

DOCUMENT_VERSION = 2
"""The version of the documents of pipelines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Pipelines that are deployed together."""

    pipelines: Annotated[tuple[Pipeline, ...], "The pipelines, in the order of their declaration."]
    patterns: Annotated[tuple[TopicPattern, ...], "Patterns of topics, each of which becomes a pipeline."] = ()
    types: Annotated[
        tuple[TypePattern, ...], "Patterns of types of routed topics, each of which becomes a pipeline."
    ] = ()

    def __post_init__(self) -> None:
        validate(self, lambda: check(self.pipelines))


def document(
    pipelines: Sequence[Pipeline], patterns: Sequence[TopicPattern] = (), types: Sequence[TypePattern] = ()
) -> dict[str, Any]:
    """Return pipelines and patterns as a versioned JSON object; `canonical` makes its bytes, `digest` their name.

    Raises `InvalidDeclaration` if pipelines conflict with each other.
    """
    problems = check(pipelines)
    if problems:
        raise InvalidDeclaration(problems)
    others = {"patterns": patterns, "types": types}
    of_patterns = {name: [to_json(pattern) for pattern in some] for name, some in others.items() if some}
    return {"version": DOCUMENT_VERSION, "pipelines": [to_json(pipeline) for pipeline in pipelines], **of_patterns}


def parse(source: bytes | Mapping[str, Any]) -> tuple[Pipeline, ...]:
    """Return the pipelines of a document, see `parse_document`."""
    return parse_document(source).pipelines


def parse_document(source: bytes | Mapping[str, Any]) -> Document:
    """Return the pipelines and patterns of a document. Nothing is guessed or coerced.

    Raises `InvalidDeclaration` with every problem, each with its path in the document.
    """
    return from_json(Document, members(source, "document", DOCUMENT_VERSION), "")


def environment_document(environment: Environment) -> dict[str, Any]:
    """Return the environment as a versioned JSON object; `canonical` makes its bytes."""
    return {"version": VERSION, **to_json(environment)}


def parse_environment(source: bytes | Mapping[str, Any]) -> Environment:
    """Return the environment that a document describes. Raises `InvalidDeclaration` with every problem."""
    return from_json(Environment, members(source, "environment"), "")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a document of pipelines, for editors; `docs/document.schema.json` is a copy."""
    title, meaning = "Frazil pipelines", "Kafka topics, and the Iceberg tables that they become."
    return document_schema(title, meaning, hints(Document), required_fields(Document), DOCUMENT_VERSION)


def environment_schema() -> dict[str, Any]:
    """Return the JSON Schema of an environment document, for editors; `docs/environment.schema.json` is a copy."""
    title, meaning = "Frazil environment", "Where pipelines run: endpoints, catalog, names of secrets."
    return document_schema(title, meaning, hints(Environment), required_fields(Environment))


_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
}


def document_schema(
    title: str, meaning: str, members: Mapping[str, Any], required: tuple[str, ...], version: int = VERSION
) -> dict[str, Any]:
    """Return the schema of a document: its version, and members given by their type hints."""
    definitions: dict[str, Any] = {}
    properties = {name: _schema(hint, definitions) for name, hint in members.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": meaning,
        "type": "object",
        "properties": {"$schema": {"type": "string"}, "version": {"const": version}, **properties},
        "required": ["version", *required],
        "additionalProperties": False,
        "$defs": dict(sorted(definitions.items())),
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    apart = taken_apart(hint)
    schema = _of_types(apart, definitions)
    for rule in apart.rules:
        schema |= dict(rule.keywords)
    if apart.is_optional and apart.types:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return schema | ({"description": apart.meaning} if apart.meaning else {})


def _of_types(apart: Hint, definitions: dict[str, Any]) -> dict[str, Any]:
    inner = get_args(apart.type)
    if not apart.types:
        return {"type": "null"}
    if is_dataclass(apart.type):
        references = [_reference(kind, definitions, tagged=apart.is_choice) for kind in apart.types]
        return {"oneOf": references} if apart.is_choice else references[0]
    if apart.origin is tuple:
        return {"type": "array", "items": _schema(inner[0], definitions)}
    if apart.origin is Mapping:
        names = {"propertyNames": {"pattern": "^(0|[1-9][0-9]*)$"}} if taken_apart(inner[0]).type is int else {}
        return {"type": "object", **names, "additionalProperties": _schema(inner[1], definitions)}
    if apart.is_enum:
        return {"enum": [member.value for member in apart.type]}
    return dict(_PLAIN[apart.type])


def _reference(cls: Any, definitions: dict[str, Any], *, tagged: bool) -> dict[str, Any]:
    name = root_of(cls)
    if name not in definitions:
        definitions[name] = {}  # holds the place while the fields are looked at
        tag = {"type": {"const": cls.kind}} if tagged else {}
        definitions[name] = {
            "description": " ".join((inspect.getdoc(cls) or "").split()),
            "type": "object",
            "properties": tag
            | {field.name: _field(field, hints(cls)[field.name], definitions) for field in fields(cls)},
            "required": [*tag, *required_fields(cls)],
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}


def _field(field: Field[Any], hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    schema = _schema(hint, definitions)
    # An empty text as a default means "derived": it is no value that may be written.
    if field.default in (MISSING, None, ""):
        return schema
    return schema | {"default": to_json(field.default)}
