"""How requests to a registry are repeated, limited and run in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from threading import Event
from typing import TypeVar

_PARALLEL = 8
"""How many requests a method makes at a time."""

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
