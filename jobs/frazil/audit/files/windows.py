"""Cut the offsets that a pipeline has read into windows, and find the files and rows of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt

from frazil.audit.files.bitmap import WORD, Addresses
from frazil.audit.finding import Range

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets of one partition that were read. Each exists once, or `lives` times after decisions that let offsets come again."""

    partition: int
    range: Range
    lives: int = 1

    def __len__(self) -> int:
        return len(self.range)


def stretches(read: Mapping[int, Sequence[Range]]) -> tuple[Stretch, ...]:
    """Return what was read as disjoint stretches, in order of partition and offset."""
    found: list[Stretch] = []
    for partition, parts in sorted(read.items()):
        edges = sorted({edge for part in parts for edge in (part.start, part.end)})
        for start, end in pairwise(edges):
            lives = sum(part.start <= start and end <= part.end for part in parts)
            if not lives:
                continue
            last = found[-1] if found else None
            if last and (last.partition, last.lives, last.range.end) == (partition, lives, start):
                found[-1] = Stretch(partition, Range(last.range.start, end), lives)
            else:
                found.append(Stretch(partition, Range(start, end), lives))
    return tuple(found)


def without(all_: Sequence[Stretch], done: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Return the parts of stretches that are in none of `done`."""
    taken: dict[int, list[Range]] = {}
    for one in done:
        taken.setdefault(one.partition, []).append(one.range)
    found: list[Stretch] = []
    for stretch in all_:
        start = stretch.range.start
        for hole in sorted(taken.get(stretch.partition, ()), key=lambda r: r.start):
            if hole.end <= start or hole.start >= stretch.range.end:
                continue
            if hole.start > start:
                found.append(replace(stretch, range=Range(start, hole.start)))
            start = max(start, hole.end)
        if start < stretch.range.end:
            found.append(replace(stretch, range=Range(start, stretch.range.end)))
    return tuple(found)


def contains(all_: Sequence[Stretch], parts: Sequence[Stretch]) -> bool:
    """Return whether `parts` were all read, and read once."""
    once = [stretch for stretch in all_ if stretch.lives == 1]
    return not without(parts, once)


def tile(parts: Sequence[Stretch], limit: int) -> list[tuple[Stretch, ...]]:
    """Cut stretches into windows of about `limit` offsets at most.

    Each window has the same share of every partition: records of about the same time are in the same files. Cuts are
    multiples of a bitmap's word from the beginning of a stretch.
    """
    number = max(1, -(-sum(map(len, parts)) // limit)) if parts else 0
    windows: list[list[Stretch]] = [[] for _ in range(number)]
    for _, group in groupby(parts, key=lambda stretch: stretch.partition):
        mine = list(group)
        total, before = sum(map(len, mine)), 0
        for stretch in mine:
            start, end = stretch.range.start, stretch.range.end
            cuts = [min(max(total * i // number - before, 0), len(stretch)) // WORD * WORD for i in range(number)]
            ends = [start + cut for cut in cuts[1:]] + [end]
            at = start
            for window, upto in zip(windows, ends, strict=True):
                if upto > at:
                    window.append(replace(stretch, range=Range(at, upto)))
                    at = upto
            before += len(stretch)
    return [tuple(window) for window in windows if window]


class Placement:
    """The addresses of a window's offsets in a bitmap: each span of a partition has its own, one after another."""

    def __init__(self, spans: Sequence[Stretch]) -> None:
        self.spans, self.size = tuple(spans), 0
        self._spans: dict[int, list[tuple[Stretch, int]]] = {}
        for span in self.spans:
            self._spans.setdefault(span.partition, []).append((span, self.size))
            self.size += -(-len(span) // WORD) * WORD
        self._bound = max(self._spans, default=-1) + 1
        # Start, end and base of each partition's first span, of its second one, and so on.
        self._tables = np.zeros((max(map(len, self._spans.values()), default=0), 3, self._bound), np.int64)
        for partition, placed in self._spans.items():
            for number, (span, base) in enumerate(placed):
                self._tables[number, :, partition] = span.range.start, span.range.end, base

    def place(self, partitions: Ints, offsets: Ints) -> Addresses:
        """Return the address of each record; -1 for one that is in no span."""
        found = np.full(len(offsets), -1, np.int64)
        if not len(offsets) or not self._bound:
            return found
        low, high = int(partitions.min()), int(partitions.max())
        if low == high:
            for span, base in self._spans.get(low, ()):
                inside = (offsets >= span.range.start) & (offsets < span.range.end)
                np.copyto(found, offsets - (span.range.start - base), where=inside)
            return found
        known = (partitions >= 0) & (partitions < self._bound)
        at = np.where(known, partitions, 0)
        for starts, ends, bases in self._tables:
            inside = known & (offsets >= starts[at]) & (offsets < ends[at])
            np.copyto(found, offsets - (starts - bases)[at], where=inside)
        return found

    def ranges(self, partition: int, rows: Range) -> Iterator[Range]:
        """Yield the addresses of a range of offsets, as far as spans have it."""
        for span, base in self._spans.get(partition, ()):
            start, end = max(rows.start, span.range.start), min(rows.end, span.range.end)
            if start < end:
                yield Range(base + start - span.range.start, base + end - span.range.start)

    def words(self, part: Stretch) -> slice:
        """Return where a bitmap keeps the words of a part that `tile` made of one of the spans."""
        for span, base in self._spans.get(part.partition, ()):
            if span.range.start <= part.range.start < span.range.end:
                first = (base + part.range.start - span.range.start) // WORD
                return slice(first, first + -(-len(part) // WORD))
        raise KeyError(part)


@dataclass(frozen=True, slots=True)
class Box:
    """The bounds of a file's records: two partitions and two offsets, all of them inside."""

    partition_low: int
    partition_high: int
    offset_low: int
    offset_high: int

    def contains(self, other: Box) -> bool:
        """Return whether another box is within this one."""
        return (
            self.partition_low <= other.partition_low
            and other.partition_high <= self.partition_high
            and self.offset_low <= other.offset_low
            and other.offset_high <= self.offset_high
        )


Claim = Mapping[int, Range]
"""The offsets of a commit's files, as it states them: a range for each partition."""


class Boxes:
    """Boxes of many files, asked which of them touch a window. A box that is None touches all.

    A file with a claim touches only what its box and its claim have.
    """

    def __init__(self, boxes: Sequence[Box | None], claims: Sequence[Claim | None] = ()) -> None:
        self._claims: dict[int, tuple[Claim, list[int]]] = {}
        for index, claim in enumerate(claims):
            if claim is not None:
                self._claims.setdefault(id(claim), (claim, []))[1].append(index)
        self._edges = np.array([(b.partition_low, b.partition_high) if b else (0, 0) for b in boxes], np.int64)
        self._everywhere = np.array([box is None for box in boxes], np.bool_)
        groups: dict[tuple[int, int], list[int]] = {}
        for index, box in enumerate(boxes):
            if box is not None:
                groups.setdefault((box.partition_low, box.partition_high), []).append(index)
        self._groups = {
            key: (
                np.array(members),
                np.array([(box.offset_low, box.offset_high) for box in (boxes[i] for i in members) if box], np.int64).T,
            )
            for key, members in groups.items()
        }

    def touching(self, parts: Sequence[Stretch]) -> Mask:
        """Return for each box whether it has an offset in common with one of the stretches."""
        touched = self._everywhere.copy()
        by_partition: dict[int, list[Range]] = {}
        for part in parts:
            by_partition.setdefault(part.partition, []).append(part.range)
        for (low, high), (members, (first, last)) in self._groups.items():
            wanted = [low] if low == high else [p for p in by_partition if low <= p <= high]
            for partition in wanted:
                for one in by_partition.get(partition, ()):
                    touched[members] |= (first < one.end) & (last >= one.start)
        for claim, indexes in self._claims.values():
            shared = sorted(
                p
                for p, mine in claim.items()
                if len(mine) and any(mine.start < r.end and r.start < mine.end for r in by_partition.get(p, ()))
            )
            low, high = self._edges[indexes].T
            touched[indexes] &= np.searchsorted(shared, low) < np.searchsorted(shared, high, side="right")
        return touched
