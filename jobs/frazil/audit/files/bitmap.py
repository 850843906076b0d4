"""Count offsets in bitmaps: one bit for each offset of a window, whatever the number and order of the files.

A bitmap costs memory by the width of its window and not by the rows in it. Pages that no row touches cost nothing: the
operating system gives memory to them when they are first written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from frazil.audit.finding import Range

Addresses = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

WORD = 64
"""Bits in a word. Spans of offsets begin at multiples of it."""

FILL = 1 << 20
"""Bits that are set at a time when a range is filled."""

BLOCK = 1 << 14
"""Words that are looked at at a time when ranges are listed."""

_ONE = np.uint64(1)
_FULL = np.uint64(2**64 - 1)


class Bitmap:
    """A set of addresses below `size`."""

    def __init__(self, size: int) -> None:
        self.words: Words = np.zeros(-(-size // WORD), np.uint64)

    def mark(self, addresses: Addresses) -> Addresses:
        """Add addresses in any order. Return those that were set before, each as often as it is given too often."""
        if not len(addresses):
            return addresses
        steps = np.diff(addresses)
        twice = addresses[:0]
        if not bool((steps > 0).all()):
            addresses = np.sort(addresses)
            again = np.diff(addresses, prepend=addresses[0] - 1) == 0
            twice, addresses = addresses[again], addresses[~again]
        words = addresses >> 6
        bits = np.left_shift(_ONE, (addresses & (WORD - 1)).astype(np.uint64))
        begins = np.flatnonzero(np.diff(words, prepend=words[0] - 1))
        at = words[begins]
        new = np.bitwise_or.reduceat(bits, begins)
        old = self.words[at]
        self.words[at] = old | new
        if bool((old & new).any()):
            lengths = np.diff(begins, append=len(words))
            seen = (np.repeat(old, lengths) & bits) != 0
            twice = np.concatenate([twice, addresses[seen]])
        return twice

    def fill(self, start: int, end: int) -> Iterator[Addresses]:
        """Add the addresses from `start` up to and without `end`. Yield those that were set before, piece by piece."""
        while start < end:
            upto = min(end, (start // FILL + 1) * FILL)
            first, last = start // WORD, -(-upto // WORD)
            masks = _masks(start - first * WORD, upto - first * WORD)
            words = self.words[first:last]
            seen = words & masks
            if bool(seen.any()):
                yield np.flatnonzero(_bits(seen)).astype(np.int64) + first * WORD
            words |= masks
            start = upto


def count(words: Words) -> int:
    """Return the number of bits that are set."""
    return int(np.bitwise_count(words).sum(dtype=np.int64))


def missing(present: Words, size: int) -> Words:
    """Return the bits below `size` that are not set."""
    return _masks(0, size) & ~present


def ranges(words: Words, first: int, at_most: int) -> tuple[Range, ...]:
    """Return the first `at_most` ranges of bits that are set; bit 0 is the offset `first`."""
    found: list[Range] = []
    for begin in range(0, len(words), BLOCK):
        block = words[begin : begin + BLOCK]
        if not bool(block.any()):
            continue
        bits = np.concatenate([[0], _bits(block), [0]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(bits)) + (begin * WORD + first)
        found = joined([*found, *(Range(int(a), int(b)) for a, b in edges[: 2 * at_most + 2].reshape(-1, 2))])
        if len(found) > at_most:
            break
    return tuple(found[:at_most])


def joined(ranges: Sequence[Range]) -> list[Range]:
    """Return ranges in order, those that touch or overlap as one."""
    together: list[Range] = []
    for one in sorted(ranges, key=lambda r: r.start):
        if together and one.start <= together[-1].end:
            together[-1] = Range(together[-1].start, max(one.end, together[-1].end))
        else:
            together.append(one)
    return together


def _masks(start: int, end: int) -> Words:
    """Return words of which the bits from `start` up to and without `end` are set; `start` is in the first word."""
    masks = np.full(-(-end // WORD), _FULL, np.uint64)
    if len(masks):
        masks[0] &= np.uint64((2**64 - 1) << start & (2**64 - 1))
    if end % WORD:
        masks[-1] &= np.uint64((1 << end % WORD) - 1)
    return masks


def _bits(words: Words) -> npt.NDArray[np.uint8]:
    """Return one 0 or 1 for each bit, in the order of their addresses."""
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), bitorder="little")
