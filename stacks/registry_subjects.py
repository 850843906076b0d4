"""The subjects of the schema registry that the jobs of pipelines read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from frazil.declaration import Pipeline, SubjectStrategy

ALL = "*"


def subjects(pipelines: Sequence[Pipeline], prefixes: Sequence[str] = ()) -> list[str]:
    """Return the patterns of the subjects whose schemas pipelines read; `*` if a subject depends on a record's name.

    A subject that begins with one of `prefixes` is in the pattern of that prefix, `payments.*`.
    """
    wanted = patterns((name for pipeline in pipelines for name in _names(pipeline)), prefixes)
    return [ALL] if ALL in wanted else wanted


def patterns(names: Iterable[str], prefixes: Sequence[str]) -> list[str]:
    """Return the names, sorted; a name that begins with one of `prefixes` is in the pattern of that prefix."""
    return sorted({_pattern(name, prefixes) for name in names})


def _names(pipeline: Pipeline) -> Iterator[str]:
    topic = pipeline.topic
    if topic.needs_key_registry:
        yield f"{topic.name}-key"
    if topic.needs_registry:
        by_record = topic.subject_strategy is not SubjectStrategy.TOPIC
        yield ALL if by_record else f"{topic.name}-value"


def _pattern(name: str, prefixes: Sequence[str]) -> str:
    found = [prefix for prefix in prefixes if name.startswith(prefix)]
    return f"{min(found, key=len)}*" if found else name
