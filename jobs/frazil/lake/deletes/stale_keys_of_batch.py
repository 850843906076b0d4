"""The stale keys of a table after a batch: read from the file that the entry before it names, and written to a new one."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError

from frazil.lake.iceberg_java import DAMAGED, Iceberg, thrown
from frazil.lake.java_classes import Java
from frazil.lake.ledger import Entry
from frazil.lake.stale_keys import Places, RejectedKeys, StaleKeys, as_text, parse_hashes, stale_after

if TYPE_CHECKING:
    from frazil.lake.stale_keys import Hashes


class StaleKeysOfBatch:
    """What a batch does to the stale keys: `landed` are its keys, and `rejected` those of its rejected records, None without any.

    A batch that `clears` the table leaves none of before. `written` is the new file, if one was needed.
    """

    def __init__(
        self, iceberg: Iceberg, landed: Places, rejected: RejectedKeys | None, *, clears: bool, staged_us: int
    ) -> None:
        import numpy as np

        nothing = Places(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64))
        self._iceberg, self._landed, self._rejected = iceberg, landed, rejected or RejectedKeys(nothing)
        self._clears, self._staged_us = clears, staged_us
        self._of: tuple[StaleKeys, StaleKeys] | None = None
        self.written: tuple[str, ...] = ()

    def after(self, table: Java, last: Entry | None) -> StaleKeys:
        """Return the stale keys after the batch; `last` is the entry before it.

        Raises `Py4JJavaError` if the file of before exists and cannot be read.
        """
        before = self._before(last)
        if self._of is None or self._of[0] != before:
            self._of = (before, self._made(table, before))
        return self._of[1]

    def _before(self, last: Entry | None) -> StaleKeys:
        if last is None or last.keys is None:
            return StaleKeys()  # the table's first batch
        known = last.stale_keys
        if known is None:
            return StaleKeys(since=self._staged_us)
        return StaleKeys(since=known.since) if self._clears else known

    def _made(self, table: Java, before: StaleKeys) -> StaleKeys:
        import numpy as np

        hashes: Hashes | None = np.empty(0, np.int64)
        if before.file:
            hashes = self._read(table, before)
        if hashes is None:  # a figure is no reason to stop a pipeline
            before, hashes = StaleKeys(since=self._staged_us), np.empty(0, np.int64)
        now = stale_after(hashes, self._landed, self._rejected.places)
        before = replace(before, unknown=before.unknown + self._rejected.unknown)
        if np.array_equal(now, hashes):
            return before
        self.written = ()
        if not len(now):
            return replace(before, keys=0, file="")
        # Called `.stats` as decisions are, see `multi_table.decide`.
        location = f"{table.location()}/metadata/frazil-stale-keys-{uuid.uuid4().hex}.stats"
        self._iceberg.write_text(table, location, as_text(now))
        self.written = (location,)
        return replace(before, keys=len(now), file=location)

    def _read(self, table: Java, before: StaleKeys) -> Hashes | None:
        """Return the stale keys of before; None if their file is gone or damaged."""
        try:
            return parse_hashes(self._iceberg.read_text(table, before.file), before.keys)
        except ValueError:
            return None
        except Py4JJavaError as error:
            if thrown(error) not in DAMAGED and table.io().newInputFile(before.file).exists():
                raise
            return None
