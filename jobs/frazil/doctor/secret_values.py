"""Checks that the secrets which an environment names can be read. Their values are in no check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial

from frazil.clients.secrets import Secrets, reference
from frazil.declaration import Environment
from frazil.declaration.secret import Secret
from frazil.doctor.check_result import Check
from frazil.doctor.schedule import Step


def steps(environment: Environment, secrets: Secrets) -> list[Step]:
    """Return one step for each secret of an environment."""
    named = {reference(secret): secret for secret in _secrets(environment)}
    return [Step(name=f"secret {name}", work=partial(_read, name, one, secrets)) for name, one in named.items()]


def names(part: object) -> tuple[str, ...]:
    """Return the names of the checks of the secrets below a part of an environment."""
    return tuple(dict.fromkeys(f"secret {reference(secret)}" for secret in _secrets(part)))


def _secrets(part: object) -> Iterator[Secret]:
    if isinstance(part, Secret):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from _secrets(getattr(part, field.name))


def _read(name: str, secret: Secret, secrets: Secrets) -> Check:
    secrets.read(secret)
    return Check.ok(f"secret {name}", "it can be read")
