"""The platforms for which the lock has programs."""

from __future__ import annotations

import platform

_POSTGRES = {("Linux", "x86_64"): "postgres-linux-amd64", ("Darwin", "x86_64"): "postgres-darwin-amd64"}


def postgres_purpose() -> str | None:
    """Return the purpose in `jobs/jars.lock` of this platform's PostgreSQL; None if the lock has none."""
    return _POSTGRES.get((platform.system(), platform.machine()))
