"""What a pipeline remembers of its batches, so that the next ones are staged once."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.lake.commit.check import StageAgain


class Learned(StageAgain):
    """A batch is to be staged again, as it taught what was not known before: no failed attempt."""


@dataclass(slots=True)
class Thoroughness:
    """Whether a pipeline has met records that only the thorough bodies decode; from then on it decodes all by these."""

    is_needed: bool = False


@dataclass(slots=True)
class LeftOut:
    """Whether a pipeline has met changes that leave values out; from then on a batch is compared with the rows in the table."""

    is_met: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A record of a topic."""

    topic_id: str
    partition: int
    offset: int


@dataclass(slots=True)
class Truncated:
    """The last truncate that a pipeline has met: a batch with it deletes all rows, and lands what is behind it."""

    at: Place | None = None


@dataclass(slots=True)
class Keyless:
    """Whether a table of current state has had no record yet, those of staged batches included."""

    is_possible: bool = False
