"""Logins at a schema registry: none, a user with a password, or the bearer of a token."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from frazil.clients.secrets import Secrets, reference
from frazil.declaration import environment
from frazil.declaration.secret import Secret
from frazil.errors import SecretUnavailable


class Login(Protocol):
    """What a connection needs of a login."""

    @property
    def references(self) -> str:
        """The references of its secrets, for messages; empty if it has none."""
        ...

    def header(self) -> str | None:
        """Return the value of the `Authorization` header, if any. Raises `SecretUnavailable`."""
        ...

    def forget(self) -> None:
        """Forget the secrets, so that they are read again: the registry refused them."""
        ...


@dataclass(frozen=True, slots=True)
class NoLogin:
    """No login at all."""

    references: str = ""

    def header(self) -> None:
        """Return no header."""

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

    def header(self) -> str:
        """Return `Basic …`. A user name with a colon cannot be sent (RFC 7617)."""
        username, password = self.secrets.username(self.username), self.secrets.read(self.password)
        if ":" in username:
            raise SecretUnavailable("a user name must not have a colon", where=f"secret {reference(self.username)}")
        word = base64.b64encode(f"{username}:{password}".encode()).decode()
        self.secrets.redactor.add(word)
        return f"Basic {word}"

    def forget(self) -> None:
        """Forget both."""
        self.secrets.forget(self.username, self.password)


@dataclass(frozen=True, slots=True)
class BearerLogin:
    """A token that is renewed where it is stored."""

    secrets: Secrets
    token: Secret

    @property
    def references(self) -> str:
        """The token's reference."""
        return reference(self.token)

    def header(self) -> str:
        """Return `Bearer …`."""
        token = self.secrets.read(self.token)
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise SecretUnavailable("a token has visible ASCII characters only", where=f"secret {self.references}")
        return f"Bearer {token}"

    def forget(self) -> None:
        """Forget the token."""
        self.secrets.forget(self.token)


def login_of(settings: environment.Registry, token: Secret | None, secrets: Secrets) -> Login:
    """Return the login that an environment names; `token`, if there is one, goes before a password."""
    if token is not None:
        return BearerLogin(secrets, token)
    if settings.username is not None and settings.password is not None:
        return BasicLogin(secrets, settings.username, settings.password)
    return NoLogin()


def origin(address: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of an address: credentials are sent to one origin only."""
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def display_address(address: str) -> str:
    """Return the origin alone: paths and queries of a redirect may hold tokens, and addresses credentials."""
    scheme, host, _ = origin(address)
    port = urlsplit(address).port
    return f"{scheme}://{host}" + (f":{port}" if port else "")
