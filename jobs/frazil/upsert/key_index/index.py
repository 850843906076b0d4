"""The places of keys' rows: data files that come and go, and rows that are deleted. No Spark and no Iceberg here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from frazil.upsert.key_index.sorted_entries import BYTES, GONE, U64, Numbers, SortedEntries, on_disk

NOWHERE = -1
"""The Kafka partition of a row that has none, or whose partition does not count."""
LEAST_IN_MEMORY, MOST_IN_MEMORY, MEMORY_SHARE = 1 << 18, 1 << 21, 32
"""New entries stay in memory up to a share of all, within bounds: 6 MB to 50 MB. Then they go to a file of their own."""
FILES = 5
"""More files than this are merged to one."""


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows of data files: the hash of each one's key, the number of its file in `paths`, its position and Kafka partition."""

    paths: Sequence[str]
    high: U64
    low: U64
    file: Numbers
    position: Numbers
    partition: Numbers


@dataclass(frozen=True, slots=True)
class Places:
    """The rows of some keys: of each the number of the key, data file, position and Kafka partition.

    `entries` says where the entries are, for `delete`: until the next change.
    """

    key: Numbers
    path: npt.NDArray[np.object_]
    position: Numbers
    partition: Numbers
    entries: Sequence[tuple[SortedEntries, Numbers]] = ()


class PlacesOfKeys:
    """The rows of a table by the hash of their key. Temporary files are in `folder`, or where the system has them."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._files: list[SortedEntries] = []
        self._new = SortedEntries.none()
        # A source is a data file and a Kafka partition: so an entry names both by one number.
        self._sources: dict[str, list[int]] = {}
        self._paths, self._partitions = np.empty(0, object), np.empty(0, np.int32)
        self._rows = np.empty(0, np.int64)
        self._is_live = np.empty(0, np.bool_)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._rows[self._is_live].sum())

    @property
    def paths(self) -> Collection[str]:
        """The data files."""
        return self._sources.keys()

    @property
    def bytes(self) -> int:
        """The size of the files on disk."""
        return BYTES * sum(map(len, self._files))

    def add(self, found: KeyedRows) -> None:
        """Add the rows of data files that are not there yet. Raises `OSError`."""
        if len(found.position) and int(found.position.max()) >= 2**32:
            raise OverflowError("a data file has more than 2^32 rows")
        made = SortedEntries.of(found.high, found.low, self._numbered(found), found.position)
        if len(made) > max(LEAST_IN_MEMORY, len(self._new)):
            self._files.append(on_disk(self._folder, [made], self._is_live))
        else:
            self._new = self._new.with_(made)
        most = min(max(LEAST_IN_MEMORY, sum(map(len, self._files)) // MEMORY_SHARE), MOST_IN_MEMORY)
        if len(self._new) > most:
            self._files.append(on_disk(self._folder, [self._new], self._is_live))
            self._new = SortedEntries.none()

    def settle(self, most: int = FILES) -> None:
        """Merge the files if there are more than `most`. Raises `OSError`."""
        if len(self._files) > most:
            self._files = [on_disk(self._folder, self._files, self._is_live)]

    def forget(self, paths: Collection[str]) -> None:
        """Forget the rows of data files that the table no longer has."""
        for path in paths:
            self._is_live[self._sources.pop(path, [])] = False

    def look(self, high: U64, low: U64) -> Places:
        """Return where the rows of keys are."""
        keys, sources, positions = list[Numbers](), list[Numbers](), list[Numbers]()
        entries = []
        for part in (*self._files, self._new):
            key, at = part.look(high, low)
            is_there = self._is_live[part.source[at]]
            key, at = key[is_there], at[is_there]
            keys.append(key)
            sources.append(part.source[at])
            positions.append(part.position[at])
            entries.append((part, at))
        source = np.concatenate(sources)
        return Places(
            np.concatenate(keys),
            self._paths[source],
            np.concatenate(positions).astype(np.int64),
            self._partitions[source],
            entries,
        )

    def delete(self, places: Places) -> None:
        """Take rows away that `look` returned since the last other change."""
        for part, at in places.entries:
            at = np.unique(at)
            np.subtract.at(self._rows, part.source[at], 1)
            part.source[at] = GONE

    def _numbered(self, found: KeyedRows) -> Numbers:
        """Return the source of each row; new ones get the next numbers."""
        span = int(found.partition.max(initial=0)) + 2
        pair, number, count = np.unique(
            found.file.astype(np.int64) * span + found.partition - NOWHERE, return_inverse=True, return_counts=True
        )
        first = len(self._paths)
        for path in found.paths:
            self._sources[path] = []
        for n, file in enumerate(pair // span):
            self._sources[found.paths[file]].append(first + n)
        names = np.array([found.paths[file] for file in pair // span], object)
        self._paths = np.concatenate([self._paths, names])
        self._partitions = np.concatenate([self._partitions, (pair % span + NOWHERE).astype(np.int32)])
        self._rows = np.concatenate([self._rows, count])
        self._is_live = np.concatenate([self._is_live, np.ones(len(pair), np.bool_)])
        return number + first
