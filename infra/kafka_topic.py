"""A Kafka topic, and who may read it."""

from __future__ import annotations

from infra.confluent.kafka_resources import KafkaAcl, KafkaTopic, Schema
from infra.confluent.resource import Declared
from infra.kafka_access import KafkaAccess, RegistryAccess
from infra.managed_topic import ManagedTopic, ValueSchema
from infra.protection import Protection
from infra.tf import Construct


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
    topic: str,
    principal: str,
    kafka: KafkaAccess,
    depends_on: tuple[Declared, ...] = (),
) -> Declared:
    """Let a principal read a topic, and nothing else. In Kafka, READ includes DESCRIBE."""
    return _read("TOPIC", topic, "LITERAL", principal, kafka).declare(scope, name, depends_on=depends_on)


def let_join_groups(scope: Construct, name: str, *, prefix: str, principal: str, kafka: KafkaAccess) -> Declared:
    """Let a principal use the consumer groups whose names have a prefix."""
    return _read("GROUP", prefix, "PREFIXED", principal, kafka).declare(scope, name)


def _read(kind: str, resource: str, pattern: str, principal: str, kafka: KafkaAccess) -> KafkaAcl:
    return KafkaAcl(
        kafka_cluster=kafka.cluster,
        resource_type=kind,
        resource_name=resource,
        pattern_type=pattern,
        principal=principal,
        operation="READ",
        rest_endpoint=kafka.rest_endpoint,
        credentials=kafka.credentials,
    )
