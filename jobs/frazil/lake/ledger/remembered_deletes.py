"""The files of deleted keys that a commit names: which a batch keeps, which it merges, and which it forgets. Pure.

A table whose records have an order remembers for some time which keys it deleted, and the order of each delete. Each batch that
deletes adds a file. Files are merged when there are many of one size, so that a key is written a few times, however many batches
come. They stay in the order of their batches, so that an old file is forgotten without being read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from frazil.lake.ledger.next_offsets import canonical

SIZES = (1 << 12, 1 << 15, 1 << 18)
"""The most keys of a file of each size; a larger one is not merged again."""
ROWS_A_FILE = 1 << 20
"""The keys that a merge writes to a file. The pieces of a larger merge have half as many at least: no size, so they stay."""
EACH = 8
"""So many files of the smallest size are merged, and so many more of each larger one with those after them."""


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A file of deleted keys: where it is, and when the newest of its deletes was staged, in microseconds since 1970."""

    location: str
    rows: int
    bytes: int
    newest: int


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of the key in the table: its field id, and its name when a batch last wrote the list of files."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class RememberedDeletes:
    """The files of the keys that a table has deleted, oldest first.

    The files have the columns of the key by number, in the order of `columns`.
    Deletes that were staged up to `forgotten`, in microseconds since 1970, count no more, also if they are in a file that has later
    ones: neither a longer time nor a slower clock brings them back.
    """

    files: tuple[KeyFile, ...] = ()
    forgotten: int = 0
    columns: tuple[KeyColumn, ...] = ()

    def __str__(self) -> str:
        """Return canonical JSON, as the summary holds it: what all locations begin with, and the rest of each."""
        begin = self._begin
        files = [[file.location.removeprefix(begin), file.rows, file.bytes, file.newest] for file in self.files]
        key = [[column.id, column.name] for column in self.columns]
        return canonical({"begin": begin, "files": files, "forgotten": self.forgotten, "key": key})

    @classmethod
    def parse(cls, text: str) -> RememberedDeletes:
        """Return the files of which `str()` wrote a text."""
        document = json.loads(text)
        files = tuple(KeyFile(document["begin"] + rest, *numbers) for rest, *numbers in document["files"])
        columns = tuple(KeyColumn(number, name) for number, name in document["key"])
        return cls(files, document["forgotten"], columns)

    @property
    def _begin(self) -> str:
        """The beginning of all locations."""
        first, last = min(self.locations, default=""), max(self.locations, default="")
        return first[: next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]

    @property
    def locations(self) -> tuple[str, ...]:
        """The locations of the files."""
        return tuple(file.location for file in self.files)

    def in_order(self, ids: Mapping[str, int]) -> tuple[str, ...] | None:
        """Return the columns of the table's key, name -> field id, in the order of the files; None if it is not known.

        A column that was renamed keeps its id. One that was dropped and added again has another id, and its name, or it is the only
        one that is left.
        """
        if not self.files:
            return tuple(sorted(ids, key=ids.__getitem__))
        if len(self.columns) != len(ids):
            return None
        free = {number: name for name, number in ids.items()}
        found = {column: free.pop(column.id) for column in self.columns if column.id in free}
        left = [column for column in self.columns if column not in found]
        for column in left:
            if column.name in free.values():
                found[column] = free.pop(ids[column.name])
        left = [column for column in self.columns if column not in found]
        if len(left) == 1:
            ((_, found[left[0]]),) = free.items()
        return tuple(found[column] for column in self.columns) if len(left) < 2 else None

    def since(self, moment: int) -> RememberedDeletes:
        """Return the files with deletes that were staged after a moment, and after all that was forgotten before."""
        forgotten = max(moment, self.forgotten)
        return replace(self, files=tuple(file for file in self.files if file.newest > forgotten), forgotten=forgotten)

    def without(self, locations: Sequence[str]) -> RememberedDeletes:
        """Return all files but those at these locations."""
        return replace(self, files=tuple(file for file in self.files if file.location not in locations))

    @property
    def merged_next(self) -> RememberedDeletes:
        """The newest files that become one with the next one, none if there are few."""
        first = len(self.files)
        for number, most in enumerate(SIZES, 1):
            begin = first
            while begin and self.files[begin - 1].rows <= most:
                begin -= 1
            if first - begin + 1 >= EACH * number:
                first = begin
        return replace(self, files=self.files[first:])

    def after(self, merged: RememberedDeletes, written: Sequence[KeyFile]) -> RememberedDeletes:
        """Return the files after a commit that wrote new ones, the `merged` ones among them."""
        return replace(self, files=(*self.without(merged.locations).files, *written))
