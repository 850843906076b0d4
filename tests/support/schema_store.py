"""The content of a schema registry in memory, used by `FakeRegistry` and `RegistryServer`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from frazil.clients.registry.schemas import Reference, RegisteredSchema, SchemaType


@dataclass(frozen=True, slots=True)
class Version:
    number: int
    schema_id: int
    is_deleted: bool = False


@dataclass(slots=True)
class SchemaStore:
    """A store with an id per content and versions per subject. A soft deletion hides a version, a permanent one removes it."""

    schemas: dict[int, RegisteredSchema] = field(default_factory=dict)
    versions: dict[str, list[Version]] = field(default_factory=dict)

    def register(
        self, subject: str, text: str, kind: SchemaType = SchemaType.AVRO, references: Sequence[Reference] = ()
    ) -> int:
        fresh = RegisteredSchema(id=len(self.schemas) + 1, type=kind, text=text, references=tuple(references))
        same = (known.id for known in self.schemas.values() if known.fingerprint == fresh.fingerprint)
        schema_id = next(same, fresh.id)
        self.schemas.setdefault(schema_id, fresh)
        listed = self.versions.setdefault(subject, [])
        if not any(version.schema_id == schema_id and not version.is_deleted for version in listed):
            listed.append(Version(max((version.number for version in listed), default=0) + 1, schema_id))
        return schema_id

    def delete_version(self, subject: str, version: int) -> None:
        self.versions[subject] = [
            replace(known, is_deleted=True) if known.number == version else known for known in self.versions[subject]
        ]

    def delete_subject(self, subject: str, *, permanent: bool = False) -> None:
        if permanent:
            del self.versions[subject]
        else:
            self.versions[subject] = [replace(known, is_deleted=True) for known in self.versions[subject]]

    def listed(self, subject: str, *, deleted: bool) -> list[Version]:
        return [version for version in self.versions.get(subject, ()) if deleted or not version.is_deleted]

    def guid(self, schema_id: int) -> str:
        return str(uuid.UUID(self.schemas[schema_id].fingerprint[:32]))
