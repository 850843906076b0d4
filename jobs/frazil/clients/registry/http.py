"""HTTP to a schema registry: retries, strict checks of answers, no redirects."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from threading import Event
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urljoin

import urllib3
from urllib3.exceptions import HTTPError, SSLError

from frazil.clients.reachability import distrust
from frazil.clients.registry.auth import Login, display_address
from frazil.clients.secrets import Redactor
from frazil.errors import RegistryRefused, RegistryUnavailable

_PARALLEL = 8
"""The number of requests that a method makes at a time."""

_K = TypeVar("_K")
_T = TypeVar("_T")


class PassingError(Exception):
    """An attempt failed for a reason that may pass; `pause_seconds` is what the registry asks us to wait."""

    def __init__(self, what: str, pause_seconds: float = 0.0) -> None:
        super().__init__(what)
        self.pause_seconds = pause_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Limits of one request: it ends within `total_seconds`, all its attempts and pauses included.

    Pauses between attempts are random up to a bound that doubles from `first_pause_seconds` to `longest_pause_seconds`
    ("full jitter"); `Retry-After` makes them longer. An answer of more than `body_bytes` is refused; Kafka's own limit
    for a registry's records, 1 MB unless raised, keeps schemas far below it.
    """

    total_seconds: float = 30.0
    attempt_seconds: float = 10.0
    attempts: int = 8
    first_pause_seconds: float = 0.2
    longest_pause_seconds: float = 5.0
    body_bytes: int = 8 * 1024 * 1024

    def longest_pause(self, failures: int) -> float:
        """Return the bound of the pause after that many failures, counted from 0; in seconds."""
        return min(self.longest_pause_seconds, self.first_pause_seconds * 2.0**failures)


def retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds that `Retry-After` asks for: a number, or a date, which is compared with the server's own clock."""
    text = (headers.get("Retry-After") or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until, now = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("Date") or "")
        return max((until - now).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0


def several(ask: Callable[[_K], _T], keys: Iterable[_K]) -> list[_T]:
    """Return the answers for all keys, in their order; a few are asked for at a time. The first error ends the asking."""
    asked = list(keys)
    if len(asked) <= 1:
        return [ask(key) for key in asked]
    failed = Event()  # each of the others would retry as long as the one that failed

    def unless_failed(key: _K) -> _T:
        if failed.is_set():
            raise CancelledError
        try:
            return ask(key)
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="registry") as pool:
        answers = [pool.submit(unless_failed, key) for key in asked]
    errors = [error for error in (answer.exception() for answer in answers) if error is not None]
    if errors:
        raise next((error for error in errors if not isinstance(error, CancelledError)), errors[0])
    return [answer.result() for answer in answers]


_TYPE = "application/vnd.schemaregistry.v1+json"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CHUNK_BYTES = 65_536
_MOST_CHARACTERS = 300


class Answer(NamedTuple):
    """The answer of the registry at `where`: the status, and the JSON; None for a refusal without JSON."""

    where: str
    status: int
    body: Any

    @property
    def error_code(self) -> int | None:
        """The registry's own code of a refusal."""
        code = self.body.get("error_code") if isinstance(self.body, dict) else None
        return code if isinstance(code, int) and self.status >= 400 else None

    @property
    def message(self) -> str:
        """The registry's own sentence of a refusal: of any length, and not redacted."""
        text = self.body.get("message") if isinstance(self.body, dict) else None
        return text if isinstance(text, str) else ""

    def object(self) -> Mapping[str, Any]:
        """Return the JSON object of a success. Raises `RegistryUnavailable` if it is anything else."""
        if self.status >= 300 or not isinstance(self.body, dict):
            raise self.strange("not the object that was asked for")
        return self.body

    def list(self, kind: type) -> list[Any]:
        """Return the JSON list of a success, its entries of one type. Raises `RegistryUnavailable` if it is anything else."""
        body = self.body
        if self.status >= 300 or not isinstance(body, list) or not all(isinstance(entry, kind) for entry in body):
            raise self.strange("not the list that was asked for")
        return body

    def strange(self, what: str) -> RegistryUnavailable:
        """Return the error for an answer that no registry gives."""
        code = f", code {self.error_code}" if self.error_code is not None else ""
        do = "Check that registry.url is the base of a Confluent-compatible API"
        return RegistryUnavailable(f"it answered {self.status}{code}: {what}", where=f"registry {self.where}", do=do)


class RegistryHttp:
    """Requests to the registry at `base`.

    `clock` is monotonic, in seconds; `random` gives numbers from 0 to 1. Safe to share between threads.
    """

    def __init__(
        self,
        base: str,
        login: Login,
        redactor: Redactor,
        *,
        retry: RetryPolicy,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        random: Callable[[], float],
        ca: str | None = None,
    ) -> None:
        self._base = base.rstrip("/")
        self._login, self._redactor, self._retry = login, redactor, retry
        self._clock, self._sleep, self._random = clock, sleep, random
        if ca is not None and not os.access(ca, os.R_OK):
            raise RegistryUnavailable(
                "the file of trusted authorities cannot be read", where=ca, do="Correct registry.ca of the environment"
            )
        self._pool = urllib3.PoolManager(maxsize=8, retries=False, cert_reqs="CERT_REQUIRED", ca_certs=ca)

    @property
    def where(self) -> str:
        """The registry's address, as messages name it: without credentials."""
        return display_address(self._base)

    def get(self, path: str) -> Answer:
        """Send GET to a path below the base, query included. Raises `RegistryUnavailable`."""
        return self.request("GET", path)

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """Return the registry's answer: 200 to 499, without 401, 403, 407, 408, 429 and redirects.

        Raises `RegistryRefused` for 401 (after the secrets were read again) and 403; `RegistryUnavailable` for
        everything that is no answer of a registry, after all attempts: what is wrong for good is not
        asked twice.
        """
        start, deadline = self._clock(), self._clock() + self._retry.total_seconds
        is_login_fresh = False
        last = "no attempt fitted into the time"
        for attempt in range(self._retry.attempts):
            try:
                answer = self._attempt(method, path, body, deadline)
                if answer.status == 401 and self._login.references and not is_login_fresh:
                    # A rotated secret: read it again and ask once more, at once.
                    self._login.forget()
                    is_login_fresh = True
                    answer = self._attempt(method, path, body, deadline)
            except PassingError as passing:
                last = str(passing)
                pause = max(passing.pause_seconds, self._retry.longest_pause(attempt) * self._random())
                if self._clock() + pause >= deadline:
                    break
                if attempt + 1 < self._retry.attempts:
                    self._sleep(pause)
            else:
                return self._accepted(answer)
        seconds = self._clock() - start
        raise self._unavailable(
            f"it did not answer within {seconds:.1f} s; the last failure: {last}",
            "Check that it runs and can be reached from here; nothing is rejected meanwhile",
        )

    def _attempt(self, method: str, path: str, body: Mapping[str, Any] | None, deadline: float) -> Answer:
        """Send one request. Raises `PassingError` or `RegistryUnavailable`. Another address would receive the credentials."""
        left = min(self._retry.attempt_seconds, deadline - self._clock())
        if left <= 0:
            raise PassingError("the time was up")
        try:
            response = self._pool.request(
                method,
                self._base + path,
                body=None if body is None else json.dumps(body).encode(),
                headers=self._headers(),
                timeout=urllib3.Timeout(connect=left, read=left),
                preload_content=False,
                redirect=False,
            )
            try:
                if response.status in _REDIRECTS:
                    raise self._redirected(response.headers.get("Location") or "")
                return self._read(response, deadline)
            finally:
                # A body that was not read to its end makes the connection useless; one that was has gone back already.
                response.close()
        except (HTTPError, OSError, ssl.SSLError) as error:
            raise self._failure(error) from None

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": f"{_TYPE}, application/json", "Content-Type": _TYPE, "User-Agent": "frazil"}
        return headers | self._login.headers()

    def _redirected(self, location: str) -> RegistryUnavailable:
        try:
            shown = display_address(urljoin(self._base, location))
        except ValueError:
            shown = "what is no address"
        do = "If that is the registry, write its address into registry.url"
        return self._unavailable(f"it redirects to {shown}; that is not followed", do)

    def _read(self, response: urllib3.BaseHTTPResponse, deadline: float) -> Answer:
        """Return the answer's status and JSON. Raises `PassingError` for 429 and 5xx, `RegistryUnavailable` for what is no
        JSON.
        """
        status, kind = response.status, response.headers.get("Content-Type") or "no type"
        if status in (408, 429) or status >= 500:
            raise PassingError(f"status {status}", retry_after(response.headers))
        data = bytearray()
        while chunk := response.read1(_CHUNK_BYTES, decode_content=True):
            data += chunk
            if len(data) > self._retry.body_bytes:
                raise self._unavailable(
                    f"its answer is larger than {self._retry.body_bytes} bytes", "Check that registry.url is a registry"
                )
            if self._clock() >= deadline:
                raise PassingError("the time was up in the middle of the answer")
        try:
            return Answer(self.where, status, json.loads(data))
        except (ValueError, RecursionError):
            if status in (401, 403):
                return Answer(self.where, status, None)
            raise self._unavailable(
                f"it answered {status} with {kind.split(';')[0][:60]} that is not JSON",
                "Check registry.url: a proxy or a login page may be in front of the registry",
            ) from None

    def _accepted(self, answer: Answer) -> Answer:
        """Return the answer, unless it is a refusal that no caller can handle."""
        if answer.status not in (401, 403, 407):
            return answer
        what = "it does not accept our login" if answer.status != 403 else "it does not allow this to our login"
        message = f": {self._redactor.redact(answer.message)[:_MOST_CHARACTERS]}" if answer.message else ""
        secrets = self._login.references
        raise RegistryRefused(
            f"{what} ({answer.status}){message}",
            where=self.where,
            do=f"Check {secrets}"
            if secrets
            else "Give the environment's registry a login: username and password, or oauth",
        )

    def _failure(self, error: Exception) -> Exception:
        """Return the error for a failed connection: a passing one, unless TLS does not trust the server."""
        text = self._redactor.redact(str(error))
        if isinstance(error, SSLError | ssl.SSLError) and (told := distrust(text)):
            return self._unavailable(told, "Check registry.url and registry.ca")
        return PassingError(f"{type(error).__name__}, {text[-_MOST_CHARACTERS:]}")

    def _unavailable(self, what: str, do: str) -> RegistryUnavailable:
        return RegistryUnavailable(what, where=f"registry {self.where}", do=do)
