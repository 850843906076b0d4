"""A schema registry inside the test, for stages that need one; it passes the client's own behaviour suite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frazil.clients.registry.schemas import Reference, RegisteredSchema, SchemaType, SubjectVersion, resolved
from frazil.errors import RegistryUnavailable
from tests.support.schema_store import SchemaStore


class FakeRegistry:
    """Reads like `Registry`, is written like `RegistryAdmin`. `down = True` makes it an outage, `fails_at` of one question only.

    `asked` has the name of each question.
    """

    def __init__(self, store: SchemaStore | None = None) -> None:
        self.store = store or SchemaStore()
        self.down, self.fails_at = False, ""
        self.asked: list[str] = []

    def schema(self, schema_id: int) -> RegisteredSchema | None:
        self._answer("schema")
        return self.store.schemas.get(schema_id)

    def prefetch(self, schema_ids: Iterable[int]) -> None:
        for schema_id in schema_ids:
            self.schema(schema_id)

    def subjects(self, *, deleted: bool = False) -> tuple[str, ...]:
        self._answer("subjects")
        return tuple(sorted(name for name in self.store.versions if self.store.listed(name, deleted=deleted)))

    def versions(self, subject: str, *, deleted: bool = False) -> tuple[SubjectVersion, ...]:
        self._answer("versions")
        return tuple(
            SubjectVersion(
                subject=subject, version=version.number, id=version.schema_id, guid=self.store.guid(version.schema_id)
            )
            for version in self.store.listed(subject, deleted=deleted)
        )

    def subjects_of(self, schema_id: int) -> tuple[str, ...]:
        self._answer("subjects_of")
        listed = self.store.versions.items()
        return tuple(sorted(name for name, all_ in listed if any(one.schema_id == schema_id for one in all_)))

    def id_of_guid(self, guid: str) -> int | None:
        self._answer("id_of_guid")
        return next((schema_id for schema_id in self.store.schemas if self.store.guid(schema_id) == guid), None)

    def resolve_references(self, schema: RegisteredSchema) -> dict[str, str]:
        def fetch(reference: Reference) -> RegisteredSchema | None:
            for version in self.versions(reference.subject, deleted=True):
                if version.version == reference.version:
                    return self.store.schemas[version.id]
            return None

        return resolved(schema, fetch)

    def register(
        self, subject: str, text: str, kind: SchemaType = SchemaType.AVRO, references: Sequence[Reference] = ()
    ) -> int:
        self._answer("register")
        return self.store.register(subject, text, kind, references)

    def delete_version(self, subject: str, version: int) -> None:
        self.store.delete_version(subject, version)

    def delete_subject(self, subject: str, *, permanent: bool = False) -> None:
        self.store.delete_subject(subject, permanent=permanent)

    def _answer(self, question: str) -> None:
        self.asked.append(question)
        if self.down or question == self.fails_at:
            raise RegistryUnavailable("it is down", where="fake registry")
