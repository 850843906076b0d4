"""The schema registry, by Confluent's API, to read writer schemas; `admin` registers them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from random import random as system_random
from urllib.parse import quote

from frazil.clients.registry.auth import login_of
from frazil.clients.registry.http import Answer, RegistryHttp, RetryPolicy, several
from frazil.clients.registry.schemas import Reference, RegisteredSchema, SubjectVersion, resolved, schema_from
from frazil.clients.secrets import Secrets
from frazil.declaration import environment
from frazil.errors import UnreadableSchema

UNKNOWN_SUBJECT = 40401
UNKNOWN_VERSION = 40402
UNKNOWN_SCHEMA = 40403
SOFT_DELETED = 40404
"""Codes of https://docs.confluent.io/platform/current/schema-registry/develop/api.html#errors. Only they are a verdict:
a 404 without one may come from a proxy or a wrong path.
"""
_NO_VERSION = (UNKNOWN_SUBJECT, UNKNOWN_VERSION, SOFT_DELETED)

LARGEST_ID = 2**31 - 1
"""The largest id that a registry can give: they are Java ints. Frames are unsigned: garbage has larger ones."""


class Registry:
    """One schema registry; safe to share between threads.

    Every method raises `RegistryUnavailable`, or `RegistryRefused`, if there is no answer that can be trusted. That is an
    outage, never a verdict about a record. What the registry does not have is None, or nothing in a tuple.
    """

    def __init__(self, http: RegistryHttp) -> None:
        self._http = http
        self._schemas: dict[int, RegisteredSchema] = {}
        self._guids: dict[str, int] = {}
        self._versions: dict[tuple[str, int], SubjectVersion] = {}  # by subject and number
        self._by_version: dict[tuple[str, int], RegisteredSchema] = {}

    @classmethod
    def of(
        cls,
        settings: environment.Registry,
        secrets: Secrets,
        *,
        retry: RetryPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = system_random,
    ) -> Registry:
        """Return the registry that an environment names."""
        http = RegistryHttp(
            settings.url,
            login_of(settings, secrets, now=now, sleep=sleep),
            secrets.redactor,
            retry=retry or RetryPolicy(),
            clock=clock,
            sleep=sleep,
            random=random,
            ca=settings.ca,
        )
        return cls(http)

    def __repr__(self) -> str:
        return f"Registry({self._http.where!r})"

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        """Return the schema of an id; None if the registry has no such id.

        Schemas never change, so the registry is not asked for one in memory. An unknown id is not remembered.
        Raises `UnreadableSchema` for an unknown type of schema.
        """
        if schema_id in self._schemas or not 0 <= schema_id <= LARGEST_ID:
            return self._schemas.get(schema_id)
        answer = self._http.get(f"/schemas/ids/{schema_id}")
        if answer.error_code == UNKNOWN_SCHEMA:
            return None
        self._schemas[schema_id] = schema_of(answer, schema_id)
        return self._schemas[schema_id]

    def prefetch(self, schema_ids: Iterable[int]) -> None:
        """Ask for several ids, a few requests at a time, so that `schema` has them in memory.

        Unknown ids and types raise nothing here; `schema` reports them.
        """

        def fetch(schema_id: int) -> None:
            with contextlib.suppress(UnreadableSchema):
                self.schema(schema_id)

        several(fetch, dict.fromkeys(schema_ids))

    def subjects(self, *, deleted: bool = False) -> tuple[str, ...]:
        """Return all subjects in order; with `deleted`, softly deleted ones too."""
        return tuple(sorted(self._ask("/subjects", deleted=deleted).list(str)))

    def versions(self, subject: str, *, deleted: bool = False) -> tuple[SubjectVersion, ...]:
        """Return the versions of a subject, oldest first; nothing if the subject does not exist (yet).

        With `deleted`, softly deleted ones too: topics still hold their records. If nothing changed, this costs two requests:
        the list, and the newest known version, which shows that the subject was not deleted and created again.
        """
        listed = self._ask(f"/subjects/{quoted(subject)}/versions", deleted=deleted)
        if listed.error_code in (UNKNOWN_SUBJECT, SOFT_DELETED):
            return ()
        numbers = sorted(listed.list(int))
        found = {number: self._versions[subject, number] for number in numbers if (subject, number) in self._versions}
        # The numbers of a subject that was deleted permanently begin at 1 again: the newest known one shows it.
        if found and self._version(subject, max(found), deleted=deleted) != found[max(found)]:
            found = {}
        missing = [number for number in numbers if number not in found]
        for version in several(lambda number: self._version(subject, number, deleted=deleted), missing):
            if version is not None:
                found[version.version] = self._versions[subject, version.version] = version
        known = tuple(found[number] for number in sorted(found))
        self._guids.update({version.guid: version.id for version in known if version.guid is not None})
        return known

    def subjects_of(self, schema_id: int) -> tuple[str, ...]:
        """Return the subjects that have this schema as a version, deleted ones too; nothing if there is no such id."""
        if not 0 <= schema_id <= LARGEST_ID:
            return ()
        answer = self._ask(f"/schemas/ids/{schema_id}/versions", deleted=True)
        if answer.error_code == UNKNOWN_SCHEMA:
            return ()
        names = [entry.get("subject") for entry in answer.list(dict)]
        if not all(isinstance(name, str) for name in names):
            raise answer.strange("a version without a subject")
        return tuple(sorted(set(names)))

    def id_of_guid(self, guid: str) -> int | None:
        """Return the id of the schema with that GUID, which headers hold; None if it does not exist."""
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
        """Return the texts of all schemas that `schema` uses, directly or not, by name; each after what it uses.

        Raises `UnreadableSchema` if one is missing, if they go in a circle, or if they are too many or too large.
        """
        return resolved(schema, self._referenced)

    def _referenced(self, reference: Reference) -> RegisteredSchema | None:
        """Return the schema that a reference names, deleted or not; None if it does not exist."""
        place = (reference.subject, reference.version)
        if place not in self._by_version:
            answer = self._ask(f"/subjects/{quoted(reference.subject)}/versions/{reference.version}", deleted=True)
            if answer.error_code in _NO_VERSION:
                return None
            schema_id = answer.object().get("id")
            if not isinstance(schema_id, int):
                raise answer.strange("a version without an id")
            self._by_version[place] = schema_of(answer, schema_id)
        return self._by_version[place]

    def _version(self, subject: str, number: int, *, deleted: bool) -> SubjectVersion | None:
        """Return one version; None if it was deleted since it was listed."""
        answer = self._ask(f"/subjects/{quoted(subject)}/versions/{number}", deleted=deleted)
        if answer.error_code in _NO_VERSION:
            return None
        match answer.object():
            case {"id": int(schema_id), "guid": str(guid)}:
                return SubjectVersion(subject=subject, version=number, id=schema_id, guid=guid)
            case {"id": int(schema_id)}:
                return SubjectVersion(subject=subject, version=number, id=schema_id)
            case _:
                raise answer.strange("a version without an id")

    def _ask(self, path: str, *, deleted: bool) -> Answer:
        """Send GET, with versions if asked; without them from a registry that refuses the parameter."""
        if not deleted:
            return self._http.get(path)
        answer = self._http.get(f"{path}?deleted=true")
        return self._http.get(path) if answer.status in (400, 405, 422) else answer


def schema_of(answer: Answer, schema_id: int) -> RegisteredSchema:
    """Return the schema in an answer. Raises `RegistryUnavailable` if it has none, `UnreadableSchema` for an unknown type."""
    try:
        return schema_from(answer.object(), schema_id)
    except ValueError as error:
        raise answer.strange(str(error)) from None


def quoted(name: str) -> str:
    """Return a name as one part of a path."""
    return quote(name, safe="")
