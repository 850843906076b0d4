"""What the jobs' account may read at Confluent: the pipelines' topics, and the schemas of their subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frazil.declaration import Pipeline
from infra.confluent.resource import Declared
from infra.kafka_access import KafkaAccess
from infra.kafka_topic import let_join_groups, let_read
from infra.service_account import Account
from stacks.awaited_bindings import PREFIX, READ, bind_each
from stacks.registry_subjects import patterns, subjects


def let_read_topics(
    reader: Account, pipelines: Sequence[Pipeline], kafka: KafkaAccess, made: Mapping[str, tuple[Declared, ...]]
) -> None:
    """Let an account read topics: one ACL a topic, and one for all consumer groups. `made`: the topics of this stack."""
    for topic in topics_of(pipelines):
        let_read(
            reader,
            f"topic-{topic}-read",
            topic=topic,
            principal=reader.principal,
            kafka=kafka,
            depends_on=made.get(topic, ()),
        )
    let_join_groups(reader, "groups", prefix=PREFIX, principal=reader.principal, kafka=kafka)


def let_read_topics_by_role(
    reader: Account, pipelines: Sequence[Pipeline], kafka_crn: str, prefixes: Sequence[str]
) -> None:
    """Let an account read topics by role bindings, which need no administrator of the cluster as ACLs do."""
    groups = reader.bind("groups", READ, f"{kafka_crn}/group={PREFIX}*", is_awaited=False)
    bind_each(reader, "topic", READ, kafka_crn, patterns(topics_of(pipelines), prefixes), also=[groups])


def let_read_schemas(
    reader: Account, pipelines: Sequence[Pipeline], registry_crn: str, prefixes: Sequence[str]
) -> list[Declared]:
    """Let an account read schemas: one binding for each subject or prefix. Return what must exist until all are in effect."""
    return bind_each(reader, "subject", READ, registry_crn, subjects(pipelines, prefixes))


def topics_of(pipelines: Sequence[Pipeline]) -> list[str]:
    """Return the topics of pipelines, each once."""
    return list(dict.fromkeys(pipeline.topic.name for pipeline in pipelines))
