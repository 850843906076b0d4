"""Find the first offset at which a log holds another record than the one that was read from there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.clients.kafka import Span
from frazil.clients.kafka_records import Record
from frazil.declaration import Pipeline, Reading
from frazil.declaration.documents.to_json import to_json
from frazil.declaration.options import Isolation
from frazil.errors import InvalidInput, SparkFailed
from frazil.ingest.batch.read import beyond_spark, consumer_options, read
from frazil.ingest.plan.log_check import compared
from frazil.ingest.plan.ranges import OffsetRange, halves
from frazil.ingest.setup.existing_table import layout_of
from frazil.ingest.spark_errors import TimestampOverflow, explained
from frazil.job.context import JobContext
from frazil.lake.layout import shapes
from frazil.lake.ledger.next_offsets import Offsets
from frazil.recovery import decisions
from frazil.recovery.decisions import Acceptance, Accepted, places_of_both


def truncated_log(
    pipeline: Pipeline, job: JobContext, event: Accepted, committed: Offsets, topic_id: str, spans: Mapping[int, Span]
) -> Acceptance:
    """Return the ledger that an operator's decision on a truncated log makes. Raises `FrazilError` if no log was truncated.

    All of the log is compared, also records of transactions that were not committed.
    """
    pipeline = replace(pipeline, kafka=Reading(isolation=Isolation.READ_UNCOMMITTED))
    other: Collection[int] = ()
    if committed.topic_id == topic_id:
        other = compared(pipeline, job.kafka, committed, spans, of=spans.keys()).other
    if event is Accepted.LOG_TRUNCATED:
        return decisions.log_truncated(committed, topic_id, spans, other)
    if any(shape.get("mask") for shape in (*shapes(layout_of(job.iceberg, pipeline)), to_json(pipeline.shape.of_rows))):
        raise InvalidInput(
            "the rows have masked values, which cannot be compared with the log",
            where=f"pipeline {pipeline.name}",
            do=f"Accept {Accepted.LOG_TRUNCATED}, or land the topic in another table",
        )
    differs = {p: spans[p].stable for p in decisions.shorter(committed, spans) if p in spans}
    for p in other:
        last = committed.last.at[p].offset if committed.last is not None else None
        differs[p] = last if last is not None else committed.at[p]
    same = same_up_to(pipeline, job, committed, spans, differs)
    return decisions.log_truncated_replay(committed, topic_id, spans, same)


def same_up_to(
    pipeline: Pipeline, job: JobContext, committed: Offsets, spans: Mapping[int, Span], other: Mapping[int, int]
) -> dict[int, int]:
    """Return, for each partition of `other`, the offset up to which its log holds the records that were read.

    `other` says at which offset a partition's log is known to differ, or to end. Rows and dead letters are compared with the
    log by timestamp and, where the table keeps it as it was, by key. All records after the last one that is the same, before
    the first one that is not, count as other ones.
    """
    ranges = [OffsetRange(p, spans[p].earliest, min(committed.at[p], spans[p].stable)) for p in sorted(other)]
    ranges = [r for r in ranges if len(r) > 0]
    same = {p: spans[p].earliest for p in other}
    if not ranges:
        return same
    try:
        return same | _same_in(pipeline, job, committed, ranges, other, ())[0]
    except TimestampOverflow:
        return same | _same_in_pieces(pipeline, job, committed, ranges, other)


def _same_in_pieces(
    pipeline: Pipeline, job: JobContext, committed: Offsets, ranges: Sequence[OffsetRange], other: Mapping[int, int]
) -> dict[int, int]:
    """Return it for the partitions in which a record is the same, of a log with timestamps that Spark cannot read.

    The driver reads the records between such timestamps. A piece of the log that has more of them than it holds is halved.
    """
    same: dict[int, int] = {}
    differ: set[int] = set()
    pieces = [list(ranges)]  # the last is the next, as what comes after the first other record does not count
    while pieces:
        piece = [r for r in pieces.pop() if r.partition not in differ]
        if not piece:
            continue
        try:
            by_driver = beyond_spark(pipeline, job.kafka, piece)
        except MemoryError as error:
            if sum(map(len, piece)) == 1:
                raise _too_large(pipeline, piece[0], error) from None
            pieces.extend(reversed(halves(piece)))
            continue
        found, first = _same_in(pipeline, job, committed, piece, other, by_driver)
        same |= found
        differ |= first.keys()
    return same


def _too_large(pipeline: Pipeline, record: OffsetRange, error: MemoryError) -> SparkFailed:
    return SparkFailed(
        f"the record at offset {record.start} of partition {record.partition} has a timestamp beyond the calendar, and is too "
        f"large for the driver: {error}",
        where=_where(pipeline),
        do=f"`frazil accept {pipeline.name} log-truncated --reason …` goes on without the records that replaced others",
    )


def _same_in(
    pipeline: Pipeline,
    job: JobContext,
    committed: Offsets,
    ranges: Sequence[OffsetRange],
    other: Mapping[int, int],
    by_driver: Sequence[Record],
) -> tuple[dict[int, int], dict[int, int]]:
    """Return it where a record is the same, and the first offset where one is another one; `by_driver` is beyond Spark."""
    with explained(_where(pipeline), stopping=job.stopping, redact=job.redact):
        log = _log(pipeline, job, ranges, by_driver)
        compared = _compared(pipeline, job, committed, log, [r.partition for r in ranges]).persist()
        try:
            first = _by_partition(compared.where(~F.col("same")).groupBy("partition").agg(F.min("offset")))
            ends = {p: min(offset, first.get(p, offset)) for p, offset in other.items()}
            before = [(F.col("partition") == p) & (F.col("offset") < end) for p, end in ends.items()]
            is_last = F.col("same") & reduce(Column.__or__, before)
            last = compared.where(is_last).groupBy("partition").agg(F.max("offset"))
            return {p: offset + 1 for p, offset in _by_partition(last).items()}, first
        finally:
            compared.unpersist()


def _log(pipeline: Pipeline, job: JobContext, ranges: Sequence[OffsetRange], by_driver: Sequence[Record]) -> DataFrame:
    topic = pipeline.topic
    options = consumer_options(pipeline, job.kafka)
    group = job.consumers.group(f"{pipeline.name}.log", options)  # not the ingest's, whose isolation may be another one
    return read(
        job.spark,
        topic.name,
        ranges,
        options=options,
        isolation=pipeline.isolation.value,
        group=group,
        headers=False,
        by_driver=by_driver,
    )


def _where(pipeline: Pipeline) -> str:
    return f"pipeline {pipeline.name}, topic {pipeline.topic.name}"


def _compared(
    pipeline: Pipeline, job: JobContext, committed: Offsets, log: DataFrame, partitions: list[int]
) -> DataFrame:
    """Return partition, offset and whether any row or dead letter of this place is the log's record: places that have one."""
    known = places_of_both(pipeline, job, committed.topic).where(F.col("partition").isin(partitions))
    there = log.select("partition", "offset", F.unix_millis("timestamp").alias("log_ms"), F.col("key").alias("log_key"))
    is_key = ~F.col("has_key") | F.col("key").eqNullSafe(F.col("log_key"))
    is_same = F.col("ms").eqNullSafe(F.col("log_ms")) & is_key
    joined = known.join(there, ["partition", "offset"])
    return joined.groupBy("partition", "offset").agg(F.max(is_same).alias("same"))


def _by_partition(found: DataFrame) -> dict[int, int]:
    return {row[0]: row[1] for row in found.collect()}
