"""The schema registry, by Confluent's API: what wrote the records. It only reads; `registry_admin` registers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import random as system_random

from frazil.clients.registry.answer import UNKNOWN_SCHEMA
from frazil.clients.registry.auth import login_of
from frazil.clients.registry.cache import SchemaFiles
from frazil.clients.registry.http import RegistryHttp
from frazil.clients.registry.references import resolved
from frazil.clients.registry.retry import Patience
from frazil.clients.registry.schemas import RegisteredSchema, SubjectVersion
from frazil.clients.registry.subjects import Subjects, quoted, schema_of, several
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.declaration.secret import Secret
from frazil.errors import SchemaChanged, UnreadableSchema

LARGEST_ID = 2**31 - 1
"""The largest id that a registry can give: they are Java ints. Frames are unsigned: garbage has larger ones."""


class Registry:
    """One schema registry; safe to share between threads.

    Every method raises `RegistryUnavailable` (`RegistryRefused` of it for a login that is not accepted) when there is
    no answer that can be trusted. That is an outage, never a verdict about a record. What the registry truly does not
    have is None, or nothing in a tuple. `SchemaChanged` is raised when an id has another schema than it had before, in
    memory, on disk or in `known` (id -> fingerprint, from the caller's own books).
    """

    def __init__(
        self, http: RegistryHttp, *, files: SchemaFiles | None = None, known: Mapping[int, str] | None = None
    ) -> None:
        self._http, self._files, self._subjects = http, files, Subjects(http)
        self._known: dict[int, str] = dict(known or {})
        self._schemas: dict[int, RegisteredSchema] = {}
        self._guids: dict[str, int] = {}

    @classmethod
    def of(
        cls,
        settings: environment.Registry,
        secrets: Secrets,
        *,
        token: Secret | None = None,
        cache: Path | None = None,
        known: Mapping[int, str] | None = None,
        patience: Patience | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = system_random,
    ) -> Registry:
        """The registry that an environment names. `cache` is the folder that keeps schemas between runs, if any."""
        bases = [settings.url]
        http = RegistryHttp(
            bases,
            login_of(settings, token, secrets),
            secrets.redactor,
            patience=patience or Patience(),
            clock=clock,
            sleep=sleep,
            random=random,
            ca=settings.ca,
        )
        return cls(http, files=SchemaFiles(cache, bases) if cache else None, known=known)

    def __repr__(self) -> str:
        return f"Registry({self._http.where!r})"

    def schema(self, schema_id: int, *, ask_again: bool = False) -> RegisteredSchema | None:
        """The schema of an id; None if the registry has no such id.

        Schemas never change, so one that is in memory or on disk is not asked for; with `ask_again` it is, and
        compared. That an id is unknown is not remembered. Raises `UnreadableSchema` for a type of schema that we do not
        know.
        """
        kept = self._kept(schema_id)
        if kept is not None and not ask_again:
            return kept
        if not 0 <= schema_id <= LARGEST_ID:
            return None
        answer = self._http.get(f"/schemas/ids/{schema_id}")
        if answer.error_code == UNKNOWN_SCHEMA:
            return kept
        schema = schema_of(answer, schema_id)
        self._check(schema, "the registry")
        self._schemas[schema_id] = schema
        if self._files is not None:
            self._files.write(schema)
        return schema

    def prefetch(self, schema_ids: Iterable[int]) -> None:
        """Ask for several ids, a few requests at a time, so that `schema` has them in memory.

        An unknown id, or a type that we do not know, is left for `schema` to tell.
        """

        def fetch(schema_id: int) -> None:
            with contextlib.suppress(UnreadableSchema):
                self.schema(schema_id)

        several(fetch, dict.fromkeys(schema_ids))

    def subjects(self) -> tuple[str, ...]:
        """All subjects that are not deleted, in order."""
        return self._subjects.names()

    def versions(self, subject: str, *, deleted: bool = False) -> tuple[SubjectVersion, ...]:
        """The versions of a subject, oldest first; nothing if it does not exist (yet).

        With `deleted`, those too that were deleted softly: topics still hold their records. When nothing changed this
        costs two requests: the list, and the newest version that is known, as proof that the subject was not deleted
        for good and made again with the same numbers.
        """
        found = self._subjects.versions(subject, deleted=deleted)
        self._guids.update({version.guid: version.id for version in found if version.guid is not None})
        return found

    def subjects_of(self, schema_id: int) -> tuple[str, ...]:
        """The subjects that have this schema as a version, deleted ones too; nothing if there is no such id."""
        return self._subjects.holding(schema_id) if 0 <= schema_id <= LARGEST_ID else ()

    def id_of_guid(self, guid: str) -> int | None:
        """The id of the schema with that GUID, which headers hold; None if there is none."""
        if guid in self._guids:
            return self._guids[guid]
        answer = self._http.get(f"/schemas/guids/{quoted(guid)}/ids")
        if answer.error_code == UNKNOWN_SCHEMA:
            return None
        if answer.status in (404, 405):
            # A registry without GUIDs says this, and so does a wrong address. What answers this is a registry.
            self.subjects()
            return None
        for entry in answer.list(dict):
            if isinstance(entry.get("id"), int):
                self._guids[guid] = entry["id"]
                return self._guids[guid]
        return None

    def resolve_references(self, schema: RegisteredSchema) -> dict[str, str]:
        """The texts of all schemas that `schema` uses, directly or not, by name; each after what it uses.

        Raises `UnreadableSchema` if one is missing, if they go in a circle, or if they are too many or too large.
        """
        return resolved(schema, self._subjects.referenced)

    def _kept(self, schema_id: int) -> RegisteredSchema | None:
        """The schema from memory or disk."""
        if schema_id not in self._schemas and self._files is not None:
            schema = self._files.read(schema_id)
            if schema is not None:
                self._check(schema, "the cache on disk")
                self._schemas[schema_id] = schema
        return self._schemas.get(schema_id)

    def _check(self, schema: RegisteredSchema, source: str) -> None:
        """Compare with what the id was before; remember it if it is new."""
        before = self._known.setdefault(schema.id, schema.fingerprint)
        if before != schema.fingerprint:
            raise SchemaChanged(
                f"{source} has another schema for it than before ({schema.fingerprint[:12]}, was {before[:12]})",
                where=f"schema {schema.id} of {self._http.where}",
                do="An id never changes in one registry: check that registry.url is still the one of these topics",
            )
