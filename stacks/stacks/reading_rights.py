"""The rights of the jobs' account at Confluent: to read the pipelines' topics, and the schemas of their subjects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from frazil.declaration import Pipeline, SubjectStrategy, TopicPattern, digest
from infra.confluent.kafka_topic import Access, let_read
from infra.confluent.resource import Declared
from infra.confluent.service_account import Account

READ = "DeveloperRead"
OWN = "ResourceOwner"
PREFIX = "frazil-"
"""The prefix of Frazil's own consumer groups, and of objects that do not exist."""


def bind_each(
    account: Account, kind: str, role: str, crn: str, names: Sequence[str], *, also: Sequence[Declared] = ()
) -> list[Declared]:
    """Give an account a role on each object of a kind, `topic` or `subject`, whose CRNs begin with `crn`.

    Return what must exist until all bindings and those of `also` are in effect.
    """
    if not names:
        return []
    bound = [account.bind(f"{kind}-{name}", role, f"{crn}/{kind}={name}", is_awaited=False) for name in names]
    named = digest("\n".join(names).encode())[:16]
    awaited = account.bind(
        f"{kind}s-in-effect", READ, f"{crn}/{kind}={PREFIX}waited-{named}", depends_on=[*bound, *also]
    )
    return [awaited]


ALL = "*"


def subjects(
    pipelines: Sequence[Pipeline], prefixes: Sequence[str] = (), matching: Sequence[TopicPattern] = ()
) -> list[str]:
    """Return the patterns of the subjects whose schemas pipelines read; `*` if a subject depends on a record's name.

    A subject that begins with one of `prefixes` is in the pattern of that prefix, `payments.*`. Those of the topics of a pattern
    are in that of its prefix.
    """
    wanted = patterns((name for pipeline in pipelines for name in _names(pipeline)), prefixes)
    shared = {pattern.prefix: {*_names(pattern.pipeline)} for pattern in matching}
    if any(ALL in names for names in shared.values()):
        return [ALL]
    wanted = sorted({*wanted, *beginnings([prefix for prefix, names in shared.items() if names], prefixes)})
    return [ALL] if ALL in wanted else wanted


def patterns(names: Iterable[str], prefixes: Sequence[str]) -> list[str]:
    """Return the names, sorted; a name that begins with one of `prefixes` is in the pattern of that prefix."""
    begins = {name: [prefix for prefix in prefixes if name.startswith(prefix)] for name in names}
    return sorted({f"{min(found, key=len)}*" if found else name for name, found in begins.items()})


def beginnings(own: Sequence[str], prefixes: Sequence[str]) -> list[str]:
    """Return the patterns of the prefixes of topic patterns, in as few as they and `prefixes` allow."""
    return patterns(own, [*prefixes, *own])


def _names(pipeline: Pipeline) -> Iterator[str]:
    topic = pipeline.topic
    if topic.key.needs_registry:
        yield f"{topic.name}-key"
    if topic.value.needs_registry:
        by_record = topic.value.subject_strategy is not SubjectStrategy.TOPIC
        yield ALL if by_record else f"{topic.name}-value"


def let_read_topics(
    reader: Account,
    pipelines: Sequence[Pipeline],
    matching: Sequence[TopicPattern],
    kafka: Access,
    made: Mapping[str, tuple[Declared, ...]],
) -> None:
    """Let an account read topics: one ACL a topic or a pattern's prefix, and one for all consumer groups.

    `made`: the topics of this stack.
    """
    for topic in topics_of(pipelines):
        let_read(
            reader,
            f"topic-{topic}-read",
            topic=topic,
            principal=reader.principal,
            kafka=kafka,
            depends_on=made.get(topic, ()),
        )
    for begins in beginnings(prefixes_of(matching), ()):
        prefix = begins.removesuffix("*")
        let_read(reader, f"topics-{prefix}-read", topics=prefix, principal=reader.principal, kafka=kafka)
    let_read(reader, "groups", groups=PREFIX, principal=reader.principal, kafka=kafka)


def let_read_topics_by_role(
    reader: Account,
    pipelines: Sequence[Pipeline],
    matching: Sequence[TopicPattern],
    kafka_crn: str,
    prefixes: Sequence[str],
) -> None:
    """Let an account read topics by role bindings, which need no administrator of the cluster as ACLs do."""
    groups = reader.bind("groups", READ, f"{kafka_crn}/group={PREFIX}*", is_awaited=False)
    bind_each(reader, "topic", READ, kafka_crn, readable(pipelines, matching, prefixes), also=[groups])


def readable(pipelines: Sequence[Pipeline], matching: Sequence[TopicPattern], prefixes: Sequence[str]) -> list[str]:
    """Return the patterns of the topics of pipelines and patterns for role bindings, as `patterns` does."""
    return sorted({*patterns(topics_of(pipelines), prefixes), *beginnings(prefixes_of(matching), prefixes)})


def prefixes_of(matching: Iterable[TopicPattern]) -> list[str]:
    """Return the prefixes of patterns of topics, each once."""
    return list(dict.fromkeys(pattern.prefix for pattern in matching))


def topics_of(pipelines: Sequence[Pipeline]) -> list[str]:
    """Return the topics of pipelines, each once."""
    return list(dict.fromkeys(pipeline.topic.name for pipeline in pipelines))
