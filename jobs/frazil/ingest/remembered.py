"""What a pipeline remembers of its batches, so that the next ones are staged once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Thoroughness:
    """Whether a pipeline has met records that only the thorough bodies decode; from then on it decodes all by these."""

    is_needed: bool = False


@dataclass(slots=True)
class LeftOut:
    """Whether a pipeline has met changes that leave values out; from then on a batch is compared with the rows in the table."""

    is_met: bool = False


@dataclass(slots=True)
class Truncated:
    """The offset of the last truncate that a pipeline has met: a batch with it deletes all rows, and lands what is behind it."""

    at: int | None = None


@dataclass(slots=True)
class Keyless:
    """Whether a table of current state has had no record yet, those of staged batches included."""

    is_possible: bool = False
