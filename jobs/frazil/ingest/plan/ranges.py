"""The offsets that one batch reads of one partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets from `start` up to and without `end` of one partition."""

    partition: int
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


def ranges_of(start: Mapping[int, int], end: Mapping[int, int]) -> tuple[OffsetRange, ...]:
    """Return the ranges between two offsets of each partition, without empty ones."""
    return tuple(OffsetRange(p, start[p], to) for p, to in end.items() if to > start[p])


def halves(ranges: Sequence[OffsetRange]) -> tuple[list[OffsetRange], list[OffsetRange]]:
    """Return about half of what several ranges hold and the rest, by partitions; of one range, by offsets."""
    if len(ranges) > 1:
        return list(ranges[: len(ranges) // 2]), list(ranges[len(ranges) // 2 :])
    (only,) = ranges
    middle = (only.start + only.end) // 2
    return [replace(only, end=middle)], [replace(only, start=middle)]


def without(ranges: Sequence[OffsetRange], places: Iterable[tuple[int, int]]) -> list[list[OffsetRange]]:
    """Return the ranges without one stretch of each partition, from the first to the last of its `places`.

    A place is a partition and an offset. The ranges come in lists that name a partition once each; no list is empty.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for partition, offset in places:
        first[partition] = min(first.get(partition, offset), offset)
        last[partition] = max(last.get(partition, offset), offset)
    before = [replace(r, end=first[r.partition]) if r.partition in first else r for r in ranges]
    behind = [replace(r, start=last[r.partition] + 1) for r in ranges if r.partition in last]
    lists = ([r for r in some if r.end > r.start] for some in (before, behind))
    return [some for some in lists if some]
