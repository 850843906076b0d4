"""The rights of the jobs' account at Confluent: to read the pipelines' topics, and the schemas of their subjects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from frazil.declaration import Pipeline, SubjectStrategy, digest
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


def subjects(pipelines: Sequence[Pipeline], prefixes: Sequence[str] = ()) -> list[str]:
    """Return the patterns of the subjects whose schemas pipelines read; `*` if a subject depends on a record's name.

    A subject that begins with one of `prefixes` is in the pattern of that prefix, `payments.*`.
    """
    wanted = patterns((name for pipeline in pipelines for name in _names(pipeline)), prefixes)
    return [ALL] if ALL in wanted else wanted


def patterns(names: Iterable[str], prefixes: Sequence[str]) -> list[str]:
    """Return the names, sorted; a name that begins with one of `prefixes` is in the pattern of that prefix."""
    begins = {name: [prefix for prefix in prefixes if name.startswith(prefix)] for name in names}
    return sorted({f"{min(found, key=len)}*" if found else name for name, found in begins.items()})


def _names(pipeline: Pipeline) -> Iterator[str]:
    topic = pipeline.topic
    if topic.key.needs_registry:
        yield f"{topic.name}-key"
    if topic.value.needs_registry:
        by_record = topic.value.subject_strategy is not SubjectStrategy.TOPIC
        yield ALL if by_record else f"{topic.name}-value"


def let_read_topics(
    reader: Account, pipelines: Sequence[Pipeline], kafka: Access, made: Mapping[str, tuple[Declared, ...]]
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
    let_read(reader, "groups", groups=PREFIX, principal=reader.principal, kafka=kafka)


def let_read_topics_by_role(
    reader: Account, pipelines: Sequence[Pipeline], kafka_crn: str, prefixes: Sequence[str]
) -> None:
    """Let an account read topics by role bindings, which need no administrator of the cluster as ACLs do."""
    groups = reader.bind("groups", READ, f"{kafka_crn}/group={PREFIX}*", is_awaited=False)
    bind_each(reader, "topic", READ, kafka_crn, patterns(topics_of(pipelines), prefixes), also=[groups])


def topics_of(pipelines: Sequence[Pipeline]) -> list[str]:
    """Return the topics of pipelines, each once."""
    return list(dict.fromkeys(pipeline.topic.name for pipeline in pipelines))
