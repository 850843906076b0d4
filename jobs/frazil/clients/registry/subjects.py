"""The subjects of a registry: their versions, and which of them have a schema. Kept in memory only, for they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from threading import Event
from typing import TypeVar
from urllib.parse import quote

from frazil.clients.registry.answer import SOFT_DELETED, UNKNOWN_SCHEMA, UNKNOWN_SUBJECT, UNKNOWN_VERSION, Answer
from frazil.clients.registry.http import RegistryHttp
from frazil.clients.registry.schemas import Reference, RegisteredSchema, SubjectVersion, schema_from

_NO_VERSION = (UNKNOWN_SUBJECT, UNKNOWN_VERSION, SOFT_DELETED)

_PARALLEL = 8
"""How many requests a method makes at a time."""

_K = TypeVar("_K")
_T = TypeVar("_T")


class Subjects:
    """Asks for subjects and their versions; remembers the versions it saw. Safe to share between threads."""

    def __init__(self, http: RegistryHttp) -> None:
        self._http = http
        self._versions: dict[tuple[str, int], SubjectVersion] = {}
        self._referenced: dict[tuple[str, int], RegisteredSchema] = {}

    def names(self) -> tuple[str, ...]:
        """All subjects that are not deleted, in order."""
        return tuple(sorted(self._http.get("/subjects").list(str)))

    def versions(self, subject: str, *, deleted: bool) -> tuple[SubjectVersion, ...]:
        """See `Registry.versions`."""
        listed = self._ask(f"/subjects/{quoted(subject)}/versions", deleted=deleted)
        if listed.error_code in (UNKNOWN_SUBJECT, SOFT_DELETED):
            return ()
        numbers = sorted(listed.list(int))
        found = {number: self._versions[subject, number] for number in numbers if (subject, number) in self._versions}
        # The numbers of a subject that was deleted for good begin at 1 again: the newest known one tells.
        if found and self._version(subject, max(found), deleted=deleted) != found[max(found)]:
            found = {}
        missing = [number for number in numbers if number not in found]
        for version in several(lambda number: self._version(subject, number, deleted=deleted), missing):
            if version is not None:
                found[version.version] = self._versions[subject, version.version] = version
        return tuple(found[number] for number in sorted(found))

    def holding(self, schema_id: int) -> tuple[str, ...]:
        """The subjects that have this schema as a version, deleted or not; nothing if there is no such id."""
        answer = self._ask(f"/schemas/ids/{schema_id}/versions", deleted=True)
        if answer.error_code == UNKNOWN_SCHEMA:
            return ()
        names = [entry.get("subject") for entry in answer.list(dict)]
        if not all(isinstance(name, str) for name in names):
            raise answer.strange("a version without a subject")
        return tuple(sorted(set(names)))

    def referenced(self, reference: Reference) -> RegisteredSchema | None:
        """The schema that a reference names, deleted or not; None if there is none."""
        place = (reference.subject, reference.version)
        if place not in self._referenced:
            answer = self._ask(f"/subjects/{quoted(reference.subject)}/versions/{reference.version}", deleted=True)
            if answer.error_code in _NO_VERSION:
                return None
            schema_id = answer.object().get("id")
            if not isinstance(schema_id, int):
                raise answer.strange("a version without an id")
            self._referenced[place] = schema_of(answer, schema_id)
        return self._referenced[place]

    def _version(self, subject: str, number: int, *, deleted: bool) -> SubjectVersion | None:
        """One version; None if it was deleted since it was listed."""
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
        """GET, deleted versions included if asked; without them from a registry that refuses the parameter."""
        if not deleted:
            return self._http.get(path)
        answer = self._http.get(f"{path}?deleted=true")
        return self._http.get(path) if answer.status in (400, 405, 422) else answer


def schema_of(answer: Answer, schema_id: int) -> RegisteredSchema:
    """The schema in an answer. Raises `RegistryUnavailable` if it has none, `UnreadableSchema` for an unknown type."""
    try:
        return schema_from(answer.object(), schema_id)
    except ValueError as error:
        raise answer.strange(str(error)) from None


def several(ask: Callable[[_K], _T], keys: Iterable[_K]) -> list[_T]:
    """Return the answers for all keys, in their order; a few are asked for at a time. The first error ends the asking."""
    asked = list(keys)
    if len(asked) <= 1:
        return [ask(key) for key in asked]
    failed = Event()  # each of the others would be as patient as the one that failed

    def unless_failed(key: _K) -> _T:
        if failed.is_set():
            raise CancelledError
        try:
            return ask(key)
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="registry") as pool:
        answers = [pool.submit(unless_failed, key) for key in asked]
    errors = [error for error in (answer.exception() for answer in answers) if error is not None]
    if errors:
        raise next((error for error in errors if not isinstance(error, CancelledError)), errors[0])
    return [answer.result() for answer in answers]


def quoted(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")
