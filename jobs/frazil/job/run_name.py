"""The name of a job's run in the ledger and of its proof: unique, and names of later runs sort after earlier ones."""

from __future__ import annotations

_TIME_DIGITS = 12


def run_name(prefix: str, *, now: float, unique_id: str) -> str:
    """Return the name of a run that begins now, in seconds since 1970. `unique_id` has 32 hexadecimal digits."""
    return f"{prefix}{round(now * 1000):0{_TIME_DIGITS}x}{unique_id[_TIME_DIGITS:]}"
