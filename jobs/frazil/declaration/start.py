"""The places where a pipeline begins when its table is made. Afterwards the table itself says what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from frazil.declaration.checks.constraints import INT_MAX, LONG_MAX, between
from frazil.declaration.checks.declared import declared
from frazil.declaration.checks.problems import Problem
from frazil.declaration.checks.validation import validate

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@declared
class Earliest:
    """With the oldest record that the topic still has."""

    kind: ClassVar[str] = "earliest"


@declared
class Latest:
    """With the first record that is written after the table is made; decided once, when it is made."""

    kind: ClassVar[str] = "latest"


@declared
class At:
    """With the first record, partition by partition, whose Kafka timestamp is not before `timestamp`; kept in UTC."""

    kind: ClassVar[str] = "timestamp"

    timestamp: Annotated[datetime, "An instant with a time zone, to the millisecond."] = field(kw_only=False)

    def __post_init__(self) -> None:
        validate(self, self._contradictions)
        object.__setattr__(self, "timestamp", self.timestamp.astimezone(UTC))

    def _contradictions(self) -> Iterator[Problem]:
        if self.timestamp.utcoffset() is None:
            yield Problem("timestamp", "it has no time zone", "Give one: datetime(…, tzinfo=UTC)")
            return
        if self.timestamp.microsecond % 1000:
            yield Problem("timestamp", "Kafka's timestamps have milliseconds, this has more digits", "Round it")
        try:
            is_before = self.timestamp.astimezone(UTC) < _EPOCH
        except OverflowError:
            yield Problem("timestamp", "in UTC it is beyond the years 1 to 9999", "Choose an instant within them")
            return
        if is_before:
            yield Problem("timestamp", "Kafka has no timestamps before 1970", "Write Earliest()")


@declared
class Offsets:
    """With these offsets: partition -> the next offset to read. Omitted partitions start at their earliest."""

    kind: ClassVar[str] = "offsets"

    offsets: Annotated[
        Mapping[Annotated[int, between(0, INT_MAX)], Annotated[int, between(0, LONG_MAX)]],
        "Partition -> the next offset to read.",
    ] = field(kw_only=False)

    def _contradictions(self) -> Iterator[Problem]:
        if not self.offsets:
            yield Problem("offsets", "no partition is named", "Write {partition: offset}, or Earliest()")


Start = Earliest | Latest | At | Offsets
