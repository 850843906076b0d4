"""Tokens of a token endpoint, by OAuth 2.0's grant of client credentials (RFC 6749, section 4.4)."""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
from collections.abc import Callable
from urllib.parse import quote_plus, urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from frazil.clients.secrets import Secrets, reference
from frazil.clients.tokens import Token
from frazil.declaration.secret import OAuth
from frazil.errors import TokenRefused, TokenUnavailable

_ATTEMPTS = 3
_ATTEMPT_SECONDS = 5.0
_PAUSE_SECONDS = 0.5
_LARGEST_BYTES = 256 * 1024
_CHUNK_BYTES = 16 * 1024
_DEFAULT_SECONDS = 300.0
"""The lifetime of a token whose endpoint names none."""

_REFUSALS = frozenset({400, 401, 403})
"""What endpoints answer to a wrong client, secret or scope (RFC 6749, section 5.2)."""


class TokenEndpoint:
    """One token endpoint, asked for one client. `now` is the time in seconds since 1970.

    Raises `TokenUnavailable` if the file of authorities cannot be read.
    """

    def __init__(
        self, settings: OAuth, secrets: Secrets, *, now: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._settings, self._secrets, self._now, self._sleep = settings, secrets, now, sleep
        if settings.ca is not None and not os.access(settings.ca, os.R_OK):
            raise TokenUnavailable(
                "the file of trusted authorities cannot be read",
                where=settings.ca,
                do="Correct oauth.ca of the environment",
            )
        self._pool = urllib3.PoolManager(retries=False, cert_reqs="CERT_REQUIRED", ca_certs=settings.ca)

    @property
    def references(self) -> str:
        """The references of the client's id and secret."""
        return ", ".join(dict.fromkeys((reference(self._settings.client_id), reference(self._settings.client_secret))))

    def forget(self) -> None:
        """Forget the client's id and secret."""
        self._secrets.forget(self._settings.client_id, self._settings.client_secret)

    def fetch(self) -> Token:
        """Return a new token. Reads the secrets again, once, if the endpoint refuses them.

        Raises `TokenRefused`, `TokenUnavailable` or `SecretUnavailable`.
        """
        answer = self._asked()
        if isinstance(answer, str):
            self.forget()
            answer = self._asked()
        if isinstance(answer, str):
            raise TokenRefused(
                f"it does not accept our client ({answer})",
                where=self._where,
                do=f"Check {self.references}" + (" and the scope" if self._settings.scope else ""),
            )
        return answer

    def _asked(self) -> Token | str:
        """Return the token, or what a refusal says; repeat what may pass."""
        last = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
            issued_at = self._now()
            try:
                response = self._pool.request(
                    "POST",
                    self._settings.token_endpoint,
                    body=urlencode(self._form()),
                    headers=self._headers(),
                    timeout=urllib3.Timeout(connect=_ATTEMPT_SECONDS, read=_ATTEMPT_SECONDS),
                    redirect=False,
                    preload_content=False,
                )
                try:
                    data = self._body(response, issued_at + 2 * _ATTEMPT_SECONDS)
                finally:
                    response.close()
            except (HTTPError, OSError, ssl.SSLError) as error:
                text = self._secrets.redactor.redact(str(error))
                if "CERTIFICATE_VERIFY_FAILED" in text:
                    raise self._unavailable("its certificate is not trusted", "Check oauth.ca") from None
                last = type(error).__name__
                continue
            if response.status in _REFUSALS:
                return f"{response.status}{_code(data)}"
            if response.status == 200:
                return self._token(data, issued_at)
            last = f"status {response.status}"
            if response.status < 500 and response.status not in (408, 429):
                break
        raise self._unavailable(f"it gave no token; the last failure: {last}", "Check that it can be reached from here")

    def _body(self, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        """Return the answer's body. Raises `TimeoutError` at the deadline, and `OSError` for a body that is too long."""
        data = bytearray()
        while chunk := response.read1(_CHUNK_BYTES, decode_content=True):
            data += chunk
            if self._now() >= deadline:
                raise TimeoutError
            if len(data) > _LARGEST_BYTES:
                raise OSError
        return bytes(data)

    def _form(self) -> dict[str, str]:
        scope = {"scope": self._settings.scope} if self._settings.scope else {}
        return {"grant_type": "client_credentials", **scope}

    def _headers(self) -> dict[str, str]:
        client = self._secrets.username(self._settings.client_id)
        secret = self._secrets.read(self._settings.client_secret)
        encoded = quote_plus(secret)
        word = base64.b64encode(f"{quote_plus(client)}:{encoded}".encode()).decode()
        for shown in (encoded, word):
            self._secrets.redactor.add(shown)
        return {
            "Authorization": f"Basic {word}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
            "User-Agent": "frazil",
        }

    def _token(self, data: bytes, issued_at: float) -> Token:
        """Return the token of an answer. Raises `TokenUnavailable` for anything else; its text may hold a token."""
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError):
            answer = None
        value = answer.get("access_token") if isinstance(answer, dict) else None
        if not isinstance(value, str) or not value or not (value.isascii() and value.isprintable()) or " " in value:
            raise self._unavailable("its answer has no token", "Check that it is a token endpoint of OAuth 2.0")
        seconds = answer.get("expires_in", _DEFAULT_SECONDS)
        if isinstance(seconds, str) and seconds.isascii() and seconds.isdigit():
            seconds = int(seconds)
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e9:
            raise self._unavailable("its answer has no usable expires_in", "Check that it is a token endpoint")
        return Token(value, issued_at, issued_at + float(seconds))

    @property
    def _where(self) -> str:
        """The endpoint's origin: a path may name a tenant."""
        parts = urlsplit(self._settings.token_endpoint)
        return f"token endpoint {parts.scheme}://{parts.netloc}"

    def _unavailable(self, what: str, do: str) -> TokenUnavailable:
        return TokenUnavailable(what, where=self._where, do=do)


def _code(data: bytes) -> str:
    """Return the code of a refusal, like `, invalid_client`, if it has one; no other text of it is shown."""
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    code = answer.get("error") if isinstance(answer, dict) else None
    return f", {code}" if isinstance(code, str) and re.fullmatch("[a-z_]{1,40}", code) else ""
