"""What the jobs' account may read at Confluent: the pipelines' topics, and the schemas of their subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frazil.declaration import Pipeline, digest
from infra.confluent.cloud import RoleBinding
from infra.confluent.resource import Declared
from infra.kafka_access import KafkaAccess
from infra.kafka_topic import let_join_groups, let_read
from infra.service_account import Account
from infra.tf import unique_name
from stacks.registry_subjects import subjects

GROUPS = "frazil-"
"""The prefix of the jobs' consumer groups."""
_ROLE = "DeveloperRead"


def let_read_topics(
    reader: Account, pipelines: Sequence[Pipeline], kafka: KafkaAccess, made: Mapping[str, tuple[Declared, ...]]
) -> None:
    """Let an account read topics: one ACL a topic, and one for all consumer groups. `made`: the topics of this stack."""
    for topic in dict.fromkeys(pipeline.topic.name for pipeline in pipelines):
        let_read(
            reader,
            f"topic-{topic}-read",
            topic=topic,
            principal=reader.principal,
            kafka=kafka,
            depends_on=made.get(topic, ()),
        )
    let_join_groups(reader, "groups", prefix=GROUPS, principal=reader.principal, kafka=kafka)


def let_read_schemas(
    reader: Account, pipelines: Sequence[Pipeline], registry_crn: str, prefixes: Sequence[str]
) -> list[Declared]:
    """Let an account read schemas: one binding for each subject or prefix. Return what must exist until all are in effect.

    The provider waits 90 s after each binding. So these bindings do not wait, and one more does, after all of them. Its subject
    does not exist, so it opens nothing. Another set of bindings replaces it.
    """
    wanted = subjects(pipelines, prefixes)
    if not wanted:
        return []
    bound = {
        subject: reader.bind(f"subject-{subject}", _ROLE, f"{registry_crn}/subject={subject}", is_awaited=False)
        for subject in wanted
    }
    for number, subject in enumerate(subjects(pipelines)):  # 0.1.0 numbered them, in this order
        if subject in bound:
            bound[subject].move_from_id(f"{RoleBinding.TYPE}.{unique_name('reader', f'subject-{number}')}")
    named = digest("\n".join(wanted).encode())[:16]
    crn = f"{registry_crn}/subject={GROUPS}waited-{named}"
    return [reader.bind("subjects-in-effect", _ROLE, crn, depends_on=list(bound.values()))]
