"""The login of one librdkafka client with tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from frazil.clients.tokens import Tokens
from frazil.errors import ServiceUnavailable


class TokenLogin:
    """The token that one client of librdkafka has, from the start: librdkafka waits 10 s for its first one, and then says no more
    than that it got none.

    Raises `TokenUnavailable` or `SecretUnavailable` if there is no token.
    """

    def __init__(self, tokens: Tokens, extensions: Mapping[str, str]) -> None:
        self._tokens, self._extensions = tokens, dict(extensions)
        self._token = tokens.current()

    @property
    def is_current(self) -> bool:
        """Whether the client has the current token. Raises `TokenUnavailable` or `SecretUnavailable`."""
        return self._tokens.current() is self._token

    @property
    def has_expired(self) -> bool:
        """Whether the client's token may not be used any more."""
        return self._tokens.has_expired(self._token)

    @property
    def is_due(self) -> bool:
        """Whether the client's token should have been renewed: a broker may end its connections from now on."""
        return self._tokens.is_due(self._token)

    def answer(self, _: object) -> tuple[str, float, str, dict[str, str]]:
        """Return the token as librdkafka asks for it: value, end in seconds since 1970, principal, extensions.

        Never raises, as nothing of Python is above it. Without a new token it repeats the old one; requests report why.
        """
        with contextlib.suppress(ServiceUnavailable):
            self._token = self._tokens.current()
        return self._token.value, self._token.expires_at, "frazil", self._extensions
