"""How long to bear with a registry that fails: attempts, pauses, sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to bear with a registry: one request, all its attempts and pauses included, ends within `total_seconds`.

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
        """The bound of the pause after that many failures, counted from 0; in seconds."""
        return min(self.longest_pause_seconds, self.first_pause_seconds * 2.0**failures)


def retry_after(headers: Mapping[str, str]) -> float:
    """The seconds that `Retry-After` asks for: a number, or a date, which is compared with the server's own clock."""
    text = (headers.get("Retry-After") or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        until, now = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("Date") or "")
        return max((until - now).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return 0.0
