"""Schemas of a registry, as values: schemas, their references, versions of subjects."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from frazil.errors import UnreadableSchema

MOST_REFERENCES = 1_000
"""The most schemas that one schema may use, directly or not."""

MOST_CHARACTERS = 32_000_000
"""The most text that these may have together."""


class SchemaType(StrEnum):
    """The languages of schemas. A registry that names none means Avro."""

    AVRO = "avro"
    JSON = "json"
    PROTOBUF = "protobuf"


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one uses. `name` is the text's word for it: an Avro name, a `$ref`, an import's path."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema as it was registered: immutable under its id.

    `text` is what the registry answers, byte for byte. `fingerprint` is the SHA-256, in hex, of type, text and
    references.
    """

    id: int
    type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", _fingerprint(self.type, self.text, self.references))


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectVersion:
    """One version of a subject and the id of its schema. `guid` is the schema's GUID, if the registry has GUIDs."""

    subject: str
    version: int
    id: int
    guid: str | None = None


def schema_from(answer: Mapping[str, Any], schema_id: int) -> RegisteredSchema:
    """Return the schema in a registry's answer.

    Raises `ValueError` if that is no answer of a registry, `UnreadableSchema` if it is, with a type that we do not
    know.
    """
    text, kind = answer.get("schema"), answer.get("schemaType") or "AVRO"
    if not isinstance(text, str) or not isinstance(kind, str):
        raise ValueError("there is no schema in it")
    if kind.lower() not in {known.value for known in SchemaType}:
        raise UnreadableSchema(
            f"its type is {kind[:40]!r}", where=f"schema {schema_id}", do="Known types are AVRO, JSON and PROTOBUF"
        )
    references = answer.get("references") or []
    if not isinstance(references, list):
        raise ValueError("its references are no list")
    return RegisteredSchema(
        id=schema_id, type=SchemaType(kind.lower()), text=text, references=tuple(map(_reference, references))
    )


def to_answer(schema: RegisteredSchema) -> dict[str, Any]:
    """Return the schema in a registry's words, which `schema_from` reads."""
    return {
        "schema": schema.text,
        "schemaType": schema.type.value.upper(),
        "references": [{"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references],
    }


def _reference(member: Any) -> Reference:
    match member:
        case {"name": str(name), "subject": str(subject), "version": int(version)}:
            return Reference(name, subject, version)
        case _:
            raise ValueError("a reference lacks name, subject or version")


def _fingerprint(kind: SchemaType, text: str, references: tuple[Reference, ...]) -> str:
    members = [kind.value, text, [[r.name, r.subject, r.version] for r in references]]
    # Escaped, so that texts with lone surrogates have bytes too.
    return hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).hexdigest()


def resolved(schema: RegisteredSchema, fetch: Callable[[Reference], RegisteredSchema | None]) -> dict[str, str]:
    """Return name -> text of every schema that `schema` uses, directly or not; each after what it uses itself.

    `fetch` gives the schema that a reference names, or None. Raises `UnreadableSchema` if one is missing, if they go in
    a circle, if one name has two texts, or if they are too many or too large.
    """
    place = f"schema {schema.id}"
    used: dict[Reference, RegisteredSchema] = {}
    waiting, characters = deque(schema.references), 0
    while waiting:
        reference = waiting.popleft()
        if reference in used:
            continue
        if len(used) == MOST_REFERENCES:
            raise UnreadableSchema(f"it uses more than {MOST_REFERENCES} other schemas", where=place)
        found = fetch(reference)
        if found is None:
            what = f"it uses {_named(reference)}, which the registry does not have"
            raise UnreadableSchema(what, where=place, do="Restore or register that version")
        used[reference] = found
        waiting += found.references
        characters += len(found.text)
        if characters > MOST_CHARACTERS:
            raise UnreadableSchema(f"the schemas it uses have more than {MOST_CHARACTERS} characters", where=place)
    try:
        in_order = [*TopologicalSorter({one: found.references for one, found in used.items()}).static_order()]
    except CycleError as error:
        what = f"its references go in a circle at {_named(error.args[1][0])}"
        raise UnreadableSchema(what, where=place, do="Register it without the circle") from None
    texts: dict[str, str] = {}
    for one in in_order:
        if texts.setdefault(one.name, used[one].text) != used[one].text:
            what = f"the name {one.name!r} names two schemas among those it uses"
            raise UnreadableSchema(what, where=place, do="Let all of them use one version")
    return texts


def _named(reference: Reference) -> str:
    return f"{reference.name!r} (subject {reference.subject!r}, version {reference.version})"
