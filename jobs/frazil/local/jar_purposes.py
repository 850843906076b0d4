"""The jars of each local service, fetched before a service starts and before a spinner takes the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from frazil.local.connect_worker import PLUGINS
from frazil.local.services import Part
from frazil.local.toolchain.jars import jars
from frazil.local.toolchain.platforms import postgres_purpose


def fetch_jars_of(parts: Iterable[Part]) -> None:
    """Fetch the jars of these services that are not in the cache. Raises `JarsUnavailable` or `JarMismatch`."""
    for part in parts:
        for purpose in purposes_of(part):
            jars(purpose)


def purposes_of(part: Part) -> tuple[str, ...]:
    """Return the purposes of a service in the lock; none if it needs no jar."""
    match part:
        case Part.KAFKA | Part.REGISTRY:
            return (part.value,)
        case Part.CONNECT:
            return ("connect", *PLUGINS)
        case Part.POSTGRES:
            postgres = postgres_purpose()
            return (postgres,) if postgres else ()
        case Part.OBJECT_STORE:
            return ()
