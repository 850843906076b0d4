"""What tests do to a registry beyond what producers do: deletions, and the compatibility of one subject."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from frazil.clients.registry import admin


class RegistryAdmin(admin.RegistryAdmin):
    """Registers and deletes schemas."""

    def delete_version(self, subject: str, version: int) -> None:
        """Delete one version softly: its id and, for those who ask, its number stay."""
        self._do("DELETE", f"/subjects/{quote(subject, safe='')}/versions/{version}")

    def delete_subject(self, subject: str, *, permanent: bool = False) -> None:
        """Delete a subject softly; with `permanent`, for good, which a registry allows after a soft deletion only."""
        query = "?permanent=true" if permanent else ""
        self._do("DELETE", f"/subjects/{quote(subject, safe='')}{query}")

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Enforce a level for a subject, or for all."""
        self._do("PUT", f"/config/{quote(subject, safe='')}" if subject else "/config", {"compatibility": level})

    def _do(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        self._answered(self._http.request(method, path, body))
