"""Checks of the catalog, its namespaces, and a write and a delete where tables keep their files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from frazil.clients.object_store import ObjectStore
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Pipeline
from frazil.declaration.catalogs import GlueCatalog, LocalCatalog, RestCatalog
from frazil.doctor.check_result import Check, Step
from frazil.doctor.machine import secret_names
from frazil.errors import FrazilError
from frazil.lake.read.stored_tables import Lake

CATALOG, WAREHOUSE = "catalog", "warehouse"
CONTENT = b"frazil doctor writes and deletes this file"


def steps(
    pipelines: Sequence[Pipeline], environment: Environment, secrets: Secrets, lake: Lake, new_id: Callable[[], str]
) -> list[Step]:
    """Return the steps of the catalog and of the warehouse."""
    of_catalog = secret_names((environment.catalog, environment.object_store))
    return [
        Step(name=CATALOG, work=partial(_catalog, pipelines, environment, lake), after=of_catalog),
        Step(
            name=WAREHOUSE, work=partial(_warehouse, pipelines, environment, secrets, lake, new_id()), after=(CATALOG,)
        ),
    ]


def _catalog(pipelines: Sequence[Pipeline], environment: Environment, lake: Lake) -> Check:
    """Check that the catalog answers. Raises `CatalogUnavailable`."""
    catalog = environment.catalog
    if isinstance(catalog, LocalCatalog) and not Path(catalog.path).exists():
        place = _nearest(Path(catalog.path).parent)
        if not os.access(place, os.W_OK):
            return Check.failed(CATALOG, f"{place} is not writable", "Name another catalog.path in the environment")
        return Check.ok(CATALOG, f"{catalog.kind}, the first run creates {catalog.path}")
    namespaces = dict.fromkeys(pipeline.table.namespace for pipeline in pipelines)
    missing = [name for name in namespaces if not lake.has_namespace(name)]
    there = [name for name in namespaces if name not in missing]
    notes = [f"namespace {', '.join(there)}"] if there else []
    notes += [f"the first run creates namespace {', '.join(missing)}"] if missing else []
    return Check.ok(CATALOG, ", ".join([f"{catalog.kind} answers", *notes]))


def _warehouse(
    pipelines: Sequence[Pipeline], environment: Environment, secrets: Secrets, lake: Lake, unique: str
) -> Check:
    """Check a write and a delete below the location of tables. Raises `CatalogUnavailable`, `ObjectStoreUnavailable`."""
    place = location(pipelines, environment, lake)
    if place is None:
        return Check.skipped(WAREHOUSE, "the catalog names the location of tables, and there is no table yet")
    address = urlsplit(place)
    name = f".frazil-doctor-{unique}"
    if address.scheme in ("", "file"):
        return _in_folder(Path(unquote(address.path)), name)
    patience = {"connect_seconds": 1, "answer_seconds": 1.2, "attempts": 1}
    store = ObjectStore.of(environment, secrets, address.netloc, **patience)
    return in_bucket(store, f"{address.path.strip('/')}/{name}".lstrip("/"))


def location(pipelines: Sequence[Pipeline], environment: Environment, lake: Lake) -> str | None:
    """Return where tables keep their files; of a REST catalog that of the first table, None without a table."""
    match environment.catalog:
        case LocalCatalog(warehouse=warehouse) | GlueCatalog(warehouse=warehouse):
            return warehouse
        case RestCatalog(data_location=str(data_location)):
            return data_location
        case _:
            tables = (lake.table(pipeline.table.identifier) for pipeline in pipelines)
            return next((table.location for table in tables if table is not None), None)


def in_bucket(store: ObjectStore, key: str) -> Check:
    """Write and delete an object. It is deleted too if the write has no answer. Raises `ObjectStoreUnavailable`."""
    place = f"s3://{store.bucket}/{key.rpartition('/')[0]}"
    try:
        store.put_once(key, CONTENT)
    except FrazilError:
        with suppress(FrazilError):
            store.delete(key)
        raise
    try:
        store.delete(key)
    except FrazilError as error:
        what = f"s3://{store.bucket}/{key} was written, and not deleted: {error.what}"
        return Check.failed(WAREHOUSE, what, "Allow s3:DeleteObject to our role, and delete the object")
    return Check.ok(WAREHOUSE, f"wrote and deleted an object in {place}")


def _in_folder(folder: Path, name: str) -> Check:
    """Write and delete a file in the folder, or in the nearest one that exists."""
    place = _nearest(folder)
    try:
        (place / name).write_bytes(CONTENT)
    except OSError as error:
        what = f"no file can be written in {place} ({error.strerror})"
        return Check.failed(WAREHOUSE, what, "Change the folder's rights, or name another catalog.warehouse")
    finally:
        (place / name).unlink(missing_ok=True)
    return Check.ok(WAREHOUSE, f"wrote and deleted a file in {place}")


def _nearest(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    return next((one for one in (folder, *folder.parents) if one.exists()), folder)
