"""Tokens of logins: what a broker and a registry accept, until they expire."""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from frazil.clients.aws_session import LOGIN, unanswered
from frazil.clients.reachability import distrust
from frazil.clients.secrets import Redactor, Secrets, references
from frazil.declaration.secret import OAuth
from frazil.errors import ServiceUnavailable, TokenRefused, TokenUnavailable

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


class Tokens:
    """The current token of one source, renewed when needed; safe to share between threads.

    `now` is the time in seconds since 1970. `redactor` knows the current token and the one before it.
    """

    def __init__(self, source: MskTokens | TokenEndpoint, redactor: Redactor, *, now: Callable[[], float]) -> None:
        self._source, self._redactor, self._now = source, redactor, now
        self._lock = Lock()
        self._token: Token | None = None
        self._masked: list[str] = []
        self.references = source.references
        """The references of the source's secrets, for messages."""

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


_SECONDS = 900
"""The lifetime of a signature; MSK takes none that is longer."""

_SERVICE = "kafka-cluster"


def default_credentials() -> Any:
    """Return the credentials of AWS's default chain as botocore has them, or None; boto3 is imported here only."""
    import boto3

    return boto3.session.Session().get_credentials()


class MskTokens:
    """Signs for one region, with `credentials()` of each time: roles renew theirs."""

    references = "the credentials of AWS's default chain"

    def __init__(self, region: str, *, credentials: Callable[[], Any] = default_credentials) -> None:
        self._region, self._credentials = region, credentials
        self._kept: Any = None

    def fetch(self) -> Token:
        """Return a new token. Raises `TokenUnavailable` without credentials."""
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError, ClientError

        address = f"https://kafka.{self._region}.amazonaws.com/"
        request = AWSRequest(method="GET", url=address, params={"Action": f"{_SERVICE}:Connect"})
        try:
            self._kept = self._kept or self._credentials()
            frozen = self._kept.get_frozen_credentials() if self._kept is not None else None
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "without a code")
            raise TokenUnavailable(f"it refused the credentials of a role ({code})", where="AWS", do=LOGIN) from None
        except BotoCoreError as error:
            what, _ = unanswered("AWS", error)
            raise TokenUnavailable(what, where="AWS", do=LOGIN) from None
        if frozen is None:
            raise TokenUnavailable("there are no AWS credentials to sign with", where="AWS", do=LOGIN)
        SigV4QueryAuth(frozen, _SERVICE, self._region, expires=_SECONDS).add_auth(request)
        url = f"{request.url}&User-Agent=frazil"
        signed_at = parse_qs(urlsplit(url).query)["X-Amz-Date"][0]
        issued_at = datetime.strptime(signed_at, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
        return Token(base64.urlsafe_b64encode(url.encode()).decode().rstrip("="), issued_at, issued_at + _SECONDS)

    def forget(self) -> None:
        """Look the credentials up again."""
        self._kept = None


_ATTEMPTS = 3
_ATTEMPT_SECONDS = 5.0
_PAUSE_SECONDS = 0.5
_LARGEST_BYTES = 256 * 1024
_CHUNK_BYTES = 16 * 1024
_DEFAULT_SECONDS = 300.0
"""The lifetime of a token whose endpoint names none."""

_REFUSALS = frozenset({400, 401, 403})
"""Answers of endpoints to a wrong client, secret or scope (RFC 6749, section 5.2)."""


class TokenEndpoint:
    """One token endpoint, asked for one client. `now` is the time in seconds since 1970.

    Raises `TokenUnavailable` if the file of authorities cannot be read.
    """

    def __init__(
        self, settings: OAuth, secrets: Secrets, *, now: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._settings, self._secrets, self._now, self._sleep = settings, secrets, now, sleep
        self.references = references(settings.client_id, settings.client_secret)
        if settings.ca is not None and not os.access(settings.ca, os.R_OK):
            what = "the file of trusted authorities cannot be read"
            raise TokenUnavailable(what, where=settings.ca, do="Correct oauth.ca of the environment")
        self._pool = urllib3.PoolManager(retries=False, cert_reqs="CERT_REQUIRED", ca_certs=settings.ca)

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
            do = f"Check {self.references}" + (" and the scope" if self._settings.scope else "")
            raise TokenRefused(f"it does not accept our client ({answer})", where=self._where, do=do)
        return answer

    def _asked(self) -> Token | str:
        """Return the token, or what a refusal says; repeat what may pass."""
        last, scope = "", {"scope": self._settings.scope} if self._settings.scope else {}
        for attempt in range(_ATTEMPTS):
            if attempt:
                self._sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
            issued_at = self._now()
            try:
                response = self._pool.request(
                    "POST",
                    self._settings.token_endpoint,
                    body=urlencode({"grant_type": "client_credentials", **scope}),
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
                if told := distrust(text):
                    raise self._unavailable(told, "Check oauth.ca") from None
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
