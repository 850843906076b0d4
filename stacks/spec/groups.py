"""The groups of pipelines, each of which has jobs of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from frazil.declaration import Pipeline, Spark, TopicPattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The pipelines and patterns of topics that one pair of jobs lands. `name` is None for those without a group.

    In the namespaces of `shared`, other groups have tables too.
    """

    name: str | None
    pipelines: Sequence[Pipeline]
    shared: Collection[str] = ()
    patterns: Sequence[TopicPattern] = ()

    @property
    def examples(self) -> list[Pipeline]:
        """The pipelines, and that which the topics of each pattern share."""
        return with_shared(self.pipelines, self.patterns)


def groups_of(pipelines: Sequence[Pipeline], patterns: Sequence[TopicPattern] = ()) -> tuple[Group, ...]:
    """Return the groups that jobs land: that without a name first, then by name.

    A pattern excludes the topics that other groups declare.
    """
    landed = [pipeline for pipeline in pipelines if isinstance(pipeline.engine, Spark)]
    names: dict[str, set[str | None]] = {}
    every = with_shared(landed, patterns)
    for pipeline in every:
        names.setdefault(pipeline.table.namespace, set()).add(pipeline.group)
    shared = {namespace for namespace, groups in names.items() if len(groups) > 1}
    found = sorted({pipeline.group for pipeline in every}, key=lambda name: name or "")
    return tuple(
        Group(
            name=name,
            pipelines=[one for one in landed if one.group == name],
            shared=shared,
            patterns=[
                _without(pattern, [one.topic.name for one in pipelines if is_of_another_job(one, name)])
                for pattern in patterns
                if pattern.pipeline.group == name
            ],
        )
        for name in found
    )


def with_shared(pipelines: Iterable[Pipeline], patterns: Iterable[TopicPattern]) -> list[Pipeline]:
    """Return the pipelines, and that which the topics of each pattern share."""
    return [*pipelines, *(pattern.pipeline for pattern in patterns)]


def is_of_another_job(pipeline: Pipeline, group: str | None) -> bool:
    """Return whether another job than that of a group lands a pipeline, or Tableflow."""
    return not isinstance(pipeline.engine, Spark) or pipeline.group != group


def _without(pattern: TopicPattern, topics: Iterable[str]) -> TopicPattern:
    """Return a pattern that does not match these topics."""
    others = sorted({topic for topic in topics if pattern.matches(topic)})
    if not others:
        return pattern
    return replace(pattern, exclude="|".join(filter(None, (pattern.exclude, *map(re.escape, others)))))
