"""The options of Kafka's consumer and the properties of Iceberg's tables that a declaration may set.

Names and bounds: https://kafka.apache.org/39/documentation.html#consumerconfigs and
https://iceberg.apache.org/docs/latest/configuration/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from frazil.declaration.checks.constraints import INT_MAX, shown
from frazil.declaration.checks.problems import Problem, Refusal

# The numbers, each with the smallest value that Kafka takes.
_NUMBERS = {
    **dict.fromkeys(("connections.max.idle.ms", "receive.buffer.bytes", "send.buffer.bytes"), -1),
    **dict.fromkeys(("default.api.timeout.ms", "request.timeout.ms", "metadata.max.age.ms"), 0),
    **dict.fromkeys(("fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "max.partition.fetch.bytes"), 0),
    **dict.fromkeys(("reconnect.backoff.max.ms", "reconnect.backoff.ms"), 0),
    **dict.fromkeys(("retry.backoff.max.ms", "retry.backoff.ms"), 0),
    **dict.fromkeys(("socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms"), 0),
    "max.poll.records": 1,
}
_WORDS = {
    "check.crcs": ("true", "false"),
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
}
CONSUMER_OPTIONS = frozenset({*_NUMBERS, *_WORDS, "client.rack"})
"""The options that `Reading.options` takes."""

# Each row of the tables below: a pattern of names, why they are refused, and what to do.
_NOT_OURS_TO_SET = (
    (r"(security|sasl|ssl)\..*", "security settings live in the environment", "Set kafka.security in its document"),
    (r"bootstrap\..*", "endpoints live in the environment", "Set kafka.bootstrap in its document"),
    (r"isolation\.level", "the declaration has a field for it", "Use Reading.isolation"),
    (r"auto\.offset\.reset", "the table says what is read next", "Use Pipeline.start for the first time"),
    (
        r"group\..*|client\.id|enable\.auto\.commit|auto\..*|partition\.assignment\.strategy|(session|heartbeat)\..*"
        r"|max\.poll\.interval\.ms",
        "Frazil reads exact offsets, in no consumer group of yours",
        "Remove it",
    ),
    (r".*\.(de)?serializer(\..*)?|interceptor\..*", "Frazil reads records as bytes", "Use the formats of the topic"),
    (
        r"starting.*|ending.*|.*OffsetsPerTrigger|failOnDataLoss|subscribe.*|assign",
        "it is Spark's, and Frazil's to set",
        "Remove it",
    ),
)


def option_problems(options: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the problems of a topic's consumer options. A value is shown only if its option is allowed."""
    for name, value in options.items():
        refusal = _bad_value(name, value) if name in CONSUMER_OPTIONS else _why_not(name)
        if refusal:
            yield Problem(f"options[{shown(name)}]", *refusal)


def _bad_value(name: str, value: str) -> Refusal | None:
    wrong = f"{shown(value)} is not one of its values"
    if name in _WORDS:
        return None if value in _WORDS[name] else Refusal(wrong, f"Write {' or '.join(_WORDS[name])}")
    if name in _NUMBERS:
        lowest = _NUMBERS[name]
        if re.fullmatch(r"-?[0-9]{1,10}", value, re.ASCII) and lowest <= int(value) <= INT_MAX:
            return None
        return Refusal(wrong, f"Write a whole number from {lowest} to {INT_MAX}, as text")
    return None if value.strip() else Refusal("the value is empty", "Remove the option, or give it a value")


def _why_not(name: str) -> Refusal:
    plain = name.removeprefix("kafka.")
    if plain != name and plain in CONSUMER_OPTIONS:
        return Refusal("the prefix is Spark's", f"Write {plain}")
    if refusal := _matched(_NOT_OURS_TO_SET, plain, re.IGNORECASE):
        return refusal
    near = get_close_matches(plain, CONSUMER_OPTIONS, n=1)
    do = f"Did you mean {near[0]}?" if near else f"The options are {', '.join(sorted(CONSUMER_OPTIONS))}"
    return Refusal("it is not an option that a topic may set", do)


def _matched(table: Iterable[tuple[str, str, str]], name: str, flags: int = 0) -> Refusal | None:
    return next((Refusal(what, do) for pattern, what, do in table if re.fullmatch(pattern, name, flags)), None)


_FIELD = "the declaration has a field for it"
_OWNED = (
    (r"format-version", _FIELD, "Use Table.format_version"),
    (r"write\.target-file-size-bytes", _FIELD, "Use Table.target_file_size_bytes"),
    (r"history\.expire\..*", _FIELD, "Use Table.snapshots"),
    (r"sort-order|write\.sort-order", _FIELD, "Use Table.sort_by"),
    (r"frazil\..*", "Frazil keeps its own facts there", "Remove it"),
    (r"commit\..*", "commits are Frazil's: rows and offsets become one of them", "Remove it"),
    (
        r"write\.metadata\.metrics\.column\.(_kafka.*|_ingested_at)",
        "verify reads the metrics of Frazil's columns",
        "Remove it; the metrics of your own columns are yours",
    ),
    (r"write\.metadata\.(?!metrics\.).*", "metadata files are Frazil's, and so is their clean-up", "Remove it"),
    (
        r"write\.(data|folder-storage|object-storage)\.path|write\.location-provider\.impl|location",
        "files live under the warehouse of the environment, where jobs may write and clean up",
        "Remove it",
    ),
    (r"write\.([a-z]+\.)?distribution-mode", "how rows are dealt to tasks is Frazil's", "Remove it"),
    (
        r"write\.wap\..*|write\.spark\.accept-any-schema",
        "Frazil publishes itself, and changes schemas itself",
        "Remove it",
    ),
    (r"schema\.name-mapping\..*|identifier-fields", "columns are Frazil's", "Remove it"),
    (r"gc\.enabled|compatibility\..*", "upkeep and commits rest on it", "Remove it"),
    (r"encryption\..*", "encrypted tables are not supported", "Encrypt the bucket instead"),
    (
        r"uuid|snapshot-count|(current-|default-).*|provider|owner",
        "Iceberg and the catalog keep their own facts under this name",
        "Remove it",
    ),
)


def property_problems(properties: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the problems of a table's properties; values are not shown."""
    for name, value in properties.items():
        refusal = _refusal(name, value)
        if refusal:
            yield Problem(f"properties[{shown(name)}]", *refusal)


def _refusal(name: str, value: str) -> Refusal | None:
    if not re.fullmatch(r"[A-Za-z0-9_][^\s=]*", name):
        return Refusal("this is not a property's name", "Write one like write.parquet.row-group-size-bytes")
    if re.fullmatch(r"write(\.delete)?\.format\.default", name):
        return None if value == "parquet" else Refusal("Frazil writes Parquet only", "Remove it")
    return _matched(_OWNED, name)


def undeclarable(name: str) -> str | None:
    """Return why no declaration may set a property; None if one may."""
    refusal = _matched(_OWNED, name)
    return refusal.what if refusal is not None else None
