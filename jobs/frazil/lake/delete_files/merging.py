"""Which delete files of a partition go, and what is written in their place. Pure: no file is read or written here.

Data files that are rewritten leave deletes behind that name rows of no file. Every reader opens them. A delete file of version 2
may name rows of several data files, so it goes only if all of these have gone; else what is left of it is merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from frazil.lake.delete_files.java_manifests import DeleteFile
from frazil.lake.delete_files.position_deletes import Positions
from frazil.lake.rewrite import DELETED_SHARE

OWN_FILES = 100
"""So many data files of a partition get a delete file of their own at most."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A partition's delete files that go, and the positions that new files must name instead, each once."""

    removed: tuple[DeleteFile, ...]
    positions: Positions = field(default_factory=dict)

    @property
    def sequence(self) -> int:
        """The sequence number of the new files: the highest, as a delete counts for data files of its own number and older ones."""
        return max(file.sequence for file in self.removed)


def named_most(files: Iterable[DeleteFile]) -> int:
    """Return how many Parquet files of one partition may name rows of one data file: so many a reader of it opens."""
    parquet = [file for file in files if not file.is_vector]
    own = Counter(file.of for file in parquet if file.of is not None)
    return sum(file.of is None for file in parquet) + max(own.values(), default=0)


def without_data(files: Iterable[DeleteFile], data: Set[str]) -> tuple[DeleteFile, ...]:
    """Return the files, each of one data file, whose data file is none of `data`."""
    return tuple(file for file in files if file.of is not None and file.of not in data)


def merge(named: Sequence[tuple[DeleteFile, Positions]], data: Set[str], *, many: int, writes: bool) -> Merge | None:
    """Decide about Parquet files of one partition, by the positions that they name; None if all stay.

    Files go that name rows of none of the `data` files. If these are not all, and `many` files name rows of one data file, or more
    deletes than not name rows of none, the others are merged, except those that are their data file's only one. Without `writes`,
    none are.
    """
    gone = tuple(file for file, at in named if not at.keys() & data)
    left = [(file, at) for file, at in named if at.keys() & data]
    count = Counter(path for _, at in left for path in at if path in data)
    total = sum(len(positions) for _, at in left for positions in at.values())
    live = sum(len(positions) for _, at in left for path, positions in at.items() if path in data)
    is_due = max(count.values(), default=0) >= many or 2 * live < total
    # One of several data files may be opened for others too, whose paths are between those that it names.
    merged = [(file, at) for file, at in left if file.of is None or any(count[path] > 1 for path in at)]
    if not (writes and is_due and merged):
        return Merge(gone) if gone else None
    return Merge((*gone, *(file for file, _ in merged)), _united([at for _, at in merged], data))


def in_files(positions: Positions, rows: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Return of which data files each new delete file names rows; `rows` are those of the data files, deleted ones included.

    Data files of which many rows are deleted get one of their own, so that manifests say how many these are: they are the next ones
    to be rewritten. The others share one.
    """
    share = {path: len(at) / rows[path] if rows.get(path) else 0.0 for path, at in positions.items()}
    most = sorted(share, key=lambda path: (-share[path], path))
    own = sorted(path for path in most[:OWN_FILES] if share[path] >= float(DELETED_SHARE))
    others = tuple(sorted(positions.keys() - set(own)))
    return [*((path,) for path in own), *([others] if others else [])]


def _united(named: Sequence[Positions], data: Set[str]) -> dict[str, Any]:
    import numpy as np

    parts: dict[str, list[Any]] = {}
    for at in named:
        for path in at.keys() & data:
            parts.setdefault(path, []).append(at[path])
    return {path: np.unique(np.concatenate(arrays)) for path, arrays in parts.items()}
