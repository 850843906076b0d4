"""Account: what became of each record of a batch, counted at both ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from frazil.declaration.formats import ErrorMode, Tombstones
from frazil.ingest.decode import REASON, UNKNOWN, UNKNOWN_KEY, unknown
from frazil.ingest.ranges import OffsetRange
from frazil.schemas.reasons import Reason

# Reasons whose records are kept even where the declaration skips what is rejected: a change of the table would admit them.
KEPT_ALWAYS = (Reason.INCOMPATIBLE_SCHEMA, Reason.KEY_SCHEMA)


def observe_records(records: DataFrame, observed: Observation) -> DataFrame:
    """Count the records as they come from Kafka, before anything else can lose one.

    Aggregates here update once a record and copy nothing; after decoding they would copy every row.
    """
    return records.observe(
        observed,
        F.count(F.lit(1)).alias("read"),
        F.sum(F.coalesce(F.length("value"), F.lit(0)) + F.coalesce(F.length("key"), F.lit(0))).alias("bytes"),
        F.max("timestamp").alias("newest"),
    )


def skips(reason: Column, on_error: ErrorMode, tombstones: Tombstones) -> Column:
    """Whether the declaration lets a rejected record go."""
    skipped = reason == Reason.TOMBSTONE.value if tombstones is Tombstones.SKIP else F.lit(False)
    if on_error is ErrorMode.SKIP:
        skipped = skipped | ~reason.isin([r.value for r in KEPT_ALWAYS])
    return skipped


def observe_rejected(
    rejected: DataFrame, observed: Observation, skipped: Column, ranges: Sequence[OffsetRange]
) -> DataFrame:
    """Count rejected records by reason, those that are skipped by reason and by partition, and note unknown frames."""
    reason = F.col(REASON)
    counts = [F.count_if((reason == r.value) & ~skipped).alias(f"rejected_{r}") for r in Reason]
    counts += [F.count_if((reason == r.value) & skipped).alias(f"skipped_{r}") for r in Reason]
    counts += [F.count_if((F.col("partition") == r.partition) & skipped).alias(f"at_{r.partition}") for r in ranges]
    first = F.min(F.struct("partition", "offset", REASON)).alias("first")
    frames = [unknown(UNKNOWN).alias("unknown"), unknown(UNKNOWN_KEY).alias("unknown_keys")]
    return rejected.observe(observed, *counts, *frames, first)


def by_reason(observed: Mapping[str, Any], kind: str) -> dict[str, int]:
    """The counts of one kind, `rejected` or `skipped`, without zeros."""
    found = {r.value: int(observed.get(f"{kind}_{r}") or 0) for r in Reason}
    return {reason: n for reason, n in found.items() if n}


def skipped_at(observed: Mapping[str, Any], ranges: Sequence[OffsetRange]) -> dict[int, int]:
    """Skipped records by partition, without zeros."""
    found = {r.partition: int(observed.get(f"at_{r.partition}") or 0) for r in ranges}
    return {partition: n for partition, n in found.items() if n}


def gaps(records: DataFrame, ranges: Sequence[OffsetRange]) -> dict[int, int]:
    """Offsets without a record, by partition, counted over the range once more."""
    found = {row["partition"]: row["count"] for row in records.groupBy("partition").count().collect()}
    missing = {r.partition: len(r) - found.get(r.partition, 0) for r in ranges}
    return {partition: n for partition, n in missing.items() if n}
