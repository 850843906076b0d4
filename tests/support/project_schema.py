"""The JSON Schema of a project file, for editors: docs/project.schema.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.declaration.checks.validation import hints
from frazil.declaration.documents.document import document_schema
from frazil.project.project_file import PATHS, Project


def project_schema() -> dict[str, Any]:
    """Return the JSON Schema of a project file, for editors."""
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
    if name not in PATHS:
        return member
    if "anyOf" in member:
        return {**member, "anyOf": [_relative(name, each) for each in member["anyOf"]]}
    return {**member, "pattern": rf"^\.\.?/|{member['pattern']}"} if "pattern" in member else member
