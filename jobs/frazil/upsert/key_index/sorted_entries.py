"""Rows by the hash of their key: sorted columns in memory, or in files that have no name and are mapped into memory.

An entry takes 24 bytes: 128 bits of hash, the number of the row's source, and its position in the data file. A file without a name
belongs to one process: no other one opens or damages it, and it is gone when the process ends, however it ends.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
Numbers = npt.NDArray[Any]
GONE = -1
"""The source of an entry whose row was deleted."""
KINDS: tuple[type, ...] = (np.uint64, np.uint64, np.int32, np.uint32)
BYTES = 24
"""The size of an entry."""
STEP = 1 << 20
"""About so many entries are merged at once."""


@dataclass(frozen=True, slots=True)
class SortedEntries:
    """Entries in the order of `high`; a key that several rows have is there several times.

    `high` and `low` are the hash of the key. `source` is the number of the data file and Kafka partition, or `GONE`, and `position`
    the row's place in the file.
    """

    high: U64
    low: U64
    source: Numbers
    position: Numbers

    @classmethod
    def of(cls, high: Numbers, low: Numbers, source: Numbers, position: Numbers) -> SortedEntries:
        """Sort entries."""
        order = np.argsort(high)
        columns = zip(KINDS, (high, low, source, position), strict=True)
        return cls(*(np.ascontiguousarray(column[order], dtype=kind) for kind, column in columns))

    @classmethod
    def none(cls) -> SortedEntries:
        """Return no entries."""
        return cls(*(np.empty(0, kind) for kind in KINDS))

    def __len__(self) -> int:
        return len(self.high)

    @property
    def columns(self) -> tuple[Numbers, ...]:
        """All columns, in the order of `KINDS`."""
        return self.high, self.low, self.source, self.position

    def look(self, high: U64, low: U64) -> tuple[Numbers, Numbers]:
        """Return the entries of keys that are not gone: of each the number of the key, and its own place here."""
        order = np.argsort(high)  # neighbours are on one page
        first, after = (np.searchsorted(self.high, high[order], side) for side in ("left", "right"))
        counts = after - first
        key = np.repeat(order, counts)
        at = np.arange(len(key)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        found = (self.low[at] == low[key]) & (self.source[at] != GONE)
        return key[found], at[found]

    def with_(self, more: SortedEntries) -> SortedEntries:
        """Return these and a few more entries, in memory."""
        at = np.searchsorted(self.high, more.high)
        return SortedEntries(*(np.insert(old, at, new) for old, new in zip(self.columns, more.columns, strict=True)))

    def between(self, first: int, last: int) -> tuple[Numbers, ...]:
        """Return the columns of the entries from the hash `first` to `last`."""
        low = np.searchsorted(self.high, np.uint64(first), "left")
        high = np.searchsorted(self.high, np.uint64(last), "right")
        return tuple(column[low:high] for column in self.columns)


def on_disk(folder: str | None, parts: Sequence[SortedEntries], is_live: npt.NDArray[np.bool_]) -> SortedEntries:
    """Write all entries whose source `is_live`, merged, to files without a name; `folder` is for temporary files.

    Raises `OSError` if the disk lacks room: all is written before it is mapped.
    """
    steps = -(-sum(map(len, parts)) // STEP) or 1
    bounds = [step * 2**64 // steps for step in range(steps)] + [2**64]
    rows = 0
    with ExitStack() as opened:
        files = [opened.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in KINDS]
        for first, after in pairwise(bounds):
            columns = [np.concatenate(c) for c in zip(*(p.between(first, after - 1) for p in parts), strict=True)]
            source = columns[2]
            kept = np.flatnonzero((source != GONE) & is_live[source])
            order = kept[np.argsort(columns[0][kept])]
            for file, column in zip(files, columns, strict=True):
                file.write(column[order].tobytes())
            rows += len(order)
        return SortedEntries(*(_mapped(file, kind, rows) for file, kind in zip(files, KINDS, strict=True)))


def _mapped(file: IO[bytes], kind: type, rows: int) -> Numbers:
    """Return a file's content as an array that keeps the file; sources can be overwritten."""
    if not rows:
        return np.empty(0, kind)
    file.flush()
    return np.frombuffer(mmap.mmap(file.fileno(), rows * np.dtype(kind).itemsize), kind, rows)
