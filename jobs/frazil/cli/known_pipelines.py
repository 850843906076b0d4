"""The pipelines that a command knows: those that a file declares, and those of its patterns of topics and types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from frazil.cli.console import note
from frazil.cli.options import command_secrets
from frazil.clients.secrets import Secrets
from frazil.declaration import Environment, Pipeline, TopicPattern, TypePattern
from frazil.errors import KafkaUnavailable, RegistryUnavailable
from frazil.project import declaration_file, environments
from frazil.project.declaration_file import Found

if TYPE_CHECKING:
    from frazil.job.matched_topics import MatchedTopics

Names = Callable[[], Collection[str]]
Subjects = Callable[..., Collection[str]]
KAFKA_SECONDS = REGISTRY_SECONDS = 5.0


def topics_of(
    found: Found, place: Environment, names: Names, subjects: Subjects | None = None, secrets: Secrets | None = None
) -> MatchedTopics:
    """Return the topics and types of the patterns of a file in an environment, from those that there are.

    Without the registry's `subjects` only types that have a table are known. A thread gives the `secrets` of its command.
    """
    from frazil.job.matched_topics import MatchedTopics
    from frazil.lake.read.stored_tables import Lake

    lake = Lake(place, (secrets or command_secrets()).read)
    return MatchedTopics(found.every_pattern, found.pipelines, lake, names, subjects=subjects)


def shared_by(pipeline: Pipeline, patterns: Sequence[TopicPattern | TypePattern]) -> Pipeline | None:
    """Return what the topics or types of the pipeline's pattern share; None if it is of no pattern."""
    from frazil.job.matched_topics import source_of

    ways = (source_of(pipeline), (pipeline.topic.name,))
    return next((one.pipeline for one in patterns for way in ways if one.matches(*way)), None)


def with_tables(file: Path, env: str, *, types: bool = False) -> tuple[Pipeline, ...]:
    """Return the declared pipelines, and those of patterns that have a table; with `types`, those of all types, too.

    It asks the catalog, and for types the registry. Raises what `declaration_file.found` raises, and if there are patterns
    `CatalogUnavailable`, or `RegistryUnavailable`.
    """
    found = declaration_file.found(file)
    if not found.every_pattern:
        return found.pipelines
    place = environments.environment(env)
    matched = topics_of(
        found, place, tuple, _subjects(place, command_secrets()) if types and found.types else None
    ).look()
    return (*found.pipelines, *matched.pipelines, *matched.with_tables)


def with_topics(
    found: Found, env: str, secrets: Secrets | None = None, report: Callable[[str, str], None] = note
) -> tuple[Pipeline, ...]:
    """Return the declared pipelines of a file, and those of its patterns that have a topic, a type or a table.

    A topic or type without a pipeline is reported, on stderr by default; so is a broker or registry that does not answer. Raises
    `CatalogUnavailable` if there are patterns. A thread gives the `secrets` of its command.
    """
    if not found.every_pattern:
        return found.pipelines
    from frazil.clients.kafka import Kafka
    from frazil.status.looking import stopped_broker

    place, secrets = environments.environment(env), secrets or command_secrets()
    ask = _subjects(place, secrets) if found.types else None

    def names() -> Collection[str]:
        if stopped_broker(place.kafka.bootstrap):
            return ()
        try:
            return Kafka(place.kafka, secrets, timeout_seconds=KAFKA_SECONDS).names()
        except KafkaUnavailable as error:
            report(f"topics of patterns are not listed: {error}", "yellow")
            return ()

    def subjects(*, deleted: bool) -> Collection[str]:
        try:
            return ask(deleted=deleted) if ask is not None else ()
        except RegistryUnavailable as error:
            report(f"types of patterns are not listed: {error}", "yellow")
            return ()

    matched = topics_of(found, place, names, subjects, secrets).look()
    for error in matched.refused.values():
        report(str(error), "yellow")
    return (*found.pipelines, *matched.pipelines, *matched.with_tables)


def _subjects(place: Environment, secrets: Secrets) -> Subjects | None:
    """Return what lists the subjects of an environment's registry; None if it has none."""
    from frazil.clients.registry.client import Registry
    from frazil.clients.registry.http import RetryPolicy

    if place.registry is None:
        return None
    retry = RetryPolicy(total_seconds=REGISTRY_SECONDS, attempt_seconds=REGISTRY_SECONDS, attempts=2)
    return Registry.of(place.registry, secrets, retry=retry).subjects
