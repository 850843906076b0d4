"""The environments of the local services: one broker and registry, and two lakes."""

from __future__ import annotations

from pathlib import Path

from frazil.declaration.catalogs import LocalCatalog, ObjectStore, RestAuth, RestCatalog
from frazil.declaration.environment import Environment, Kafka, Registry
from frazil.local import seaweedfs
from frazil.local.credentials import KeyFiles


def file_lake(home: Path, *, bootstrap: str, registry_url: str | None) -> Environment:
    """Return the environment `local`: tables in a folder of `.frazil`, with a SQLite file as catalog."""
    lake = home / "lake"
    (lake / "warehouse").mkdir(parents=True, exist_ok=True)
    return Environment(
        name="local",
        kafka=Kafka(bootstrap=bootstrap),
        registry=Registry(url=registry_url) if registry_url else None,
        catalog=LocalCatalog(path=str(lake / "catalog.db"), warehouse=(lake / "warehouse").as_uri()),
    )


def rest_lake(home: Path, *, bootstrap: str, registry_url: str | None, s3: str, catalog: str) -> Environment:
    """Return the environment `rest`: tables in the object store, with its REST catalog and signed requests."""
    return Environment(
        name="rest",
        kafka=Kafka(bootstrap=bootstrap),
        registry=Registry(url=registry_url) if registry_url else None,
        catalog=RestCatalog(
            uri=catalog,
            warehouse=seaweedfs.WAREHOUSE,
            auth=RestAuth.SIGV4,
            signing_name=seaweedfs.SIGNING_NAME,
            region=seaweedfs.REGION,
            data_location=f"s3://{seaweedfs.BUCKET}/data",
        ),
        object_store=_store(s3, seaweedfs.REGION, seaweedfs.key_files(home)),
    )


def _store(endpoint: str, region: str, keys: KeyFiles) -> ObjectStore:
    key_id, key = keys.references()
    return ObjectStore(endpoint=endpoint, path_style=True, region=region, access_key_id=key_id, secret_access_key=key)
