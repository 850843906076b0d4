"""The environments that a local world offers: one broker and registry, and two lakes to choose from."""

from __future__ import annotations

from pathlib import Path

from frazil.declaration.catalogs import LocalCatalog, ObjectStore, RestAuth, RestCatalog
from frazil.declaration.environment import Environment, Kafka, Registry
from frazil.declaration.secret import Secret
from frazil.local.object_store import REGION, SIGNING_NAME, WAREHOUSE, key_files


def file_lake(home: Path, *, bootstrap: str, registry_url: str | None) -> Environment:
    """The environment `local`: tables in a folder of `.frazil`, their catalog a SQLite file."""
    lake = home / "lake"
    (lake / "warehouse").mkdir(parents=True, exist_ok=True)
    return Environment(
        name="local",
        kafka=Kafka(bootstrap=bootstrap),
        registry=Registry(url=registry_url) if registry_url else None,
        catalog=LocalCatalog(path=str(lake / "catalog.db"), warehouse=(lake / "warehouse").as_uri()),
    )


def rest_lake(home: Path, *, bootstrap: str, registry_url: str | None, s3: str, catalog: str) -> Environment:
    """The environment `rest`: tables in the object store, by its REST catalog with signed requests."""
    keys = key_files(home)
    return Environment(
        name="rest",
        kafka=Kafka(bootstrap=bootstrap),
        registry=Registry(url=registry_url) if registry_url else None,
        catalog=RestCatalog(
            uri=catalog, warehouse=WAREHOUSE, auth=RestAuth.SIGV4, signing_name=SIGNING_NAME, region=REGION
        ),
        object_store=ObjectStore(
            endpoint=s3,
            path_style=True,
            region=REGION,
            access_key_id=Secret(file=str(keys.access_key_id)),
            secret_access_key=Secret(file=str(keys.secret_access_key)),
        ),
    )
