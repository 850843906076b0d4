"""Logins at a schema registry: none, a user with a password, or the bearer of a token."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from frazil.clients.secrets import Secrets, reference, references
from frazil.clients.tokens import TokenEndpoint, Tokens
from frazil.declaration import environment
from frazil.declaration.secret import OAuth, Secret
from frazil.errors import SecretUnavailable


@dataclass(frozen=True, slots=True)
class Login:
    """A login at a registry; by default without secrets and headers.

    `headers` prove who we are: it raises `SecretUnavailable`, and `TokenUnavailable`. `forget` has the refused secrets read
    again. `references` are those of the secrets, for messages.
    """

    headers: Callable[[], dict[str, str]] = dict
    forget: Callable[[], None] = lambda: None
    references: str = ""


def login_of(
    settings: environment.Registry, secrets: Secrets, *, now: Callable[[], float], sleep: Callable[[float], None]
) -> Login:
    """Return the login that an environment names. `now` is the time in seconds since 1970."""
    if settings.oauth is not None:
        endpoint = TokenEndpoint(settings.oauth, secrets, now=now, sleep=sleep)
        tokens, routed = Tokens(endpoint, secrets.redactor, now=now), routing(settings.oauth)

        def headers() -> dict[str, str]:
            return {"Authorization": f"Bearer {tokens.current().value}", **routed}

        return Login(headers, tokens.forget, tokens.references)
    if settings.username is not None and settings.password is not None:
        return basic_login(secrets, settings.username, settings.password)
    return Login()


def basic_login(secrets: Secrets, username: Secret, password: Secret) -> Login:
    """Return the login of a user, or of Confluent Cloud's API key. A user name with a colon cannot be sent (RFC 7617)."""

    def headers() -> dict[str, str]:
        name, value = secrets.username(username), secrets.read(password)
        if ":" in name:
            raise SecretUnavailable("a user name must not have a colon", where=f"secret {reference(username)}")
        word = base64.b64encode(f"{name}:{value}".encode()).decode()
        secrets.redactor.add(word)
        return {"Authorization": f"Basic {word}"}

    return Login(headers, partial(secrets.forget, username, password), references(username, password))


def routing(oauth: OAuth) -> dict[str, str]:
    """Return the headers that Confluent Cloud's registry needs with a token."""
    named = {"target-sr-cluster": oauth.logical_cluster, "Confluent-Identity-Pool-Id": oauth.identity_pool}
    return {name: value for name, value in named.items() if value is not None}


def display_address(address: str) -> str:
    """Return the origin alone: paths and queries of a redirect may hold tokens, and addresses credentials."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
