"""Pipelines as a versioned JSON document: what crosses from those who declare to the jobs that run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from frazil.declaration.cross_checks import check
from frazil.declaration.document_schema import document_schema
from frazil.declaration.environment import Environment
from frazil.declaration.from_json import from_json, members
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.problems import InvalidDeclaration
from frazil.declaration.to_json import canonical, digest, to_json
from frazil.declaration.validation import hints, required_fields, validate

__all__ = ["canonical", "digest", "document", "environment_schema", "json_schema", "parse"]

DOCUMENT_VERSION = 2
"""The version of the documents of pipelines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Pipelines that are deployed together."""

    pipelines: Annotated[tuple[Pipeline, ...], "The pipelines, in the order of their declaration."]

    def __post_init__(self) -> None:
        validate(self, lambda: check(self.pipelines))


def document(pipelines: Sequence[Pipeline]) -> dict[str, Any]:
    """Return the pipelines as a versioned JSON object; `canonical` makes its bytes, `digest` their name.

    Raises `InvalidDeclaration` if pipelines conflict with each other.
    """
    problems = check(pipelines)
    if problems:
        raise InvalidDeclaration(problems)
    return {"version": DOCUMENT_VERSION, "pipelines": [to_json(pipeline) for pipeline in pipelines]}


def parse(source: bytes | Mapping[str, Any]) -> tuple[Pipeline, ...]:
    """Return the pipelines of a document. Nothing is guessed or coerced.

    Raises `InvalidDeclaration` with every problem, each with its path in the document.
    """
    return from_json(Document, members(source, "document", DOCUMENT_VERSION), "").pipelines


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a document of pipelines, for editors; `docs/document.schema.json` is a copy."""
    title, meaning = "Frazil pipelines", "Kafka topics, and the Iceberg tables that they become."
    return document_schema(title, meaning, hints(Document), required_fields(Document), DOCUMENT_VERSION)


def environment_schema() -> dict[str, Any]:
    """Return the JSON Schema of an environment document, for editors; `docs/environment.schema.json` is a copy."""
    title, meaning = "Frazil environment", "Where pipelines run: endpoints, catalog, names of secrets."
    return document_schema(title, meaning, hints(Environment), required_fields(Environment))
