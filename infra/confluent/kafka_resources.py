"""Topics, who may read them, and the schemas of their records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from frazil.declaration.checks.constraints import between, matching
from infra.confluent.checks import member_of
from infra.confluent.resource import Arguments, Credentials, Id

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
