"""The check of this machine's clock, against the first service that says what time it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from frazil.clients.reachability import ServerTime, server_time
from frazil.declaration import Environment
from frazil.declaration.catalogs import GlueCatalog, LocalCatalog, RestCatalog
from frazil.doctor.check_result import Check
from frazil.doctor.schedule import Step

CLOCK = "clock"
NOTICED_SECONDS = 5.0
"""From this skew on, freshness and lag are wrong by a figure that matters."""
REFUSED_SECONDS = 300.0
"""From this skew on, AWS refuses signed requests (S3 from 900 s on)."""


def steps(environment: Environment, now: Callable[[], float], seconds: float) -> list[Step]:
    """Return the step of the clock; `now` is in seconds since 1970."""
    return [Step(name=CLOCK, work=partial(_compared, environment, now, seconds))]


def of_times(source: str, time: ServerTime) -> Check:
    """Return the check of a skew."""
    skew = time.skew_seconds
    found = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the {source}"
    if abs(skew) >= REFUSED_SECONDS:
        return Check.failed(CLOCK, found, "Set the clock, for example with chrony; AWS refuses requests of this skew")
    if abs(skew) >= NOTICED_SECONDS:
        return Check.warning(CLOCK, found, "Set the clock, for example with chrony; freshness and lag depend on it")
    return Check.ok(CLOCK, f"within {max(round(abs(skew)), 1)} s of the {source}")


def sources(environment: Environment) -> Iterator[tuple[str, str, str | None]]:
    """Yield the services that may say their time, the first one first: name, address, file of authorities."""
    catalog, store = environment.catalog, environment.object_store
    on_files = isinstance(catalog, LocalCatalog) and not catalog.warehouse.startswith("s3:")
    if store is not None and store.endpoint:
        yield "object store", store.endpoint, None
    elif not on_files:
        region = (store and store.region) or (
            catalog.region if isinstance(catalog, GlueCatalog | RestCatalog) else None
        )
        yield "object store", f"https://s3.{region or 'us-east-1'}.amazonaws.com", None
    if isinstance(catalog, RestCatalog):
        yield "catalog", catalog.uri, None
    if environment.registry is not None:
        yield "registry", environment.registry.url, environment.registry.ca


def _compared(environment: Environment, now: Callable[[], float], seconds: float) -> Check:
    for source, url, ca in sources(environment):
        time = server_time(url, ca, seconds, now)
        if time is not None:
            return of_times(source, time)
    return Check.skipped(CLOCK, "no service of this environment says what time it is")
