"""Names of secrets, and OAuth 2.0's client credentials. No declaration and no document ever holds a secret's value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated
from urllib.parse import urlsplit

from frazil.declaration.checks.constraints import ABSOLUTE_PATH, PRIVATE, WEB_ADDRESS, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem

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
    """The place of a secret: exactly one of `env`, `file` and `secretsmanager`. It is read only when it is needed."""

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
    """Yield the secrets that a declared value, like an environment, or a collection of them names."""
    if isinstance(part, Secret):
        yield part
    elif isinstance(part, Mapping | tuple | list):
        for one in part.values() if isinstance(part, Mapping) else part:
            yield from secrets_in(one)
    elif is_dataclass(part):
        for each in fields(part):
            yield from secrets_in(getattr(part, each.name))


THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts to which secrets may travel without TLS."""

_WORD = r"[\x21\x23-\x5b\x5d-\x7e]+"
_SCOPE = matching(f"{_WORD}(?: {_WORD})*", "a scope", "Write the scopes, with one space between two")
_CLUSTER = matching("[A-Za-z0-9_-]{1,128}", "a cluster's id", "Write it like lkc-a1b2c3 or lsrc-a1b2c3")
_POOL = matching("[A-Za-z0-9_-]{1,128}(?:,[A-Za-z0-9_-]{1,128})*", "an identity pool's id", "Write it like pool-a1b2")


@declared
class OAuth:
    """A client's credentials at a token endpoint.

    Tokens are renewed after 80 % of their lifetime. The broker's tokens must be JWTs with the claims `sub`, `iat`, `exp`: Spark's
    Kafka client refuses others. `logical_cluster` and `identity_pool` are Confluent Cloud's: extensions of the login at a broker,
    the headers `target-sr-cluster` and `Confluent-Identity-Pool-Id` at a registry.
    """

    token_endpoint: Annotated[str, "The token endpoint's address.", WEB_ADDRESS, PRIVATE]
    client_id: Annotated[Secret, "The client's id."]
    client_secret: Annotated[Secret, "The client's secret."]
    scope: Annotated[str | None, "The scopes to request, separated by spaces.", _SCOPE] = None
    ca: Annotated[str | None, "The PEM file of the endpoint's authorities, if not the system's.", ABSOLUTE_PATH] = None
    logical_cluster: Annotated[str | None, "Confluent Cloud: the id of the cluster, or of the registry.", _CLUSTER] = (
        None
    )
    identity_pool: Annotated[str | None, "Confluent Cloud: the identity pool.", _POOL] = None

    def _contradictions(self) -> Iterator[Problem]:
        if WEB_ADDRESS.refusal(self.token_endpoint):
            return
        if re.search(r"[^A-Za-z0-9._~%:/\[\]-]", self.token_endpoint):
            yield Problem("token_endpoint", "a character of it has a meaning in options of Java", "Write it as %XX")
        address = urlsplit(self.token_endpoint)
        if address.scheme == "http" and address.hostname not in THIS_MACHINE:
            yield Problem("token_endpoint", "the client's secret would travel in the clear", "Use https://")
        if address.scheme == "http" and self.ca is not None:
            yield Problem("ca", "an http:// address uses no certificates", "Remove it, or use https://")
