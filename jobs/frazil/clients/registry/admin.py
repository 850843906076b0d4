"""Writing to a schema registry: what producers, demos and tests do. No job imports this."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from frazil.clients.registry.auth import Login
from frazil.clients.registry.http import Answer, RegistryHttp, RetryPolicy
from frazil.clients.registry.schemas import Reference, SchemaType
from frazil.clients.secrets import Redactor
from frazil.errors import InvalidInput, RegistryUnavailable

_WRONG_SCHEMA = (409, 422)  # incompatible with earlier versions, invalid


class RegistryAdmin:
    """Registers and deletes schemas at `url`. Raises `RegistryUnavailable`, also when the registry refuses a request."""

    def __init__(self, url: str) -> None:
        self._http = RegistryHttp(
            url, Login(), Redactor(), retry=RetryPolicy(), clock=time.monotonic, sleep=time.sleep, random=random.random
        )

    def register(
        self, subject: str, text: str, kind: SchemaType = SchemaType.AVRO, references: Sequence[Reference] = ()
    ) -> int:
        """Register the next version of a subject, or find the schema in it; its id. Doing it twice changes nothing.

        Raises `InvalidInput` if the registry finds the schema invalid, or incompatible with the subject's versions.
        """
        body: dict[str, Any] = {"schema": text}
        if kind is not SchemaType.AVRO:
            body["schemaType"] = kind.value.upper()
        if references:
            body["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in references]
        answer = self._http.request("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        if answer.status in _WRONG_SCHEMA:
            what = f"the registry refuses the schema ({answer.status}): {answer.message[:300]}"
            do = "Correct the schema, or lower the subject's compatibility level"
            raise InvalidInput(what, where=f"subject {subject}", do=do)
        return int(self._answered(answer)["id"])

    def delete_version(self, subject: str, version: int) -> None:
        """Delete one version softly: its id and, for those who ask, its number stay."""
        self._do("DELETE", f"/subjects/{quote(subject, safe='')}/versions/{version}")

    def delete_subject(self, subject: str, *, permanent: bool = False) -> None:
        """Delete a subject softly; with `permanent`, for good, which a registry allows after a soft deletion only."""
        query = "?permanent=true" if permanent else ""
        self._do("DELETE", f"/subjects/{quote(subject, safe='')}{query}")

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Enforce `NONE`, `BACKWARD`, … for a subject, or for all that have no level of their own."""
        place = f"/{quote(subject, safe='')}" if subject else ""
        self._do("PUT", f"/config{place}", {"compatibility": level})

    def _do(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._answered(self._http.request(method, path, body))

    def _answered(self, answer: Answer) -> Any:
        if answer.status >= 300:
            raise RegistryUnavailable(
                f"it refused ({answer.status}): {answer.message[:300]}", where=f"registry {self._http.where}"
            )
        return answer.body
