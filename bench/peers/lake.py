"""A peer's table: created by PyIceberg in the catalog of all contenders, and how many rows its current snapshot has."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema

from bench.topics import Job
from frazil.clients.secrets import Secrets
from frazil.lake.catalogs import pyiceberg_properties, spark_options
from frazil.schemas.iceberg import schema_json
from frazil.schemas.types import Struct

_LOOK_SECONDS = 0.1
_LOOKS_BETWEEN_STATES = 20
PROPERTIES = {"format-version": "2", "write.metadata.compression-codec": "gzip"}


def catalog_of(job: Job) -> Catalog:
    """Load the catalog, with the namespace of the job's table."""
    environment = job.environment
    catalog = load_catalog(environment.catalog.name, **pyiceberg_properties(environment, Secrets({}).read))
    catalog.create_namespace_if_not_exists(job.table.partition(".")[0])
    return catalog


def catalog_options(job: Job) -> dict[str, str]:
    """Return the catalog's properties, as Iceberg's Java has them."""
    prefix = "spark.sql.catalog.lake."
    given = spark_options(job.environment, lambda secret: "")
    return {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}


def create(
    catalog: Catalog, table: str, row: Struct, *, key: Collection[str] = (), more: Mapping[str, str] | None = None
) -> None:
    """Create an empty table, with Iceberg's defaults and compressed metadata, as Frazil's."""
    schema = Schema.model_validate(schema_json(row, key=key))
    catalog.create_table(table, schema, properties={**PROPERTIES, **(more or {})})


def landed(catalog: Catalog, table: str) -> int:
    """Return the rows of the current snapshot."""
    snapshot = catalog.load_table(table).current_snapshot()
    return 0 if snapshot is None or snapshot.summary is None else int(snapshot.summary["total-records"] or 0)


def await_count(
    what: str, counted: Callable[[], int], wanted: int, *, check: Callable[[], None], longest_seconds: float
) -> int:
    """Return the count as soon as it is at least `wanted`. Meanwhile `check` raises if the engine failed."""
    deadline, looks = time.monotonic() + longest_seconds, 0
    while (found := counted()) < wanted:
        if looks % _LOOKS_BETWEEN_STATES == 0:
            check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: {found} of {wanted} after {longest_seconds:.0f} s")
        looks += 1
        time.sleep(_LOOK_SECONDS)
    return found
