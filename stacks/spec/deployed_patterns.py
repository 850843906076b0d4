"""The rules for patterns of topics in a deployment, whose rights are granted before the topics exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from frazil.declaration import Pipeline, Problem, TopicPattern
from stacks.spec.deployments import AlarmsOf, Deployment
from stacks.spec.groups import is_of_another_job


def pattern_problems(
    deployment: Deployment, pipelines: Sequence[Pipeline], patterns: Sequence[TopicPattern]
) -> Iterator[Problem]:
    """Yield the problems of patterns that cannot be deployed."""
    for index, pattern in enumerate(patterns):
        path = f"patterns[{index}]"
        if not pattern.prefix:
            what = f"{pattern.match} begins with no literal text, and rights on topics are granted by prefix"
            yield Problem(f"{path}.match", what, r"Begin it with text, as in 'shop\..*'")
        for other_index, other in enumerate(patterns[:index]):
            if pattern.pipeline.group != other.pipeline.group and _overlap(pattern.prefix, other.prefix):
                what = f"patterns[{other_index}] begins with {other.prefix}, and another job lands its topics"
                yield Problem(f"{path}.match", what, "Put both patterns into one group, or choose other prefixes")
        yield from _namespace_problems(path, deployment, pattern, pipelines, patterns)
    if patterns and deployment.monitoring.alarms is AlarmsOf.PIPELINE:
        what = "alarms of pipelines need their names, and a pattern has new ones"
        yield Problem("deployment.monitoring.alarms", what, "Write alarms=AlarmsOf.GROUP")


def _overlap(one: str, other: str) -> bool:
    """Return whether one prefix begins with the other. An empty one is reported by itself."""
    return bool(one and other) and (one.startswith(other) or other.startswith(one))


def _namespace_problems(
    path: str,
    deployment: Deployment,
    pattern: TopicPattern,
    pipelines: Sequence[Pipeline],
    patterns: Sequence[TopicPattern],
) -> Iterator[Problem]:
    """Yield the reasons why a job may not have rights on a complete namespace."""
    namespace, group = pattern.namespace, pattern.pipeline.group
    others = [*pipelines, *(other.pipeline for other in patterns)]
    if any(other.table.namespace == namespace and is_of_another_job(other, group) for other in others):
        what = (
            f"another job has tables in {namespace}, and rights on the tables of a pattern are those of its namespace"
        )
        yield Problem(f"{path}.table", what, "Choose a namespace that no other group uses")
    if namespace in deployment.existing.databases:
        what = f"the database {namespace} exists already, and policies name each table in it"
        yield Problem(f"{path}.table", what, "Choose a namespace whose database Frazil creates")
