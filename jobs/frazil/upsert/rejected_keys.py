"""The keys of a batch's rejected records: a table of current state counts those whose newest record was rejected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.decode.decode import RecordDecoder
from frazil.decode.decoding import KEY, REASON, ROW
from frazil.decode.keys.row_key import RowKey
from frazil.schemas.reasons import Reason
from frazil.upsert.fold import KAFKA_OFFSET, KAFKA_PARTITION
from frazil.upsert.resolver import HASH
from frazil.upsert.spark_key_hash import key_hash
from frazil.upsert.stale_keys import Places, RejectedKeys

OF_NO_KEY = (Reason.NO_CHANGE, Reason.TRUNCATED)
"""Reasons of events that are no record of a row: they make no key stale."""
_KEY = "_frazil_rejected_key"


@contextmanager
def kept(rejected: DataFrame, decoding: RecordDecoder, row_key: RowKey) -> Iterator[DataFrame]:
    """Keep rejected records with their keys, so that these and the dead letters are of one reading of the topic."""
    records = rejected.withColumn(_KEY, decoding.key_of_rejected(row_key)).drop(ROW, KEY)
    records.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield records
    finally:
        records.unpersist()


def keys_of(records: DataFrame, row_key: RowKey, *, behind: int | None) -> RejectedKeys:
    """Return the keys of the records that `kept` yields; with `behind`, of those behind this offset of the only partition."""
    import numpy as np
    import pyarrow.compute as pc

    wanted = records.where(~F.col(REASON).isin([reason.value for reason in OF_NO_KEY]))
    if behind is not None:
        wanted = wanted.where(F.col("offset") > behind)
    of_key = [F.col(_KEY)[name].alias(name) for name in row_key.names]
    keys = wanted.select(*of_key, F.col("partition").alias(KAFKA_PARTITION), F.col("offset").alias(KAFKA_OFFSET))
    is_known = reduce(Column.__and__, (F.col(name).isNotNull() for name in row_key.names))
    hashed = F.when(is_known, key_hash(keys, row_key.names)).alias(HASH)
    found = keys.select(hashed, KAFKA_PARTITION, KAFKA_OFFSET).toArrow()
    known = found.filter(pc.is_valid(found[HASH]))
    places = Places(
        known[HASH].to_numpy().astype(np.int64), known[KAFKA_PARTITION].to_numpy(), known[KAFKA_OFFSET].to_numpy()
    )
    return RejectedKeys(places, found.num_rows - known.num_rows)
