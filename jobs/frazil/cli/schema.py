"""`frazil schema`: list topics with their formats, and write a schema file from JSON records."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frazil.cli.console import number, out, plain, say, show_json, table, write_at_once
from frazil.cli.options import (
    AsJson,
    EnvironmentChoice,
    PipelinesFile,
    argument,
    command_secrets,
    declared_if_any,
    flag,
)
from frazil.declaration import each_topic
from frazil.errors import InvalidInput, KafkaUnavailable, TopicMissing
from frazil.exit_codes import Exit
from frazil.project import declaration_file, environments

if TYPE_CHECKING:
    from frazil.clients.kafka_listing import KafkaListing
    from frazil.clients.registry.client import Registry
    from frazil.inference.record_file import Line
    from frazil.inference.sample import Sample
    from frazil.status.topic_listing import Guess


KAFKA_SECONDS, REGISTRY_SECONDS = 5.0, 3.0
LIST_SECONDS, SAMPLE_SECONDS = 3.0, 10.0
"""Seconds that reading records may take: a few of each topic, or many of one."""


def topics(
    topic: Annotated[str | None, argument("TOPIC", "One topic, with a declaration for it.")] = None,
    every: Annotated[bool, flag("--all", "Include internal topics (names that begin with _).")] = False,
    match: Annotated[str | None, flag("--match", "Topics whose names match, and their tables.", "REGEX")] = None,
    exclude: Annotated[str | None, flag("--exclude", "With --match: topics to leave out.", "REGEX")] = None,
    table_of: Annotated[
        str | None, flag("--table", "With --match: the tables, such as shop.{topic}.", "TEMPLATE")
    ] = None,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    as_json: AsJson = False,
) -> None:
    """List topics with their records and guessed formats.

    For example: frazil schema topics orders

    Formats are guesses from the newest few records.
    --match shows what each_topic(REGEX) would land, and where.
    Commits no offsets, and joins no consumer group.

    Exit codes: 0 listed; 2; 3 the broker is unavailable, or has no such topic
    """
    from frazil.job.matched_topics import MatchedTopics
    from frazil.lake.read.stored_tables import Lake
    from frazil.status.topic_listing import guessed_declaration, listed, namespace_of, schema_types

    if match is None and (exclude is not None or table_of is not None):
        raise InvalidInput("--exclude and --table belong to --match", do="Give --match, too")
    if match is not None and topic is not None:
        raise InvalidInput("--match and TOPIC exclude each other", do="Give one of them")
    of_file = declared_if_any(file)
    declared, patterns = of_file.pipelines, of_file.patterns
    if match is not None:
        template = table_of if table_of is not None else f"{namespace_of(declared)}.{{topic}}"
        patterns = (each_topic(match, table=template, exclude=exclude, value="bytes"),)
    kafka, registry = _opened(env)
    known = MatchedTopics(patterns, declared, Lake(environments.environment(env), command_secrets().read), kafka.names)
    found_topics = known.look()

    def is_wanted(name: str) -> bool:
        if topic is not None:
            return name == topic
        return patterns[0].matches(name) if match is not None else every or not name.startswith("_")

    spans = kafka.topics(is_wanted)
    if topic is not None and not spans:
        raise _missing(topic)
    newest = kafka.newest(spans, seconds=LIST_SECONDS)
    types, why = schema_types((record for records in newest.values() for record in records), registry)
    readers = (*declared, *found_topics.pipelines)
    found = [listed(one, newest.get(one.name, []), readers, types.get) for one in spans]
    line = guessed_declaration(topic, newest.get(topic, []), declared, types.get) if topic is not None else ""
    note = f"Formats of frames are unknown: {why}" if why is not None else ""
    if as_json:
        shown = [{**asdict(one), **({"declaration": line} if line else {})} for one in found]
        refused = {name: str(error) for name, error in found_topics.refused.items()}
        show_json({"topics": shown, **({"note": note} if note else {}), **({"refused": refused} if refused else {})})
        return
    numbers = ("partitions", "records")
    of_last = "table" if match is not None else "pipeline"
    rows = table("topic", *numbers, "value (guess)", "key (guess)", of_last, right=numbers, drop=("partitions",))
    for one in found:
        last = one.tables if match is not None else one.pipelines
        texts = (one.value_format_guess, one.key_format_guess, ", ".join(last))
        rows.add_row(one.topic, number(one.partitions), number(one.records), *(text or "–" for text in texts))
    out().print(rows if found else "no topics")
    if line:
        out().print()
        say(line)
    for error in found_topics.refused.values():
        say(str(error), "yellow")
    if note:
        say(note, "yellow")


def _opened(env: str) -> tuple[KafkaListing, Registry | None]:
    """Return the broker and the registry of an environment. Raises `KafkaUnavailable` if the local broker does not run."""
    from frazil.clients.kafka_listing import KafkaListing
    from frazil.clients.registry.client import Registry
    from frazil.clients.registry.http import RetryPolicy
    from frazil.status.looking import stopped_broker

    place, secrets = environments.environment(env), command_secrets()
    if stopped := stopped_broker(place.kafka.bootstrap):
        raise KafkaUnavailable(stopped, where=f"environment {place.name}", do="Start it: `frazil local up`")
    retry = RetryPolicy(total_seconds=REGISTRY_SECONDS, attempt_seconds=REGISTRY_SECONDS, attempts=2)
    registry = Registry.of(place.registry, secrets, retry=retry) if place.registry else None
    return KafkaListing(place.kafka, secrets, timeout_seconds=KAFKA_SECONDS), registry


def _missing(topic: str) -> TopicMissing:
    do = "`frazil schema topics --all` lists those that we may see"
    return TopicMissing("the cluster has no such topic, or does not let us see it", where=f"topic {topic}", do=do)


def infer(
    topic: Annotated[str, argument("TOPIC", "Topic of JSON records.")],
    records: Annotated[int, flag("--records", "Number of records to sample.", "N", min=1, max=20_000)] = 1000,
    sample_file: Annotated[str | None, flag("--file", "JSON lines, or - for stdin; no broker.", "FILE")] = None,
    to: Annotated[Path | None, flag("--out", "Schema file (default schemas/TOPIC.json).", "FILE")] = None,
    force: Annotated[bool, flag("--force", "Add new fields to an existing file.")] = False,
    strict: Annotated[bool, flag("--strict", "Refuse fields with values of several types.")] = False,
    file: PipelinesFile = declaration_file.USUAL,
    env: EnvironmentChoice = "local",
    as_json: AsJson = False,
) -> None:
    """Write a schema file from a sample of JSON records.

    For example: frazil schema infer orders

    Reads the oldest and newest records of all partitions.
    Keeps all fields of an existing file.
    Commits no offsets, and joins no consumer group.

    Exit codes: 0 written, or unchanged; 2 invalid input, or records of another format; 3 the broker is
    unavailable, or has no such topic; 4 the existing file differs; nothing written
    """
    from frazil.inference.inferred_schema import proposed
    from frazil.inference.record_file import read_records
    from frazil.inference.sample import Sample
    from frazil.status.topic_listing import declaration, namespace_of, refuse_others

    place = to if to is not None else file.parent / "schemas" / f"{topic}.json"
    if place.suffix.lower() != ".json":
        raise InvalidInput("a JSON Schema is in a file that ends in .json", where=str(place), do="Name it so: --out")
    key: Guess = ()
    if sample_file:
        lines = read_records(sample_file, sys.stdin.buffer)
        refuse_others(sample_file, ((line.text.encode(), ()) for line in lines))
    else:
        lines, key = _read_topic(topic, records, env)
    sample = Sample.of(lines)
    if not sample.records:
        why = f", {sample.unused[0].where}: {sample.unused[0].what}" if sample.unused else ""
        raise InvalidInput(f"no record is a JSON object{why}", where=f"topic {topic}", do="Produce some first")
    if strict:
        do = "Correct the producers, or leave out --strict: such fields become JSON text"
        sample.refuse_conflicts(f"topic {topic}", do)
    try:
        existing = place.read_bytes() if place.exists() else None
    except OSError as error:
        raise InvalidInput.unreadable(place, error) from None
    text, added = proposed(sample, topic, existing, str(place))
    if is_written := existing is None or (bool(added) and force):
        write_at_once(place, text.encode())
    try:
        declared = declared_if_any(file).pipelines
    except InvalidInput:  # such a declaration may be in need of the schema file
        declared = ()
    at = Path(os.path.relpath(place, file.parent)).as_posix()
    line = declaration(topic, "json_schema", key, schema=at, namespace=namespace_of(declared))
    if as_json:
        told = {"topic": topic, "file": str(place), "written": is_written, "added": added}
        told |= {"records": sample.records, "fields": [field.document for field in sample.fields]}
        unused = [{"place": one.where, "why": one.what} for one in sample.unused]
        show_json({**told, "unused_records": unused, "declaration": line})
    else:
        _print_sample(sample)
        for name, kind in added.items():
            say(f"added: {name} ({kind})")
        is_other = f"{place} differs; --force adds the new fields" if added else f"{place} is unchanged"
        say(f"wrote {place}" if is_written else is_other)
        out().print()
        say(line)
    if added and not is_written:
        raise typer.Exit(Exit.CHANGES)


def _read_topic(topic: str, records: int, env: str) -> tuple[list[Line], Guess]:
    """Return the sampled values, and what the keys look like."""
    from frazil.status.topic_listing import guess, json_lines, schema_types

    kafka, registry = _opened(env)
    spans = kafka.topics(lambda name: name == topic)
    if not spans:
        raise _missing(topic)
    found = kafka.sample(spans[0], records, seconds=SAMPLE_SECONDS)
    types, _ = schema_types(found, registry)
    keys = guess(((record.key, record.headers) for record in found), types.get, is_key=True)
    return json_lines(topic, found, types.get), keys


def _print_sample(sample: Sample) -> None:
    numbers = ("values", "null", "missing")
    shown = table("field", "type", *numbers, right=numbers)
    for field in sample.fields:
        counts = map(number, (field.values, field.nulls, field.objects - field.values - field.nulls))
        shown.add_row(plain(field.path), plain(field.type or "left out"), *counts)
    say("1 record" if sample.records == 1 else f"{number(sample.records)} records")
    out().print()
    out().print(shown)
    for field in sample.fields:
        if field.conflict:
            say(f"{field.path} becomes JSON text: {field.conflict}", "yellow")
    for one in sample.unused[:5]:
        say(f"Not used: {one.where}: {one.what}", "yellow")
    if len(sample.unused) > 5:
        say(f"Not used: {number(len(sample.unused) - 5)} more", "yellow")
    out().print()
