"""A topic that Frazil creates, as it is declared. Values only; `kafka_topic.py` creates it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Annotated

from frazil.declaration.checks.constraints import NOT_EMPTY, between, matching
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import FrozenMap

_HOUR_MS = 3_600_000


class Cleanup(StrEnum):
    """The removal of old records: `delete` by age, `compact` by key."""

    DELETE = "delete"
    COMPACT = "compact"


class SchemaFormat(StrEnum):
    """The registry's words for what a schema is written in."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@declared
class ValueSchema:
    """The first version of a topic's value schema; later ones may come from producers."""

    format: Annotated[SchemaFormat, "What it is written in."]
    file: Annotated[str, "The file of its text, next to the module that declares it.", NOT_EMPTY]


@declared
class ManagedTopic:
    """A topic that Frazil creates. Topics of others are not declared here: Frazil only reads them."""

    name: Annotated[
        str, "Its name.", matching(r"[a-zA-Z0-9._-]{1,249}", "a topic's name", "Use a-z, A-Z, 0-9, . _ and -")
    ] = field(kw_only=False)
    partitions: Annotated[int, "How many; more can be added, none taken away.", between(1, 4096)] = 6
    retention_hours: Annotated[int, "How long records stay; longer than an ingest may be down.", between(1, 87_600)] = (
        168
    )
    cleanup: Annotated[Cleanup, "How old records are removed."] = Cleanup.DELETE
    schema: Annotated[ValueSchema | None, "Its value's schema, if registered here."] = None
    config: Annotated[Mapping[str, str], "Further settings, by Kafka's names."] = FrozenMap()

    def _contradictions(self) -> Iterator[Problem]:
        for name in ("retention.ms", "cleanup.policy"):
            if name in self.config:
                yield Problem(f"config['{name}']", "this has a field of its own", "Use retention_hours or cleanup")

    @property
    def settings(self) -> dict[str, str]:
        """All of its settings, by Kafka's names."""
        own = {"cleanup.policy": self.cleanup.value, "retention.ms": str(self.retention_hours * _HOUR_MS)}
        return {**self.config, **own}
