"""Where a batch ends so that pipelines of one topic meet: from then on they read the same offsets, once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frazil.job.shared_reads import Stretch


def meeting(start: Mapping[int, int], end: Mapping[int, int], others: Iterable[Stretch]) -> Stretch | None:
    """Return the batch of another pipeline at whose end the batch from `start` to `end` is to end; None if none is in it.

    Of several, this is the nearest one that is further than `start` in some partition.
    """

    def distance(other: Stretch) -> int:
        return sum(max(other.end.get(p, 0) - at, 0) for p, at in start.items())

    return min((other for other in others if met(start, end, other) != start), key=distance, default=None)


def met(start: Mapping[int, int], end: Mapping[int, int], other: Stretch) -> dict[int, int]:
    """Return the end of a batch that goes no further than `other`, and in no partition back."""
    return {p: min(end[p], max(other.end.get(p, 0), at)) for p, at in start.items()}
