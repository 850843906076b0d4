"""A Kafka topic with its schema, and who may read it: the resources of Confluent, and the construct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from frazil.declaration.checks.constraints import between, matching
from infra.confluent.checks import member_of
from infra.confluent.managed_topic import ManagedTopic, ValueSchema
from infra.confluent.resource import Arguments, Credentials, Declared, Id
from infra.protection import Protection
from infra.tf import Construct


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


_HTTP = matching("https?://.+", "an address", "Write it like https://host:443")
_TOPIC = matching(r"[a-zA-Z0-9._\-]{1,249}", "a topic's name", "Use 1 to 249 of a-z, A-Z, 0-9, . _ and -")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopic(Arguments):
    """A topic. Partitions can be added, never taken away: that replaces the topic, with all that is in it."""

    TYPE: ClassVar[str] = "confluent_kafka_topic"

    kafka_cluster: Id
    topic_name: Annotated[str, _TOPIC]
    partitions_count: Annotated[int, between(1, 4096)]
    config: Mapping[str, str] | None = None
    rest_endpoint: Annotated[str, _HTTP]
    credentials: Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaAcl(Arguments):
    """One permission of a principal on a topic, a group or the cluster."""

    TYPE: ClassVar[str] = "confluent_kafka_acl"

    kafka_cluster: Id
    resource_type: Annotated[str, member_of("TOPIC", "GROUP", "CLUSTER")]
    resource_name: str
    pattern_type: Annotated[str, member_of("LITERAL", "PREFIXED")] = "LITERAL"
    principal: Annotated[str, matching("User:.+", "a principal", "Write it like User:sa-abc123")]
    host: str = "*"
    operation: Annotated[str, member_of("READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS")]
    permission: Annotated[str, member_of("ALLOW", "DENY")] = "ALLOW"
    rest_endpoint: Annotated[str, _HTTP]
    credentials: Credentials


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema(Arguments):
    """A version of a subject. Terraform's plan asks the registry whether a change of it is compatible."""

    TYPE: ClassVar[str] = "confluent_schema"
    VERBATIM = frozenset({"schema"})

    schema_registry_cluster: Id
    subject_name: str
    format: Annotated[str, member_of("AVRO", "JSON", "PROTOBUF")]
    schema: str
    rest_endpoint: Annotated[str, _HTTP]
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
