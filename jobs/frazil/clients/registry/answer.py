"""What a schema registry answered, and what its own codes mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from frazil.errors import RegistryUnavailable

UNKNOWN_SUBJECT = 40401
UNKNOWN_VERSION = 40402
UNKNOWN_SCHEMA = 40403
SOFT_DELETED = 40404
"""Codes of https://docs.confluent.io/platform/current/schema-registry/develop/api.html#errors. Only they are a verdict:
a 404 without one may come from a proxy or a wrong path.
"""


class Answer(NamedTuple):
    """What the registry at `where` answered: the status, and the JSON; None if a refusal had none."""

    where: str
    status: int
    body: Any

    @property
    def error_code(self) -> int | None:
        """The registry's own code of a refusal."""
        code = self.body.get("error_code") if isinstance(self.body, dict) else None
        return code if isinstance(code, int) and self.status >= 400 else None

    @property
    def message(self) -> str:
        """The registry's own sentence of a refusal: of any length, and not redacted."""
        text = self.body.get("message") if isinstance(self.body, dict) else None
        return text if isinstance(text, str) else ""

    def object(self) -> Mapping[str, Any]:
        """The JSON object of a success. Raises `RegistryUnavailable` if it is anything else."""
        if self.status >= 300 or not isinstance(self.body, dict):
            raise self.strange("not the object that was asked for")
        return self.body

    def list(self, kind: type) -> list[Any]:
        """The JSON list of a success, its entries of one type. Raises `RegistryUnavailable` if it is anything else."""
        body = self.body
        if self.status >= 300 or not isinstance(body, list) or not all(isinstance(entry, kind) for entry in body):
            raise self.strange("not the list that was asked for")
        return body

    def strange(self, what: str) -> RegistryUnavailable:
        """The error of an answer that is no registry's."""
        code = f", code {self.error_code}" if self.error_code is not None else ""
        return RegistryUnavailable(
            f"it answered {self.status}{code}: {what}",
            where=f"registry {self.where}",
            do="Check that registry.url is the base of a Confluent-compatible API",
        )
