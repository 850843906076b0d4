"""The subjects of the schema registry that the jobs of pipelines read."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.declaration import Pipeline, SubjectStrategy


def subjects(pipelines: Sequence[Pipeline]) -> list[str]:
    """Return the patterns of the subjects whose schemas pipelines read; `*` if a subject depends on a record's name."""
    wanted: set[str] = set()
    for pipeline in pipelines:
        topic = pipeline.topic
        if topic.needs_key_registry:
            wanted.add(f"{topic.name}-key")
        if topic.needs_registry:
            by_record = topic.subject_strategy is not SubjectStrategy.TOPIC
            wanted.add("*" if by_record else f"{topic.name}-value")
    return ["*"] if "*" in wanted else sorted(wanted)
