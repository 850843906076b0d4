"""Stale keys of an upsert table: keys whose newest record was rejected, so that their row is of an earlier record or is missing.

A later record of such a key that takes effect ends this, whether it writes the row or deletes it. Within a batch the newest record
of a key is that with the highest partition and offset; any record of a later batch is newer. So for keys that stay in one
partition, the size of batches does not change the result. Each commit names the file of the stale keys' hashes.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.decode.decoded_columns import REASON
from frazil.decode.keys.row_key import RowKey
from frazil.lake.iceberg_java import DAMAGED, Iceberg, thrown
from frazil.lake.java_classes import Java
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.key_totals import StaleKeys
from frazil.schemas.reasons import Reason
from frazil.upsert.resolver_protocol import HASH, KAFKA_OFFSET, KAFKA_PARTITION, key_hash

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Hashes = npt.NDArray[np.int64]


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


def no_keys(unknown: int) -> RejectedKeys:
    """Return no key, and so many more records whose key cannot be read; fewer, if some of before have landed."""
    import numpy as np

    return RejectedKeys(Places(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)), unknown)


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


class StaleKeysOfBatch:
    """The stale keys after a batch: `landed` are its keys, and `rejected` those of its rejected records, None without any.

    A batch that `clears` the table leaves none of before. `written` is the new file, if one was needed.
    """

    def __init__(
        self, iceberg: Iceberg, landed: Places, rejected: RejectedKeys | None, *, clears: bool, staged_us: int
    ) -> None:

        self._iceberg, self._landed, self._rejected = iceberg, landed, rejected or no_keys(0)
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
        before = replace(before, unknown=max(before.unknown + self._rejected.unknown, 0))
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


OF_NO_KEY = (Reason.NO_CHANGE, Reason.TRUNCATED)
"""Reasons of events that are no record of a row: they make no key stale."""
REJECTED_KEY = "_frazil_rejected_key"
"""Column with the key that the row of a rejected record would have."""


@contextmanager
def kept(records: DataFrame) -> Iterator[DataFrame]:
    """Keep rejected records with their keys, so that these and the dead letters are of one reading of the topic."""
    records.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield records
    finally:
        records.unpersist()


def keys_of(records: DataFrame, row_key: RowKey, *, after: int | None) -> RejectedKeys:
    """Return the keys of the records that `kept` yields; with `after`, of those after this offset of the only partition."""
    import numpy as np
    import pyarrow.compute as pc

    wanted = records.where(~F.col(REASON).isin([reason.value for reason in OF_NO_KEY]))
    if after is not None:
        wanted = wanted.where(F.col("offset") > after)
    of_key = [F.col(REJECTED_KEY)[name].alias(name) for name in row_key.names]
    keys = wanted.select(*of_key, F.col("partition").alias(KAFKA_PARTITION), F.col("offset").alias(KAFKA_OFFSET))
    is_known = reduce(Column.__and__, (F.col(name).isNotNull() for name in row_key.names))
    hashed = F.when(is_known, key_hash(keys, row_key.names)).alias(HASH)
    found = keys.select(hashed, KAFKA_PARTITION, KAFKA_OFFSET).toArrow()
    known = found.filter(pc.is_valid(found[HASH]))
    places = Places(
        known[HASH].to_numpy().astype(np.int64), known[KAFKA_PARTITION].to_numpy(), known[KAFKA_OFFSET].to_numpy()
    )
    return RejectedKeys(places, found.num_rows - known.num_rows)
