"""Tableflow, by which Confluent lands a topic as an Iceberg table in the account's bucket and role, and publishes it in Glue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from infra.confluent.resource import Arguments, Block, Credentials, Id
from infra.iam_role import ExecutionRole
from infra.names import Names
from infra.protection import Protection
from infra.tf import Construct


class ConfluentRole(Construct):
    """Integration and role: one object, because one name is both the role's and in the integration's ARN."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        names: Names,
        what: str,
        environment_id: str,
        trust: Callable[[str, str], Mapping[str, Any]],
        policy: Mapping[str, Any],
        protection: Protection,
    ) -> None:
        """`trust` makes the role's trust policy of Confluent's role ARN and the external id."""
        super().__init__(scope, name)
        integration = ProviderIntegration(
            display_name=names.role(what),
            environment=Id(id=environment_id),
            aws=CustomerRole(customer_role_arn=names.role_arn(what)),
        ).declare(self, "integration", is_kept=protection.is_kept)
        role = ExecutionRole(
            self,
            "role",
            role=names.role(what),
            path=names.path,
            boundary_arn=names.boundary_arn,
            trust=trust(integration.computed("aws[0].iam_role_arn"), integration.computed("aws[0].external_id")),
            policy=policy,
            description="Confluent's Tableflow writes tables and registers them in Glue.",
        )
        self.id = integration.id
        self.ready: tuple[Construct, ...] = (integration, *role.ready)
        """What a table must wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerRole(Block):
    """The role in the account that Confluent assumes. It need not exist yet."""

    customer_role_arn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderIntegration(Arguments):
    """Confluent's own role and the external id that the account's role must require of it. Computed: `aws[0].iam_role_arn` and
    `aws[0].external_id`. Any change replaces it, makes another external id, and so changes that role's trust."""

    TYPE: ClassVar[str] = "confluent_provider_integration"

    display_name: str
    environment: Id
    aws: CustomerRole


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBucket(Block):
    """A bucket of the account, in the cluster's region. Empty before the first topic."""

    bucket_name: str
    provider_integration_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorHandling(Block):
    """The treatment of a record that cannot be decoded; `log_target` is the topic of the rejected ones."""

    mode: str
    log_target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableflowTopic(Arguments):
    """A topic as a table. `display_name` is the topic's name. It must depend on topic, schema, role and the role's
    rights: Confluent looks at all of them when it is made. Computed: `table_path`."""

    TYPE: ClassVar[str] = "confluent_tableflow_topic"

    display_name: str
    kafka_cluster: Id
    environment: Id
    byob_aws: OwnBucket
    table_formats: tuple[str, ...] = ("ICEBERG",)
    retention_ms: str = "604800000"
    """The time for which snapshots are kept: seven days."""
    error_handling: ErrorHandling | None = None
    credentials: Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Glue(Block):
    """The account's Glue catalog; `custom_database` replaces the cluster's id as the database's name."""

    provider_integration_id: str
    custom_database: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogIntegration(Arguments):
    """The catalog in which Tableflow publishes a cluster's tables; one a cluster and kind of catalog."""

    TYPE: ClassVar[str] = "confluent_catalog_integration"

    display_name: str
    kafka_cluster: Id
    environment: Id
    aws_glue: Glue
    credentials: Credentials
