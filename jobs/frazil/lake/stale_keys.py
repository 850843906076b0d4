"""The keys of a table of current state whose newest record was rejected, as each commit counts them. Pure.

Their rows are those of earlier records, or are missing. A later record of such a key that takes effect ends this, whether it
writes the row or deletes it. Within a batch the newest record of a key is that with the highest partition and offset; any record
of a later batch is newer. So for keys that stay in one partition, the size of batches does not change the result.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from frazil.lake.offsets import canonical

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Hashes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleKeys:
    """How many keys of a table are stale after a commit.

    `unknown` rejected records have a key that cannot be read: each may make one more key stale. `file` has the hashes of the stale
    keys, empty if there are none. Both are counted since the pipeline began, or `since` a batch was staged, microseconds since
    1970, if the file was lost.
    """

    keys: int = 0
    unknown: int = 0
    file: str = ""
    since: int = 0

    def __str__(self) -> str:
        """Return canonical JSON, as the summary holds it."""
        more = {name: value for name in ("file", "since") if (value := getattr(self, name))}
        return canonical({"keys": self.keys, "unknown": self.unknown, **more})

    @property
    def notes(self) -> list[str]:
        """What a reader of the table should know, in sentences; nothing if no key is stale, as far as is known."""
        since = f" since {datetime.fromtimestamp(self.since / 1e6, UTC):%Y-%m-%d %H:%M} UTC" if self.since else ""
        found = []
        if self.keys:
            counted = f" (counted{since})" if since else ""
            found.append(f"{self.keys:,} keys are stale: their newest record was rejected{counted}")
        if self.unknown:
            found.append(
                f"{self.unknown:,} rejected records{since} have a key that cannot be read; each may make a key stale"
            )
        return found

    @classmethod
    def parse(cls, text: str) -> StaleKeys:
        """Return what `str()` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Places:
    """Keys of a batch, by hash, and partition and offset of a record of each; a key may be there several times."""

    hashes: Hashes
    partitions: npt.NDArray[Any]
    offsets: npt.NDArray[Any]

    def newest(self) -> Places:
        """Return each key once, sorted by hash, with its highest partition and offset."""
        import numpy as np

        order = np.lexsort((self.offsets, self.partitions, self.hashes))
        hashes = self.hashes[order]
        is_last = np.append(hashes[1:] != hashes[:-1], True) if len(hashes) else np.empty(0, bool)
        return Places(hashes[is_last], self.partitions[order][is_last], self.offsets[order][is_last])


@dataclass(frozen=True, slots=True)
class RejectedKeys:
    """The keys of a batch's rejected records, as far as they can be read, and the number of the others."""

    places: Places
    unknown: int = 0


def stale_after(before: Hashes, landed: Places, rejected: Places) -> Hashes:
    """Return the sorted hashes of the keys that are stale after a batch whose newest records of each key are these."""
    import numpy as np

    landed, rejected = landed.newest(), rejected.newest()
    at = np.searchsorted(landed.hashes, rejected.hashes)
    has_landed = np.isin(rejected.hashes, landed.hashes)
    found = at[has_landed]
    partition, offset = rejected.partitions[has_landed], rejected.offsets[has_landed]
    # Equal: the record itself is a change that turned out to lack a value.
    is_newer = np.ones(len(rejected.hashes), bool)
    is_newer[has_landed] = (partition > landed.partitions[found]) | (
        (partition == landed.partitions[found]) & (offset >= landed.offsets[found])
    )
    left = np.setdiff1d(before, landed.hashes)
    result: Hashes = np.union1d(left, rejected.hashes[is_newer])
    return result


def as_text(hashes: Hashes) -> str:
    """Return the hashes as the file holds them: one a line, 16 hexadecimal digits."""
    return "".join(f"{number & (2**64 - 1):016x}\n" for number in hashes.tolist())


def parse_hashes(text: str, count: int) -> Hashes:
    """Return the hashes that `as_text` wrote. Raises `ValueError` if they are not so many."""
    import numpy as np

    lines: Sequence[str] = text.splitlines()
    if len(lines) != count or any(len(line) != 16 for line in lines):
        raise ValueError(f"{len(lines)} lines are not the hashes of {count} keys")
    found: Hashes = np.array([int(line, 16) for line in lines], np.uint64).view(np.int64)
    return np.sort(found)
