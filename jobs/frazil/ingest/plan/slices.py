"""Slices of time: how far a batch reads each partition so that it has all records before a time, and none behind it.

A table of current state without an order is read this way, as far as timestamps are in order: else a partition with little to
read would be far ahead of the others, and the delete of a key that moved there would come before the rows that it deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

_FAR_MS = 1 << 42  # the year 2109: a later time is the end of the log


def slice_ends(
    start: Mapping[int, int],
    stable: Mapping[int, int],
    max_rows: int,
    offsets_at: Callable[[int], Mapping[int, int]],
    *,
    after_ms: int = 0,
) -> tuple[dict[int, int], int]:
    """Return where a batch of at most `max_rows` ends in each partition, and the time of these ends, milliseconds since 1970.

    `start` and `stable` are what there is to read, `offsets_at` gives the first offset of a time or later, by partition; `after_ms`
    is the time of the slice before. At least half of `max_rows` are in the slice, unless so many records have one timestamp: then
    the slice has all of them, and may be larger. A partition is read in the order of its offsets, so a record with a time far ahead
    holds back those behind it.
    """

    def ends(ms: int) -> dict[int, int]:
        if ms >= _FAR_MS:
            return dict(stable)
        at = offsets_at(ms)
        return {p: min(max(at.get(p, end), start[p]), end) for p, end in stable.items()}

    def size(found: Mapping[int, int]) -> int:
        return sum(end - start[p] for p, end in found.items())

    if size(stable) <= max_rows:
        return dict(stable), _FAR_MS
    low, high, width = after_ms, _FAR_MS, 60_000
    best = ends(low)
    if size(best) > max_rows:  # of one timestamp, or of earlier ones that came late
        return best, low
    while low + width < _FAR_MS:  # doubled from the slice before: what is waiting is near it
        found = ends(low + width)
        if size(found) > max_rows:
            high = low + width
            break
        low, best, width = low + width, found, width * 2
    while size(best) * 2 < max_rows and high - low > 1:
        middle = (low + high) // 2
        found = ends(middle)
        low, high, best = (middle, high, found) if size(found) <= max_rows else (low, middle, best)
    return (best, low) if size(best) else (ends(high), high)
