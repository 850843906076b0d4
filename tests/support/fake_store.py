"""The artifact bucket in memory. It passes the object store's own tests, `tests/clients/test_object_store.py`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from frazil.clients.object_store import Stored
from frazil.errors import ObjectDiffers


@dataclass
class FakeStore:
    objects: dict[str, Stored] = field(default_factory=dict)
    writes: int = 0

    def read(self, key: str) -> Stored | None:
        return self.objects.get(key)

    def keys(self, prefix: str) -> tuple[str, ...]:
        return tuple(sorted(key for key in self.objects if key.startswith(prefix)))

    def folders(self, prefix: str) -> tuple[str, ...]:
        below = (key.removeprefix(prefix) for key in self.keys(prefix))
        return tuple(sorted({key.partition("/")[0] for key in below if "/" in key}))

    def put_once(self, key: str, source: Path | bytes) -> bool:
        data = source if isinstance(source, bytes) else source.read_bytes()
        held = self.objects.get(key)
        if held is not None and held.data != data:
            raise ObjectDiffers("the key is there with other content", where=key)
        if held is None:
            self.put(key, data)
        return held is None

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)

    def swap(self, key: str, data: bytes, *, version: str | None) -> str | None:
        held = self.objects.get(key)
        if (held.version if held else None) == version:
            return self.put(key, data)
        return held.version if held is not None and held.data == data else None

    def put(self, key: str, data: bytes) -> str:
        """Write without a condition, as Terraform does."""
        self.writes += 1
        self.objects[key] = Stored(data, f'"{self.writes}"')
        return self.objects[key].version
