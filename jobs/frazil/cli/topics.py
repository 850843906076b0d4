"""`frazil schema topics`: print the topics of a broker, with guesses of their formats."""

from __future__ import annotations

from typing import Annotated

import typer

from frazil.cli.console import number, out, plain, show_json, table
from frazil.cli.options import AsJson, EnvironmentChoice, PipelinesFile, declared_if_any
from frazil.clients.secrets import Secrets
from frazil.errors import KafkaUnavailable, TopicMissing
from frazil.project import declaration_file, environments
from frazil.status.topic_listing import Listed

KAFKA_SECONDS, READ_SECONDS, REGISTRY_SECONDS = 5.0, 3.0, 3.0
HIDDEN = "_"
"""The first character of internal topics: of Kafka, of Connect, of registries."""


def topics(
    context: typer.Context,
    topic: Annotated[str | None, typer.Argument(metavar="TOPIC", help="One topic, with a declaration for it.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Include internal topics (names that begin with _).")] = False,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    as_json: AsJson = False,
) -> None:
    """List topics with their records and guessed formats.

    For example: frazil schema topics orders

    \b
    Formats are guesses from the newest few records.
    Commits no offsets, and joins no consumer group.

    \b
    Exit codes:
      0 listed
      2 invalid input
      3 the broker is unavailable, or has no such topic
    """
    from frazil.cli.status import stopped_broker
    from frazil.clients.kafka_listing import KafkaListing
    from frazil.clients.registry.client import Registry
    from frazil.clients.registry.retry import RetryPolicy
    from frazil.status.topic_listing import listed, schema_types

    declared = declared_if_any(context, file)
    place = environments.environment(env)
    secrets: Secrets = context.find_root().obj
    if stopped := stopped_broker(place.kafka.bootstrap):
        raise KafkaUnavailable(stopped, where=f"environment {place.name}", do="Start it: `frazil local up`")
    kafka = KafkaListing(place.kafka, secrets, timeout_seconds=KAFKA_SECONDS)
    spans = kafka.topics(lambda name: name == topic if topic is not None else every or not name.startswith(HIDDEN))
    if topic is not None and not spans:
        do = "`frazil schema topics --all` lists those that we may see"
        raise TopicMissing("the cluster has no such topic, or does not let us see it", where=f"topic {topic}", do=do)
    newest = kafka.newest(spans, seconds=READ_SECONDS)
    retry = RetryPolicy(total_seconds=REGISTRY_SECONDS, attempt_seconds=REGISTRY_SECONDS, attempts=2)
    registry = Registry.of(place.registry, secrets, retry=retry) if place.registry else None
    types, why = schema_types(newest, registry)
    found = listed(spans, newest, declared, types.get)
    note = f"Formats of frames are unknown: {why}" if why is not None else ""
    if as_json:
        shown = [{**one.document, **({"declaration": one.declaration} if topic is not None else {})} for one in found]
        show_json({"topics": shown, **({"note": note} if note else {})})
        return
    if topic is None:
        _print_list(found)
    else:
        _print_one(found[0])
    if note:
        out().print(plain(note), style="yellow", markup=False, soft_wrap=True)


def _print_list(found: tuple[Listed, ...]) -> None:
    if not found:
        out().print("no topics")
        return
    numbers = ("partitions", "records")
    shown = table("topic", *numbers, "value (guess)", "key (guess)", "pipeline", right=numbers, drop=("partitions",))
    for one in found:
        guesses = [str(side) if side is not None else "–" for side in (one.value, one.key)]
        counts = number(one.partitions), number(one.records)
        shown.add_row(one.topic, *counts, *guesses, ", ".join(one.pipelines) or "–")
    out().print(shown)


def _print_one(one: Listed) -> None:
    shown = table("", "")
    shown.show_header = False
    shown.add_row("topic", one.topic)
    shown.add_row("partitions", number(one.partitions))
    shown.add_row("records", number(one.records))
    for name, side in (("value", one.value), ("key", one.key)):
        shown.add_row(
            name, plain(f"{side}, a guess from {one.sampled} records: {side.why}") if side else "no record was read"
        )
    shown.add_row("pipelines", ", ".join(one.pipelines) or "none")
    out().print(shown)
    out().print()
    out().print(one.declaration, markup=False, soft_wrap=True)
