"""Tokens of logins: what a broker and a registry accept, until they expire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from frazil.clients.redactor import Redactor
from frazil.errors import ServiceUnavailable

_USED_SHARE = 0.8
"""The share of its lifetime after which a token is renewed: as Kafka's clients do."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and until when it may be used; times are seconds since 1970."""

    value: str = field(repr=False)
    issued_at: float
    expires_at: float

    def is_fresh(self, now: float) -> bool:
        """Return whether the token need not be renewed yet."""
        return now < self.issued_at + (self.expires_at - self.issued_at) * _USED_SHARE


class Source(Protocol):
    """Where tokens come from."""

    @property
    def references(self) -> str:
        """The references of its secrets, for messages."""
        ...

    def fetch(self) -> Token:
        """Return a new token. Raises `TokenUnavailable` or `SecretUnavailable`."""
        ...

    def forget(self) -> None:
        """Forget the secrets, so that they are read again."""
        ...


class Tokens:
    """The current token of one source, renewed when needed; safe to share between threads.

    `now` is the time in seconds since 1970. `redactor` knows the current token and the one before it.
    """

    def __init__(self, source: Source, redactor: Redactor, *, now: Callable[[], float]) -> None:
        self._source, self._redactor, self._now = source, redactor, now
        self._lock = Lock()
        self._token: Token | None = None
        self._masked: list[str] = []

    @property
    def references(self) -> str:
        """The references of the source's secrets."""
        return self._source.references

    def current(self) -> Token:
        """Return a token that is fresh; an older one while it is valid and the source gives no other.

        Raises `TokenUnavailable` or `SecretUnavailable`.
        """
        with self._lock:
            if self._token is None or not self._token.is_fresh(self._now()):
                self._token = self._renewed()
            return self._token

    def has_expired(self, token: Token) -> bool:
        """Return whether a token may not be used any more."""
        return self._now() >= token.expires_at

    def is_due(self, token: Token) -> bool:
        """Return whether a token should have been renewed."""
        return not token.is_fresh(self._now())

    def forget(self) -> None:
        """Forget the token and the secrets: a service refused them."""
        with self._lock:
            self._token = None
            self._source.forget()

    def _renewed(self) -> Token:
        try:
            token = self._source.fetch()
        except ServiceUnavailable:
            if self._token is not None and self._now() < self._token.expires_at:
                return self._token
            raise
        self._redactor.add(token.value)
        self._masked.append(token.value)
        if len(self._masked) > 2:  # a driver that runs for months must not keep all of them
            self._redactor.remove(self._masked.pop(0))
        return token
