"""A secret's name. No declaration and no document ever holds a secret's value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Annotated

from frazil.declaration.constraints import PRIVATE, matching
from frazil.declaration.declared import declared
from frazil.declaration.problems import Problem

_ENV = matching(
    "[A-Za-z_][A-Za-z0-9_]*", "a variable's name", "Write the name of the variable, not its value", is_shown=False
)
_FILE = matching("/.*", "an absolute path", "Write the complete path of the file, from /", is_shown=False)
_STORED = matching(
    "[A-Za-z0-9/_+=.@:-]{1,2048}", "a secret's name or ARN", "Write its name in AWS Secrets Manager", is_shown=False
)
_FIELD = matching(r"\S(?:.*\S)?", "a field's name", "Write the name of the field in the secret's JSON", is_shown=False)


@declared
class Secret:
    """Where a secret is kept: exactly one of `env`, `file` and `secretsmanager`. It is read only when it is needed."""

    env: Annotated[str | None, "The environment variable with the secret.", _ENV, PRIVATE] = None
    file: Annotated[str | None, "The file with the secret. A final newline is removed.", _FILE, PRIVATE] = None
    secretsmanager: Annotated[str | None, "The secret's name or ARN in AWS Secrets Manager.", _STORED, PRIVATE] = None
    field: Annotated[str | None, "The field of the secret's JSON object in Secrets Manager.", _FIELD, PRIVATE] = None

    def _contradictions(self) -> Iterator[Problem]:
        places = [name for name in ("env", "file", "secretsmanager") if getattr(self, name) is not None]
        if len(places) != 1:
            said = f"{' and '.join(places)} are given" if places else "no place is given"
            yield Problem("env", f"{said}: a secret has one place", "Give one of env, file and secretsmanager")
        if self.field is not None and self.secretsmanager is None:
            yield Problem("field", "only a secret in Secrets Manager has fields", "Remove it, or give secretsmanager")


def secrets_in(part: object) -> Iterator[Secret]:
    """Yield the secrets that a declared value, like an environment, names."""
    if isinstance(part, Secret):
        yield part
    elif is_dataclass(part):
        for each in fields(part):
            yield from secrets_in(getattr(part, each.name))
