"""Pipelines as a versioned JSON document: what crosses from those who declare to the jobs that run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from frazil.declaration.cross_checks import check
from frazil.declaration.document_schema import document_schema
from frazil.declaration.environment import Environment
from frazil.declaration.from_json import from_json, versioned
from frazil.declaration.pipeline import Pipeline
from frazil.declaration.problems import InvalidDeclaration
from frazil.declaration.to_json import canonical, digest, to_json
from frazil.declaration.upgrade import FIELDS, upgraded
from frazil.declaration.validation import hints, required_fields, validate

__all__ = ["canonical", "digest", "document", "environment_schema", "json_schema", "parse"]

DOCUMENT_VERSION = 2
"""The version of the documents of pipelines that this release writes. Version 1 is read too."""


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
    """Return the pipelines of a document, of version 1 or 2. Nothing is guessed or coerced.

    Raises `InvalidDeclaration` with every problem, each with its path in the document as it is.
    """
    version, members = versioned(source, "document", (1, DOCUMENT_VERSION))
    if version == DOCUMENT_VERSION:
        return from_json(Document, members, "").pipelines
    upgrade = upgraded(members)
    try:
        pipelines = from_json(Document, upgrade.members, "", FIELDS).pipelines
    except InvalidDeclaration as invalid:
        found = [replace(problem, path=upgrade.former(problem.path)) for problem in invalid.problems]
        raise InvalidDeclaration([*upgrade.problems, *found]) from None
    if upgrade.problems:
        raise InvalidDeclaration(upgrade.problems)
    return pipelines


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a document of pipelines, for editors; `docs/document.schema.json` is a copy."""
    title, meaning = "Frazil pipelines", "Kafka topics, and the Iceberg tables that they become."
    return document_schema(title, meaning, hints(Document), required_fields(Document), DOCUMENT_VERSION)


def environment_schema() -> dict[str, Any]:
    """Return the JSON Schema of an environment document, for editors; `docs/environment.schema.json` is a copy."""
    title, meaning = "Frazil environment", "Where pipelines run: endpoints, catalog, names of secrets."
    return document_schema(title, meaning, hints(Environment), required_fields(Environment))
