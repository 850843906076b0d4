"""What a stretch of offsets holds, as numbers that add up over stretches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from frazil.audit.files.bitmap import joined
from frazil.audit.finding import SHOWN, Range


@dataclass(frozen=True, slots=True)
class Found:
    """How many rows or offsets there are of a kind, and the first ranges of their offsets, `SHOWN` at most."""

    number: int = 0
    ranges: tuple[Range, ...] = ()

    def __add__(self, other: Found) -> Found:
        if not other.number:
            return self
        if not self.number:
            return other
        return Found(self.number + other.number, tuple(joined([*self.ranges, *other.ranges])[:SHOWN]))

    def describe(self) -> str:
        """Return the first offsets as words."""
        shown = ", ".join(map(str, self.ranges[:3]))
        return f"offsets {shown}{', …' if len(self.ranges) > 3 else ''}" if shown else "none"


NONE = Found()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a stretch of one partition holds.

    `landed`, `dead_lettered` and `pending` are rows, doubled ones as often as they exist. `absent` are offsets that have
    none of the three. `doubled` and `doubled_dead` are rows that exist more often than they may, `both` are offsets that
    are a row and a dead letter too.
    """

    landed: int = 0
    dead_lettered: int = 0
    pending: int = 0
    absent: Found = field(default=NONE)
    doubled: Found = field(default=NONE)
    doubled_dead: Found = field(default=NONE)
    both: Found = field(default=NONE)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            landed=self.landed + other.landed,
            dead_lettered=self.dead_lettered + other.dead_lettered,
            pending=self.pending + other.pending,
            absent=self.absent + other.absent,
            doubled=self.doubled + other.doubled,
            doubled_dead=self.doubled_dead + other.doubled_dead,
            both=self.both + other.both,
        )

    @property
    def is_clean(self) -> bool:
        """Return whether each offset has one row, one dead letter, or nothing, and nothing is pending."""
        return not (self.pending or self.doubled.number or self.doubled_dead.number or self.both.number)


def total(tallies: Iterable[Tally]) -> Tally:
    """Return the sum of tallies."""
    return sum(tallies, Tally())
