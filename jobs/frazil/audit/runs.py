"""Runs: a set of offsets as ranges, so that a partition of billions fits in memory.

What Frazil lands is nearly gapless: a range of a million offsets without its poison is a few runs, and costs as much as
they do (16 bytes each), not as its rows. The worst case is a topic compacted to every other offset: 16 bytes a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Range:
    """The offsets from `start` up to and without `end`."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return str(self.start) if len(self) == 1 else f"{self.start} to {self.end - 1}"


@dataclass(frozen=True, slots=True)
class Runs:
    """Offsets as ranges in order: `first` and `last` of each, both inside. A set has no two ranges that touch."""

    first: pa.Int64Array
    last: pa.Int64Array

    def __len__(self) -> int:
        return len(self.first)

    @property
    def offsets(self) -> int:
        """How many offsets there are."""
        if not len(self):
            return 0
        return int(pc.sum(self.last).as_py() - pc.sum(self.first).as_py() + len(self))

    def ranges(self, at_most: int | None = None) -> tuple[Range, ...]:
        """The ranges as values, the first `at_most` of them."""
        shown = slice(0, at_most)
        firsts, lasts = self.first[shown].to_pylist(), self.last[shown].to_pylist()
        return tuple(Range(first, last + 1) for first, last in zip(firsts, lasts, strict=True))


def of_ranges(ranges: Iterable[Range]) -> Runs:
    """Ranges as they are, in any order."""
    kept = [r for r in ranges if r.end > r.start]
    return Runs(pa.array([r.start for r in kept], pa.int64()), pa.array([r.end - 1 for r in kept], pa.int64()))


NONE = of_ranges(())


def of_rows(partitions: pa.Array, offsets: pa.Array) -> dict[int, Runs]:
    """The runs of rows, by partition, in the order of the rows: not yet a set. Neither array has nulls.

    Nothing is sorted here: rows lie in files in the order of their offsets, or nearly so.
    """
    if not len(offsets):
        return {}
    offsets, partitions = offsets.cast(pa.int64()), partitions.cast(pa.int64())
    follows = pc.and_(
        pc.equal(pc.pairwise_diff(offsets), 1),
        pc.equal(pc.pairwise_diff(partitions), 0),
    )  # of the first row, null: it follows nothing
    begins = pc.fill_null(pc.invert(follows), True)
    ends = pa.concat_arrays([begins[1:], pa.array([True])])
    first, last, partition = offsets.filter(begins), offsets.filter(ends), partitions.filter(begins)
    found = pc.unique(partition).to_pylist()
    if len(found) == 1:
        return {found[0]: Runs(first, last)}
    masks = ((p, pc.equal(partition, p)) for p in found)
    return {p: Runs(first.filter(mask), last.filter(mask)) for p, mask in masks}


def union(many: Sequence[Runs]) -> tuple[Runs, Runs]:
    """All offsets as a set, and the excess: what stands in it once more for each time beyond the first."""
    some = [runs for runs in many if len(runs)]
    if not some:
        return NONE, NONE
    first = pa.concat_arrays([runs.first for runs in some])
    last = pa.concat_arrays([runs.last for runs in some])
    order = pc.sort_indices(first)
    first, last = first.take(order), last.take(order)
    reach = pc.cumulative_max(last)  # how far all ranges so far go
    before = pa.concat_arrays([pa.array([first[0].as_py() - 2], pa.int64()), reach[:-1]])
    doubled = pc.less_equal(first, before)
    excess = Runs(first.filter(doubled), pc.min_element_wise(last, before).filter(doubled))
    begins = pc.greater(first, pc.add(before, 1))
    ends = pa.concat_arrays([begins[1:], pa.array([True])])
    return Runs(first.filter(begins), reach.filter(ends)), excess


def within(runs: Runs, ranges: Sequence[Range]) -> tuple[Runs, Runs]:
    """A set's offsets inside `ranges`, as a set, and those outside of all of them."""
    bounds, _ = union([of_ranges(ranges)])
    inside = NONE
    for bound in bounds.ranges():
        first = pc.max_element_wise(runs.first, bound.start)
        last = pc.min_element_wise(runs.last, bound.end - 1)
        some = pc.less_equal(first, last)
        inside, _ = union([inside, Runs(first.filter(some), last.filter(some))])
    return inside, _holes(runs, inside)


def holes(runs: Runs, ranges: Sequence[Range]) -> Runs:
    """The offsets of `ranges` that a set lacks."""
    bounds, _ = union([of_ranges(ranges)])
    return _holes(bounds, within(runs, ranges)[0])


def _holes(whole: Runs, part: Runs) -> Runs:
    """What `whole` has beyond `part`, a subset of it; both are sets."""
    if not len(part):
        return whole
    # A range of the difference begins where one of the whole begins or one of the part has ended, and ends likewise.
    first = pa.concat_arrays([whole.first, pc.add(part.last, 1)])
    last = pa.concat_arrays([pc.subtract(part.first, 1), whole.last])
    first, last = first.take(pc.sort_indices(first)), last.take(pc.sort_indices(last))
    some = pc.less_equal(first, last)
    return Runs(first.filter(some), last.filter(some))
