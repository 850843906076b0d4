"""A Kafka topic with its schema, and who may read it: the resources of Confluent, and the construct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from infra.confluent.managed_topic import ManagedTopic, ValueSchema
from infra.confluent.resource import Arguments, Credentials, Declared, Id
from infra.protection import Protection
from infra.tf import Construct


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAccess:
    """The REST interface of a cluster, and the key by which topics and permissions are made."""

    cluster: Id
    rest_endpoint: str
    credentials: Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryAccess:
    """The address of a schema registry, and the key by which schemas are registered."""

    registry: Id
    rest_endpoint: str
    credentials: Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopic(Arguments):
    """A topic. Partitions can be added, never taken away: that replaces the topic, with all that is in it."""

    TYPE: ClassVar[str] = "confluent_kafka_topic"

    kafka_cluster: Id
    topic_name: str
    partitions_count: int
    config: Mapping[str, str] | None = None
    rest_endpoint: str
    credentials: Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAcl(Arguments):
    """One permission of a principal on a topic, a group or the cluster."""

    TYPE: ClassVar[str] = "confluent_kafka_acl"

    kafka_cluster: Id
    resource_type: str
    resource_name: str
    pattern_type: str = "LITERAL"
    principal: str
    host: str = "*"
    operation: str
    permission: str = "ALLOW"
    rest_endpoint: str
    credentials: Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema(Arguments):
    """A version of a subject. Terraform's plan asks the registry whether a change of it is compatible."""

    TYPE: ClassVar[str] = "confluent_schema"

    schema_registry_cluster: Id
    subject_name: str
    format: str
    schema: str
    rest_endpoint: str
    credentials: Credentials


class Topic(Construct):
    """A topic on a cluster; what it holds is data."""

    def __init__(
        self, scope: Construct, name: str, *, own: ManagedTopic, kafka: KafkaAccess, protection: Protection
    ) -> None:
        super().__init__(scope, name)
        self.name, self._protection = own.name, protection
        self.declared = KafkaTopic(
            kafka_cluster=kafka.cluster,
            topic_name=own.name,
            partitions_count=own.partitions,
            config=own.settings,
            rest_endpoint=kafka.rest_endpoint,
            credentials=kafka.credentials,
        ).declare(self, "topic", is_kept=protection.is_kept)

    def value_schema(self, schema: ValueSchema, text: str, registry: RegistryAccess) -> Declared:
        """Register the schema of its values, under the topic's subject."""
        return Schema(
            schema_registry_cluster=registry.registry,
            subject_name=f"{self.name}-value",
            format=schema.format.value,
            schema=text,
            rest_endpoint=registry.rest_endpoint,
            credentials=registry.credentials,
        ).declare(self, "schema", is_kept=self._protection.is_kept)


def let_read(
    scope: Construct,
    name: str,
    *,
    principal: str,
    kafka: KafkaAccess,
    topic: str = "",
    groups: str = "",
    depends_on: tuple[Declared, ...] = (),
) -> Declared:
    """Let a principal read a topic, or use the consumer groups whose names begin so. In Kafka, READ includes DESCRIBE."""
    return KafkaAcl(
        kafka_cluster=kafka.cluster,
        resource_type="TOPIC" if topic else "GROUP",
        resource_name=topic or groups,
        pattern_type="LITERAL" if topic else "PREFIXED",
        principal=principal,
        operation="READ",
        rest_endpoint=kafka.rest_endpoint,
        credentials=kafka.credentials,
    ).declare(scope, name, depends_on=depends_on)
