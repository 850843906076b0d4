"""Checks that the secrets which an environment names can be read. Their values are in no check."""

from __future__ import annotations

from functools import partial

from frazil.clients.secrets import Secrets, reference
from frazil.declaration import Environment
from frazil.declaration.secret import Secret, secrets_in
from frazil.doctor.check_result import Check
from frazil.doctor.schedule import Step


def steps(environment: Environment, secrets: Secrets) -> list[Step]:
    """Return one step for each secret of an environment."""
    named = {reference(secret): secret for secret in secrets_in(environment)}
    return [Step(name=f"secret {name}", work=partial(_read, name, one, secrets)) for name, one in named.items()]


def names(part: object) -> tuple[str, ...]:
    """Return the names of the checks of the secrets below a part of an environment."""
    return tuple(dict.fromkeys(f"secret {reference(secret)}" for secret in secrets_in(part)))


def _read(name: str, secret: Secret, secrets: Secrets) -> Check:
    secrets.read(secret)
    return Check.ok(f"secret {name}", "it can be read")
