"""A window of offsets in memory: which of them are rows, dead letters, or decided dead letters."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np

from frazil.audit.files import bitmap
from frazil.audit.files.bitmap import Addresses, Bitmap, Words, joined
from frazil.audit.files.windows import Placement, Stretch
from frazil.audit.finding import SHOWN, Range

KEPT = 1_000
"""Addresses of rows far too many that are kept as examples; all are counted."""


class Role(StrEnum):
    """The place of a record: its row, its dead letter, or a `PENDING` dead letter, which is decided and not appended yet."""

    TABLE = "table"
    DEAD_LETTERS = "dead_letters"
    PENDING = "pending"


class Layers:
    """The addresses of one role: the first bitmap has each address, the next those that exist again, and so on.

    Rows beyond the last bitmap are counted by part, and the first of them are kept.
    """

    def __init__(self, size: int, depth: int, parts: Sequence[int]) -> None:
        self.bitmaps: list[Bitmap] = []
        self._size, self._depth = size, depth
        self._parts = np.array(parts, np.int64)
        self.beyond = np.zeros(len(parts), np.int64)
        self._examples: Addresses = np.empty(0, np.int64)

    def mark(self, addresses: Addresses, level: int = 0) -> None:
        """Add rows by their addresses."""
        while len(addresses):
            if level == self._depth:
                self.beyond += np.bincount(self._part(addresses), minlength=len(self._parts))
                self._examples = np.unique(np.concatenate([self._examples, addresses]))[:KEPT]
                return
            addresses, level = self._level(level).mark(addresses), level + 1

    def fill(self, start: int, end: int) -> None:
        """Add one row for each address from `start` up to and without `end`."""
        for again in self._level(0).fill(start, end):
            self.mark(again, 1)

    def words(self, level: int, where: slice) -> Words:
        """Return the words of a part in one bitmap."""
        if level < len(self.bitmaps):
            return self.bitmaps[level].words[where]
        return np.zeros(where.stop - where.start, np.uint64)

    def examples(self, start: int, end: int) -> Addresses:
        """Return the kept addresses between `start` and `end`."""
        kept: Addresses = self._examples[(self._examples >= start) & (self._examples < end)]
        return kept

    def _level(self, level: int) -> Bitmap:
        while level >= len(self.bitmaps):
            self.bitmaps.append(Bitmap(self._size))
        return self.bitmaps[level]

    def _part(self, addresses: Addresses) -> Addresses:
        found: Addresses = np.searchsorted(self._parts, addresses, side="right") - 1
        return found


class Window:
    """The offsets of some stretches, and the rows that were seen in them. Threads may share it."""

    def __init__(self, spans: Sequence[Stretch], segments: Sequence[Sequence[Stretch]]) -> None:
        self.placement = Placement(spans)
        self.segments = segments
        self._where = {part: self.placement.words(part) for segment in segments for part in segment}
        self._order = sorted(self._where, key=lambda part: self._where[part].start)
        self._depth = max((span.lives for span in spans), default=1) + 1
        self._layers: dict[Role, Layers] = {}
        self._lock = threading.Lock()

    def mark(self, role: Role, addresses: Addresses) -> None:
        """Add rows by the addresses that `placement` gave."""
        with self._lock:
            self._of(role).mark(addresses)

    def fill(self, role: Role, partition: int, rows: Range) -> None:
        """Add one row for each offset of a range, as far as it is in the window."""
        for one in self.placement.ranges(partition, rows):
            self._of(role).fill(one.start, one.end)

    def tallies(self) -> Iterator[list[tuple[Stretch, Tally]]]:
        """Yield what each part of each segment holds, segment by segment."""
        at = {part: index for index, part in enumerate(self._order)}
        for segment in self.segments:
            yield [(part, self._tally(part, at[part])) for part in segment]

    def _of(self, role: Role) -> Layers:
        if role not in self._layers:
            starts = [self._where[part].start * bitmap.WORD for part in self._order]
            self._layers[role] = Layers(self.placement.size, self._depth, starts)
        return self._layers[role]

    def _tally(self, part: Stretch, index: int) -> Tally:
        where = self._where[part]
        table, dead, pending = (self._first(role, where) for role in Role)
        both = bitmap.count(table & dead) if part.lives == 1 else 0
        absent = bitmap.missing(table | dead | pending, len(part))
        number = bitmap.count(absent)
        start = part.range.start
        return Tally(
            landed=self._rows(Role.TABLE, where, index),
            dead_lettered=self._rows(Role.DEAD_LETTERS, where, index),
            pending=self._rows(Role.PENDING, where, index),
            absent=Found(number, bitmap.ranges(absent, start, SHOWN)) if number else NONE,
            doubled=self._doubled(Role.TABLE, part, index),
            doubled_dead=self._doubled(Role.DEAD_LETTERS, part, index),
            both=Found(both, bitmap.ranges(table & dead, start, SHOWN)) if both else NONE,
        )

    def _first(self, role: Role, where: slice) -> Words:
        layers = self._layers.get(role)
        return layers.words(0, where) if layers else np.zeros(where.stop - where.start, np.uint64)

    def _rows(self, role: Role, where: slice, index: int) -> int:
        layers = self._layers.get(role)
        if layers is None:
            return 0
        return sum(bitmap.count(one.words[where]) for one in layers.bitmaps) + int(layers.beyond[index])

    def _doubled(self, role: Role, part: Stretch, index: int) -> Found:
        """Return the rows that exist more often than their offset lived."""
        layers, where = self._layers.get(role), self._where[part]
        if layers is None:
            return NONE
        number = sum(bitmap.count(one.words[where]) for one in layers.bitmaps[part.lives :]) + int(layers.beyond[index])
        if not number:
            return NONE
        words = layers.words(part.lives, where)
        first, base = part.range.start, where.start * bitmap.WORD
        examples = layers.examples(base, where.stop * bitmap.WORD) - base + first
        shown = [*bitmap.ranges(words, first, SHOWN), *(Range(int(o), int(o) + 1) for o in examples)]
        return Found(number, tuple(bitmap.joined(shown)[:SHOWN]))


@dataclass(frozen=True, slots=True)
class Found:
    """The number of rows or offsets of a kind, and the first ranges of their offsets, `SHOWN` at most."""

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
    """The contents of a stretch of one partition.

    `landed`, `dead_lettered` and `pending` are rows, doubled ones as often as they exist. `absent` are offsets that have
    none of the three. `doubled` and `doubled_dead` are rows that exist more often than they may, `both` are offsets that
    are a row and a dead letter too.
    """

    landed: int = 0
    dead_lettered: int = 0
    pending: int = 0
    absent: Found = NONE
    doubled: Found = NONE
    doubled_dead: Found = NONE
    both: Found = NONE

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})

    @property
    def is_clean(self) -> bool:
        """Return whether each offset has one row, one dead letter, or nothing, and nothing is pending."""
        return not (self.pending or self.doubled.number or self.doubled_dead.number or self.both.number)
