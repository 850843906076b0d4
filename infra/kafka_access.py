"""A cluster's address and the key that works on it, handed to what is made on the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from infra.confluent.resource import Credentials, Id


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """Where a cluster's REST interface is, and with whose key topics and permissions are made."""

    cluster_id: str
    rest_endpoint: str
    credentials: Credentials

    @property
    def cluster(self) -> Id:
        """The cluster, as other resources name it."""
        return Id(id=self.cluster_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAccess:
    """Where a schema registry is, and with whose key schemas are registered."""

    registry_id: str
    rest_endpoint: str
    credentials: Credentials

    @property
    def registry(self) -> Id:
        """The registry, as other resources name it."""
        return Id(id=self.registry_id)
