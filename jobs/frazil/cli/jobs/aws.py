"""The services that runs are controlled by, where an environment says they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, GlueCatalog
from frazil.errors import InvalidInput

if TYPE_CHECKING:
    from frazil.clients.deployed_resources import DeployedResources
    from frazil.clients.emr import Emr
    from frazil.clients.object_store import ObjectStore


def artifact_store(place: Environment, secrets: Secrets) -> ObjectStore:
    """Return the artifact bucket. Raises `InvalidInput` in an environment without one."""
    if place.artifact_bucket is None:
        do = "Only a deployed environment has; `frazil deploy fetch OUTPUTS` fetches its document"
        raise InvalidInput("it has no artifact_bucket", where=f"environment {place.name}", do=do)
    return bucket(place, secrets, place.artifact_bucket)


def declared_artifact_store(declared: Mapping[str, Any]) -> ObjectStore:
    """Return the artifact bucket of a declared deployment, with the credentials of the shell."""
    from frazil.clients.object_store import ObjectStore, s3_client

    return ObjectStore(s3_client(None), declared["artifact_bucket"])


def jobs_of(store: ObjectStore, job: str | None) -> tuple[str, ...]:
    """Return the job that is named, or all deployed ingest jobs; `ingest` if none is deployed yet."""
    from frazil.rollout.desired import INGEST
    from frazil.rollout.group_jobs import ingest_jobs

    return (job,) if job else ingest_jobs(store) or (INGEST,)


def bucket(place: Environment, secrets: Secrets, name: str) -> ObjectStore:
    """Return another bucket of the environment, like that of the logs."""
    from frazil.clients.object_store import ObjectStore

    return ObjectStore.of(place, secrets, name)


def is_local(place: Environment) -> bool:
    """Return whether its services are stand-ins on this machine."""
    endpoint = place.catalog.endpoint if isinstance(place.catalog, GlueCatalog) else None
    return endpoint is not None and urlsplit(endpoint).hostname in ("127.0.0.1", "localhost")


def emr(place: Environment, secrets: Secrets) -> Emr:
    """Return EMR Serverless, in the catalog's region; at the address of Glue if that has its own."""
    from frazil.clients.emr import Emr, emr_client
    from frazil.clients.object_store import store_keys

    region, endpoint = _region(place)
    return Emr(emr_client(region=region, endpoint=endpoint, keys=store_keys(place, secrets)))


def resources(place: Environment, secrets: Secrets) -> DeployedResources:
    """Return the environment's other services, at the same place."""
    from frazil.clients.aws_account import account_clients
    from frazil.clients.deployed_resources import DeployedResources
    from frazil.clients.object_store import store_keys

    region, endpoint = _region(place)
    client = account_clients(region, endpoint=endpoint, keys=store_keys(place, secrets))
    return DeployedResources(client, region=region, endpoint=endpoint)


def _region(place: Environment) -> tuple[str | None, str | None]:
    """Return the region of an environment, and the address of its services if they have one of their own."""
    glue = place.catalog if isinstance(place.catalog, GlueCatalog) else None
    store = place.object_store
    return (glue.region if glue else (store.region if store else None)), (glue.endpoint if glue else None)
