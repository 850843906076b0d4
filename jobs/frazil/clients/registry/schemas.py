"""Schemas of a registry, as values: schemas, their references, versions of subjects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
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
    """Return the schema in a registry's answer, or in a file of the cache.

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
    """Name -> text of every schema that `schema` uses, directly or not; each after what it uses itself.

    `fetch` gives the schema that a reference names, or None. Raises `UnreadableSchema` if one is missing, if they go in
    a circle, if one name has two texts, or if they are too many or too large. It does not recurse: chains may be long.
    """
    texts: dict[str, str] = {}
    characters = 0
    place = f"schema {schema.id}"
    # The path that is being walked: each schema on it, under its reference, with what it still has to visit.
    path: list[tuple[Reference | None, RegisteredSchema, list[Reference]]] = [(None, schema, _waiting(schema))]
    done: set[Reference] = set()
    while path:
        reference, current, waiting = path[-1]
        if waiting:
            following = waiting.pop()
            if following in done:
                continue
            if any(_same(following, above) for above, _, _ in path):
                do = "Register it without the circle"
                raise UnreadableSchema(f"its references go in a circle at {_named(following)}", where=place, do=do)
            if len(done) + len(path) > MOST_REFERENCES:
                raise UnreadableSchema(f"it uses more than {MOST_REFERENCES} other schemas", where=place)
            found = fetch(following)
            if found is None:
                raise UnreadableSchema(
                    f"it uses {_named(following)}, which the registry does not have",
                    where=place,
                    do="Restore or register that version",
                )
            path.append((following, found, _waiting(found)))
            continue
        path.pop()
        if reference is None:
            continue
        done.add(reference)
        characters += len(current.text)
        if characters > MOST_CHARACTERS:
            raise UnreadableSchema(f"the schemas it uses have more than {MOST_CHARACTERS} characters", where=place)
        if texts.setdefault(reference.name, current.text) != current.text:
            what = f"the name {reference.name!r} names two schemas among those it uses"
            raise UnreadableSchema(what, where=place, do="Let all of them use one version")
    return texts


def _waiting(schema: RegisteredSchema) -> list[Reference]:
    """Return its references, the first one last: they are taken from the end."""
    return list(reversed(schema.references))


def _same(reference: Reference, above: Reference | None) -> bool:
    """Return whether both name one version, under whatever name."""
    return above is not None and (reference.subject, reference.version) == (above.subject, above.version)


def _named(reference: Reference) -> str:
    return f"{reference.name!r} (subject {reference.subject!r}, version {reference.version})"
