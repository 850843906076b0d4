"""Environments, clusters, service accounts, their roles and API keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from infra.confluent.resource import Arguments, Block, Credentials, Declared, Empty, Id


@dataclass(frozen=True, slots=True, kw_only=True)
class Governance(Block):
    """The package of the environment's schema registry."""

    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment(Arguments):
    """A Confluent environment: clusters and one schema registry. Computed: `resource_name` (its CRN)."""

    TYPE: ClassVar[str] = "confluent_environment"

    display_name: str
    stream_governance: Governance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentById(Arguments):
    """An environment that exists."""

    TYPE: ClassVar[str] = "confluent_environment"

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaCluster(Arguments):
    """A Kafka cluster. Computed: `bootstrap_endpoint`, `rest_endpoint`, `rbac_crn`."""

    TYPE: ClassVar[str] = "confluent_kafka_cluster"

    display_name: str
    availability: str
    cloud: str = "AWS"
    region: str
    environment: Id
    basic: Empty | None = None
    standard: Empty | None = None
    deletion_protection: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaClusterById(Arguments):
    """A cluster that exists."""

    TYPE: ClassVar[str] = "confluent_kafka_cluster"

    id: str
    environment: Id


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistry(Arguments):
    """The registry of an environment; Confluent makes it with the first cluster. Computed: `rest_endpoint`, `resource_name`."""

    TYPE: ClassVar[str] = "confluent_schema_registry_cluster"

    environment: Id


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount(Arguments):
    """An account for a program. Its name is unique in the organization."""

    TYPE: ClassVar[str] = "confluent_service_account"

    display_name: str
    description: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleBinding(Arguments):
    """A role of a principal, on a resource by its CRN. A `*` at the end of the CRN matches each resource with the prefix.

    After the creation, the provider waits 90 s until the role is in effect, unless `disable_wait_for_ready` is true. A change
    of that argument updates the binding in place.
    """

    TYPE: ClassVar[str] = "confluent_role_binding"

    principal: str
    role_name: str
    crn_pattern: str
    disable_wait_for_ready: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner(Block):
    """Whose API key it is."""

    id: str
    kind: str = "ServiceAccount"
    api_version: str = "iam/v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedResource(Block):
    """The object that an API key opens."""

    id: str
    kind: str
    api_version: str
    environment: Id | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey(Arguments):
    """An API key. Computed: `secret`, which is in Terraform's state in the clear: the state is a secret."""

    TYPE: ClassVar[str] = "confluent_api_key"

    display_name: str
    description: str | None = None
    owner: Owner
    managed_resource: ManagedResource


def credentials(key: Declared) -> Credentials:
    """Return an API key, as other resources take it."""
    return Credentials(key=key.id, secret=key.computed("secret"))
