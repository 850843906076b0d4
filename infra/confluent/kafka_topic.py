"""A Kafka topic with its schema, and who may read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from infra.confluent.managed_topic import ManagedTopic, ValueSchema
from infra.confluent.resource import Declared
from infra.protection import Protection
from infra.tf import Construct

Access = Mapping[str, Any]
"""The arguments that name a cluster or a registry, its REST interface, and the key by which Terraform asks it."""


class Topic(Construct):
    """A topic on a cluster; what it holds is data. Partitions can be added, never taken away: that replaces the topic."""

    def __init__(
        self, scope: Construct, name: str, *, own: ManagedTopic, kafka: Access, protection: Protection
    ) -> None:
        super().__init__(scope, name)
        self.name, self._protection = own.name, protection
        self.declared = Declared(
            self,
            "topic",
            "confluent_kafka_topic",
            is_kept=protection.is_kept,
            topic_name=own.name,
            partitions_count=own.partitions,
            config=own.settings,
            **kafka,
        )

    def value_schema(self, schema: ValueSchema, text: str, registry: Access) -> Declared:
        """Register the schema of its values, under the topic's subject. The plan asks the registry whether it is compatible."""
        return Declared(
            self,
            "schema",
            "confluent_schema",
            is_kept=self._protection.is_kept,
            subject_name=f"{self.name}-value",
            format=schema.format.value,
            schema=text,
            **registry,
        )


def let_read(
    scope: Construct,
    name: str,
    *,
    principal: str,
    kafka: Access,
    topic: str = "",
    topics: str = "",
    groups: str = "",
    depends_on: tuple[Declared, ...] = (),
) -> Declared:
    """Let a principal read a topic, or the `topics` or use the consumer groups whose names begin so.

    In Kafka, READ includes DESCRIBE.
    """
    return Declared(
        scope,
        name,
        "confluent_kafka_acl",
        depends_on=depends_on,
        resource_type="GROUP" if groups else "TOPIC",
        resource_name=topic or topics or groups,
        pattern_type="LITERAL" if topic else "PREFIXED",
        principal=principal,
        host="*",
        operation="READ",
        permission="ALLOW",
        **kafka,
    )
