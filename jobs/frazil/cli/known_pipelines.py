"""The pipelines that a command knows: those that a file declares, and those of its patterns of topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.console import note
from frazil.cli.options import command_secrets
from frazil.declaration import Environment, Pipeline, TopicPattern
from frazil.errors import KafkaUnavailable
from frazil.project import declaration_file, environments
from frazil.project.declaration_file import Found

if TYPE_CHECKING:
    from frazil.job.matched_topics import MatchedTopics

KAFKA_SECONDS = 5.0


def topics_of(found: Found, place: Environment, names: Callable[[], Collection[str]]) -> MatchedTopics:
    """Return the topics of the patterns of a file in an environment."""
    from frazil.job.matched_topics import MatchedTopics
    from frazil.lake.read.stored_tables import Lake

    return MatchedTopics(found.patterns, found.pipelines, Lake(place, command_secrets().read), names)


def shared_by(pipeline: Pipeline, patterns: Sequence[TopicPattern]) -> Pipeline | None:
    """Return what the topics of the pipeline's pattern share; None if it is of no pattern."""
    return next((one.pipeline for one in patterns if one.matches(pipeline.topic.name)), None)


def with_tables(file: Path, env: str) -> tuple[Pipeline, ...]:
    """Return the declared pipelines, and those of patterns that have a table. It asks the catalog, not Kafka.

    Raises what `declaration_file.found` raises, and `CatalogUnavailable` if there are patterns.
    """
    found = declaration_file.found(file)
    if not found.patterns:
        return found.pipelines
    return (*found.pipelines, *topics_of(found, environments.environment(env), tuple).look().with_tables)


def with_topics(found: Found, env: str) -> tuple[Pipeline, ...]:
    """Return the declared pipelines of a file, and those of its patterns that have a topic or a table.

    A topic without a pipeline is a note on stderr; so is a broker that does not answer. Raises `CatalogUnavailable` if there are
    patterns.
    """
    if not found.patterns:
        return found.pipelines
    from frazil.cli.pipelines.status import stopped_broker
    from frazil.clients.kafka import Kafka

    place = environments.environment(env)

    def names() -> Collection[str]:
        if stopped_broker(place.kafka.bootstrap):
            return ()
        try:
            return Kafka(place.kafka, command_secrets(), timeout_seconds=KAFKA_SECONDS).names()
        except KafkaUnavailable as error:
            note(f"topics of patterns are not listed: {error}", "yellow")
            return ()

    matched = topics_of(found, place, names).look()
    for error in matched.refused.values():
        note(str(error), "yellow")
    return (*found.pipelines, *matched.pipelines, *matched.with_tables)
