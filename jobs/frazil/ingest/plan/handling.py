"""How a batch is staged, by what the batches before it had: the planner gives each plan the newest of these values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A record of a topic."""

    topic_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Handling:
    """What the records of a pipeline have needed so far.

    Some are decoded by `thorough` bodies only: then all are. Some changes omit values, which a batch `fills` from the table.
    `truncate` is the last truncate of the source's table where it deletes all rows: a batch with it lands what is after it.
    """

    thorough: bool = False
    fills: bool = False
    truncate: Place | None = None


@dataclass(frozen=True, slots=True)
class Restage:
    """A batch that is to be staged again, as it needs another handling than it had: no failed attempt."""

    why: str
    handling: Handling
