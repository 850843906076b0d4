"""Schemas that use other schemas: all of them, each after what it uses itself."""

from __future__ import annotations

from collections.abc import Callable

from frazil.clients.registry.schemas import Reference, RegisteredSchema
from frazil.errors import UnreadableSchema

MOST_REFERENCES = 1_000
"""The most schemas that one schema may use, directly or not."""

MOST_CHARACTERS = 32_000_000
"""The most text that these may have together."""


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
                raise UnreadableSchema(
                    f"its references go in a circle at {_named(following)}",
                    where=place,
                    do="Register it without the circle",
                )
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
            raise UnreadableSchema(
                f"the name {reference.name!r} stands for two schemas among those it uses",
                where=place,
                do="Let all of them use one version",
            )
    return texts


def _waiting(schema: RegisteredSchema) -> list[Reference]:
    """Its references, the first one last: they are taken from the end."""
    return list(reversed(schema.references))


def _same(reference: Reference, above: Reference | None) -> bool:
    """Whether both name one version, under whatever name."""
    return above is not None and (reference.subject, reference.version) == (above.subject, above.version)


def _named(reference: Reference) -> str:
    return f"{reference.name!r} (subject {reference.subject!r}, version {reference.version})"
