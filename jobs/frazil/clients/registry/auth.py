"""Logins at a schema registry: none, a user with a password, or the bearer of a token."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from frazil.clients.secrets import Secrets, reference
from frazil.clients.tokens import TokenEndpoint, Tokens
from frazil.declaration import environment
from frazil.declaration.secret import OAuth, Secret
from frazil.errors import SecretUnavailable


class Login(Protocol):
    """What a connection needs of a login."""

    @property
    def references(self) -> str:
        """The references of its secrets, for messages; empty if it has none."""
        ...

    def headers(self) -> dict[str, str]:
        """Return the headers that prove who we are, if any. Raises `SecretUnavailable`."""
        ...

    def forget(self) -> None:
        """Forget the secrets, so that they are read again: the registry refused them."""
        ...


@dataclass(frozen=True, slots=True)
class NoLogin:
    """No login at all."""

    references: str = ""

    def headers(self) -> dict[str, str]:
        """Return no header."""
        return {}

    def forget(self) -> None:
        """Do nothing: there is no secret."""


@dataclass(frozen=True, slots=True)
class BasicLogin:
    """A user name and a password; Confluent Cloud's API key and its secret."""

    secrets: Secrets
    username: Secret
    password: Secret

    @property
    def references(self) -> str:
        """Both references."""
        return ", ".join(dict.fromkeys((reference(self.username), reference(self.password))))

    def headers(self) -> dict[str, str]:
        """Return `Basic …`. A user name with a colon cannot be sent (RFC 7617)."""
        username, password = self.secrets.username(self.username), self.secrets.read(self.password)
        if ":" in username:
            raise SecretUnavailable("a user name must not have a colon", where=f"secret {reference(self.username)}")
        word = base64.b64encode(f"{username}:{password}".encode()).decode()
        self.secrets.redactor.add(word)
        return {"Authorization": f"Basic {word}"}

    def forget(self) -> None:
        """Forget both."""
        self.secrets.forget(self.username, self.password)


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """A token of a token endpoint. `routing` are the headers by which Confluent Cloud finds cluster and identity pool."""

    tokens: Tokens
    routing: Mapping[str, str]

    @property
    def references(self) -> str:
        """The references of the client's id and secret."""
        return self.tokens.references

    def headers(self) -> dict[str, str]:
        """Return `Bearer …` and the routing. Raises `TokenUnavailable`, too."""
        return {"Authorization": f"Bearer {self.tokens.current().value}", **self.routing}

    def forget(self) -> None:
        """Forget the token and the client's secret."""
        self.tokens.forget()


def login_of(
    settings: environment.Registry, secrets: Secrets, *, now: Callable[[], float], sleep: Callable[[float], None]
) -> Login:
    """Return the login that an environment names. `now` is the time in seconds since 1970."""
    if settings.oauth is not None:
        endpoint = TokenEndpoint(settings.oauth, secrets, now=now, sleep=sleep)
        return TokenLogin(Tokens(endpoint, secrets.redactor, now=now), routing(settings.oauth))
    if settings.username is not None and settings.password is not None:
        return BasicLogin(secrets, settings.username, settings.password)
    return NoLogin()


def routing(oauth: OAuth) -> dict[str, str]:
    """Return the headers that Confluent Cloud's registry needs beside a token."""
    named = {"target-sr-cluster": oauth.logical_cluster, "Confluent-Identity-Pool-Id": oauth.identity_pool}
    return {name: value for name, value in named.items() if value is not None}


def origin(address: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of an address: credentials are sent to one origin only."""
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def display_address(address: str) -> str:
    """Return the origin alone: paths and queries of a redirect may hold tokens, and addresses credentials."""
    scheme, host, _ = origin(address)
    port = urlsplit(address).port
    return f"{scheme}://{host}" + (f":{port}" if port else "")
