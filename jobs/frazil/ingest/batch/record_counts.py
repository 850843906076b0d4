"""The counts of a batch's records, as they come from Kafka and as they are rejected: in Spark, and as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.declaration.formats import Bytes
from frazil.declaration.options import ErrorMode, Tombstones
from frazil.decode.decoded_columns import ELSEWHERE, REASON, UNKNOWN, UNKNOWN_KEY, WAITING, WAITING_KEY
from frazil.decode.frames.wire_format import begins_with_small_id, schema_id
from frazil.decode.shape.row_filter import is_filtered
from frazil.decode.shape.row_shape import RowShape
from frazil.decode.writers.seen_frames import MOST, SeenFrames
from frazil.ingest.plan import fingerprint
from frazil.ingest.plan.ranges import OffsetRange
from frazil.lake.ledger.last_records import LastRecord
from frazil.schemas.reasons import Reason
from frazil.schemas.wire_format import GUID_MAGIC

# Reasons whose records are kept even where the declaration skips what is rejected: a change of the table would admit them.
# A truncate is no record to let go: the table would keep rows that the source has not.
KEPT_ALWAYS = (Reason.INCOMPATIBLE_SCHEMA, Reason.KEY_SCHEMA, Reason.TRUNCATED)
BINS = 1_000_000  # of a histogram of partitions: while there are fewer of them, times tasks, each has a bin of its own
TAIL = 1024  # records at the ends of all ranges together whose timestamp and fingerprint are kept
TAIL_OF_ONE = 8  # ... of one range at least
_TAIL, _KEY_ID = "_frazil_tail", "_frazil_key_id"
AHEAD_MS = 3_600_000  # a timestamp further in the future says nothing of how far a topic was read


@dataclass(frozen=True, slots=True)
class Read:
    """The counts of records as they came from Kafka. `tail` are those at the end of each range, for `last_records`.

    `key_ids` are the lowest and the highest schema id that keys may begin with; None if none does, or they were not looked for.
    `elsewhere` counts, by partition, those that a route leaves to other tables before they are decoded.
    """

    records: int
    bytes: int
    by_partition: Mapping[int, int]
    tail: Sequence[str] = ()
    key_ids: tuple[int, int] | None = None
    elsewhere: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rejected:
    """The counts of rejected records: those that are kept and those that are skipped by reason, and these by partition.

    `keyless` of them have no key, whatever they are rejected for. `elsewhere` counts, by partition, those that are another table's.
    `values` and `keys` are the frames without a decoder, and `last_truncate` is the highest offset of a truncate.
    """

    kept: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    skipped_at: Mapping[int, int] = field(default_factory=dict)
    values: SeenFrames = SeenFrames()  # noqa: RUF009 # frozen
    keys: SeenFrames = SeenFrames()  # noqa: RUF009 # frozen
    last_truncate: int | None = None
    keyless: int = 0
    elsewhere: Mapping[int, int] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """The number of records without a row."""
        return sum(map(sum, (self.kept.values(), self.skipped.values(), self.elsewhere.values())))


@dataclass(frozen=True, slots=True)
class Shaped:
    """The records that do not match the declared condition: those without effect by partition, and how many are deletes.

    `late_events` is how many rows have a late event.
    """

    by_partition: Mapping[int, int] = field(default_factory=dict)
    unmatched: int = 0
    late_events: int = 0

    @property
    def records(self) -> int:
        """The number of records without effect."""
        return sum(self.by_partition.values())


def may_be_framed(pipeline: Pipeline) -> bool:
    """Return whether bytes are the key of a row, so that only a registry can say whether they begin with a schema's id."""
    has_key = pipeline.write.has_key and pipeline.write.key is None
    return has_key and isinstance(pipeline.topic.key, Bytes)


def observe_records(
    records: DataFrame,
    observed: Observation | str,
    ranges: Sequence[OffsetRange] | None,
    *,
    with_key_ids: bool = False,
    with_bodies: bool = True,
    is_routed: bool = False,
    also: Sequence[Column] = (),
) -> DataFrame:
    """Count the records as they come from Kafka, before anything else can lose one, in all and by partition.

    Aggregates here update once a record and copy nothing; after decoding they would copy every row. Each is one for all
    partitions: one for each would be evaluated for each record. Without `ranges` all records are their tail, as may be where
    there are few. With `with_key_ids` they note `Read.key_ids`. `with_bodies` is that of
    fingerprints. If they are routed, those of other tables (`ELSEWHERE`) are counted and left out. `also` are further aggregates.
    """
    of_keys = [F.min(_KEY_ID).alias("lowest_key_id"), F.max(_KEY_ID).alias("highest_key_id")] if with_key_ids else []
    if with_key_ids:
        records = records.withColumn(
            _KEY_ID, F.when(begins_with_small_id(F.col("key")), schema_id(F.col("key"), F.lit(None)))
        )
    # The tail is a column, so that generated code makes it: an aggregate interprets what is more than a column.
    counted = records.withColumn(_TAIL, _tail(ranges, with_bodies=with_bodies)).observe(
        observed,
        F.count(F.lit(1)).alias("read"),
        F.sum(F.coalesce(F.length("value"), F.lit(0)) + F.coalesce(F.length("key"), F.lit(0))).alias("bytes"),
        by_number(F.col("partition")).alias("partitions"),
        F.collect_list(_TAIL).alias("tail"),
        *of_keys,
        *([by_number(F.when(F.col(ELSEWHERE), F.col("partition"))).alias("elsewhere")] if is_routed else ()),
        *also,
    )

    return here(counted) if is_routed else counted


def observe_own(records: DataFrame, observed: Observation | str) -> DataFrame:
    """Count the records of a part of a read, in all and those that are this table's by partition; return these."""
    own = by_number(F.when(~F.col(ELSEWHERE), F.col("partition"))).alias("own")
    return here(records.observe(observed, F.count(F.lit(1)).alias("read"), own))


def own(observed: Mapping[str, Any], of_all: Read, rows: int) -> Read | None:
    """Return the counts of the read, with what is elsewhere by `observe_own`; None if this did not see so many `rows`."""
    if int(observed["read"] or 0) != rows:
        return None
    own = counts(observed["own"])
    elsewhere = {p: number - own.get(p, 0) for p, number in of_all.by_partition.items()}
    return replace(of_all, elsewhere={p: number for p, number in elsewhere.items() if number})


def here(records: DataFrame) -> DataFrame:
    """Return records without those that are another table's, as the column `ELSEWHERE` says."""
    return records.where(~F.col(ELSEWHERE))


def observe_elsewhere(decoded: DataFrame, observed: Observation | str) -> DataFrame:
    """Count decoded records that are another table's, by partition; they stay."""
    return decoded.observe(observed, by_number(F.when(F.col(ELSEWHERE), F.col("partition"))).alias("elsewhere"))


def elsewhere(observed: Mapping[str, Any]) -> dict[int, int]:
    """Return what `observe_elsewhere` counted."""
    return counts(observed["elsewhere"])


def observe_shaped(landed: DataFrame, observed: Observation | str, shape: RowShape, dropped: Column) -> DataFrame:
    """Return decoded records without those that do not match and have no effect; see `Shaped` for what it counts."""
    is_other = F.lit(False) if shape.filter is None else is_filtered()
    is_late = F.lit(False) if shape.times is None else shape.times.is_late()
    counted = landed.observe(
        observed,
        by_number(F.when(is_other & dropped, F.col("partition"))).alias("filtered"),
        F.count_if(is_other & ~dropped).alias("unmatched"),
        F.count_if(is_late & ~is_other).alias("late_events"),
    )
    return counted if shape.filter is None else counted.where(~(is_other & dropped))


def shaped(observed: Mapping[str, Any]) -> Shaped:
    """Return what `observe_shaped` counted."""
    return Shaped(counts(observed["filtered"]), int(observed["unmatched"] or 0), int(observed["late_events"] or 0))


def by_number(number: Column) -> Column:
    """Return an aggregate that counts records by partition, or by another number, exactly; null is not counted."""
    return F.histogram_numeric(number, F.lit(BINS))


def read(observed: Mapping[str, Any]) -> Read:
    """Return what `observe_records` counted."""
    by_partition = counts(observed["partitions"])
    low, high = observed.get("lowest_key_id"), observed.get("highest_key_id")
    key_ids = None if low is None or high is None else (int(low), int(high))
    return Read(
        records=int(observed["read"] or 0),
        bytes=int(observed["bytes"] or 0),
        by_partition=by_partition,
        tail=observed["tail"] or (),
        key_ids=key_ids,
        elsewhere=counts(observed.get("elsewhere")),
    )


def counts(found: Sequence[Any] | None) -> dict[int, int]:
    """Return the counts of `by_number`. A partition that several tasks read has a bin of each."""
    counted: dict[int, int] = {}
    for row in found or ():
        counted[int(row["x"])] = counted.get(int(row["x"]), 0) + int(row["y"])
    return dict(sorted(counted.items()))


def _tail(ranges: Sequence[OffsetRange] | None, *, with_bodies: bool) -> Column:
    """Return what is kept of a record at the end of its range, else null. There are several: the last offsets may hold none.

    It is one text: a struct takes Spark and Python ten times as long on the way to the driver.
    """
    ms = F.coalesce(F.unix_millis("timestamp").cast("string"), F.lit(""))
    record = F.concat_ws(" ", "partition", "offset", fingerprint.of_columns(bodies=with_bodies), ms)
    if ranges is None:
        return record
    many = max(TAIL_OF_ONE, TAIL // max(len(ranges), 1))
    begins = {r.partition: r.end - many for r in ranges}
    every = ",".join(str(begins.get(p, 2**63 - 1)) for p in range(max(begins, default=0) + 1))
    # One text, split when the plan is made: an array of a literal for each partition takes seconds to build for a thousand.
    at = F.get(F.split(F.lit(every), ",").cast("array<bigint>"), F.col("partition"))
    return F.when(F.col("offset") >= at, record)


def last_records(tail: Sequence[str], epochs: Mapping[int, int | None], *, now_ms: float) -> dict[int, LastRecord]:
    """Return the last record that was read of each partition, from the tail of its range."""
    found: dict[int, LastRecord] = {}
    rows = (
        (int(p), int(offset), fingerprinted, at) for p, offset, fingerprinted, at in (row.split(" ") for row in tail)
    )
    for p, offset, fingerprinted, at in sorted(rows):
        ms = int(at) if at and int(at) <= now_ms + AHEAD_MS else None
        before = found[p].newest_ms if p in found else None
        newest = max((known for known in (before, ms) if known is not None), default=None)
        found[p] = LastRecord(offset, fingerprinted, epochs.get(p), newest)
    return found


def skips(reason: Column, on_error: ErrorMode, tombstones: Tombstones, *, truncates: bool = False) -> Column:
    """Return whether the declaration lets a rejected record go; `truncates` too, whose effect is that of the batch."""
    skipped = reason == Reason.NO_CHANGE.value
    if truncates:
        skipped = skipped | (reason == Reason.TRUNCATED.value)
    if tombstones is Tombstones.SKIP:
        skipped = skipped | (reason == Reason.TOMBSTONE.value)
    if on_error is ErrorMode.SKIP:
        skipped = skipped | ~reason.isin([r.value for r in KEPT_ALWAYS])
    return skipped


def observe_rejected(rejected: DataFrame, observed: Observation | str, skipped: Column) -> DataFrame:
    """Count rejected records by reason, those that are skipped by reason and by partition, and note frames for `seen_frames`.

    Those of other tables are counted by partition and left out.
    """
    reason, is_here = F.col(REASON), F.col(REASON) != Reason.ROUTE.value
    number = F.array_position(F.array(*map(F.lit, Reason)), reason)
    counted = [
        by_number(F.when(is_here & ~skipped, number)).alias("rejected"),
        by_number(F.when(is_here & skipped, number)).alias("skipped"),
        by_number(F.when(is_here & skipped, F.col("partition"))).alias("skipped_at"),
        by_number(F.when(~is_here, F.col("partition"))).alias("elsewhere"),
    ]
    values, keys = _frames(UNKNOWN, WAITING, "values"), _frames(UNKNOWN_KEY, WAITING_KEY, "keys")
    last_truncate = F.max(F.when(reason == Reason.TRUNCATED.value, F.col("offset"))).alias("last_truncate")
    keyless = F.count_if(is_here & F.col("key").isNull()).alias("keyless")
    return rejected.observe(observed, *counted, *values, *keys, last_truncate, keyless).where(is_here)


def _frames(unknown: str, waiting: str, name: str) -> list[Column]:
    """Return aggregates that note frames in bounded memory: a sketch of the unknown, of which there may be one a record."""
    return [
        F.expr(f"approx_top_k({unknown}, {MOST + 2}, {4 * MOST})").alias(f"{name}_unknown"),  # null is one of them
        F.count(unknown).alias(f"{name}_count"),
        F.count_if(F.col(unknown).startswith(f"{GUID_MAGIC:02X}")).alias(f"{name}_guids"),
        F.collect_set(waiting).alias(f"{name}_waiting"),
    ]


def rejected(observed: Mapping[str, Any]) -> Rejected:
    """Return what `observe_rejected` counted."""
    return Rejected(
        kept=by_reason(observed, "rejected"),
        skipped=by_reason(observed, "skipped"),
        skipped_at=counts(observed["skipped_at"]),
        values=seen_frames(observed, "values"),
        keys=seen_frames(observed, "keys"),
        last_truncate=observed["last_truncate"],
        keyless=int(observed["keyless"] or 0),
        elsewhere=counts(observed["elsewhere"]),
    )


def seen_frames(observed: Mapping[str, Any], name: str) -> SeenFrames:
    """Return the frames, of `values` or of `keys`, that `observe_rejected` noted.

    All unknown ones are listed if their counts add up; the sketch estimates only when there are more than it lists.
    """
    listed = [row for row in observed[f"{name}_unknown"] or () if row["item"] is not None]
    is_all = len(listed) <= MOST and sum(row["count"] for row in listed) == (observed[f"{name}_count"] or 0)
    return SeenFrames(
        waiting=tuple(map(bytes.fromhex, sorted(observed[f"{name}_waiting"] or ()))),
        unknown=tuple(map(bytes.fromhex, sorted(row["item"] for row in listed)[:MOST])),
        is_all=is_all,
        has_guids=bool(observed[f"{name}_guids"]),
    )


def by_reason(observed: Mapping[str, Any], kind: str) -> dict[str, int]:
    """Return the counts of one kind, `rejected` or `skipped`, without zeros."""
    reasons = list(Reason)
    return {reasons[number - 1].value: n for number, n in counts(observed[kind]).items()}
