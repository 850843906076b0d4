"""A cache of a registry's schemas, as files on disk."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path

from frazil.clients.registry.schemas import RegisteredSchema, schema_from, to_answer
from frazil.errors import UnreadableSchema


class SchemaCache:
    """One file an id, in a folder for each registry (ids mean nothing without theirs), below `folder`.

    A file is written next to its place and moved there, so that readers in other processes see all of it or nothing. A
    file that is damaged counts as none. A disk that is full or read-only costs speed only: it raises nothing.
    """

    def __init__(self, folder: Path, base: str) -> None:
        name = hashlib.sha256(base.encode()).hexdigest()[:16]
        self._folder = folder / f"registry-{name}"

    def read(self, schema_id: int) -> RegisteredSchema | None:
        """Return the schema of that id, if it was kept and its fingerprint is the one that was kept with it."""
        try:
            kept = json.loads(self._path(schema_id).read_bytes())
            schema = schema_from(kept, schema_id)
            return schema if kept.get("fingerprint") == schema.fingerprint else None
        except (OSError, ValueError, RecursionError, AttributeError, UnreadableSchema):
            return None

    def write(self, schema: RegisteredSchema) -> None:
        """Keep the schema."""
        text = json.dumps({"id": schema.id, **to_answer(schema), "fingerprint": schema.fingerprint})
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=f".{schema.id}-")
            try:
                with os.fdopen(handle, "w") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).replace(self._path(schema.id))
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise

    def _path(self, schema_id: int) -> Path:
        return self._folder / f"{schema_id}.json"
