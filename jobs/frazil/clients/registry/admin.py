"""Writing to a schema registry, as producers, the demo and tests do. No job imports this."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from frazil.clients.registry.auth import Login
from frazil.clients.registry.http import Answer, RegistryHttp, RetryPolicy
from frazil.clients.registry.schemas import Reference, RegisteredSchema, SchemaType, to_answer
from frazil.clients.secrets import Redactor
from frazil.errors import InvalidInput, RegistryUnavailable

_WRONG_SCHEMA = (409, 422)  # incompatible with earlier versions, invalid


class RegistryAdmin:
    """Registers schemas at `url`. Raises `RegistryUnavailable`, also when the registry refuses a request."""

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
        body = to_answer(RegisteredSchema(id=0, type=kind, text=text, references=tuple(references)))
        answer = self._http.request("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        if answer.status in _WRONG_SCHEMA:
            what = f"the registry refuses the schema ({answer.status}): {answer.message[:300]}"
            do = "Correct the schema, or lower the subject's compatibility level"
            raise InvalidInput(what, where=f"subject {subject}", do=do)
        return int(self._answered(answer)["id"])

    def set_compatibility(self, level: str) -> None:
        """Enforce `NONE`, `BACKWARD`, … for all subjects that have no level of their own."""
        self._answered(self._http.request("PUT", "/config", {"compatibility": level}))

    def _answered(self, answer: Answer) -> Any:
        if answer.status >= 300:
            raise RegistryUnavailable(
                f"it refused ({answer.status}): {answer.message[:300]}", where=f"registry {self._http.where}"
            )
        return answer.body
