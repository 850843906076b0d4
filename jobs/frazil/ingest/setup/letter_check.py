"""Compare dead letters that are to be removed with the records that Kafka has at their offsets."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.clients.kafka import Kafka
from frazil.clients.kafka_records import Record
from frazil.dead_letters.encrypted_bytes import MARK
from frazil.declaration import Pipeline
from frazil.declaration.options import Isolation
from frazil.ingest.plan import fingerprint

_COMPARED = {"timestamp", "key", "value"}
Place = tuple[int, int]  # partition and offset


def first_replaced(pipeline: Pipeline, kafka: Kafka, letters: DataFrame) -> Place | None:
    """Return the place of a dead letter whose record Kafka does not have; None if there is none.

    `letters` are of the pipeline's topic. Of each batch, the last dead letter of each partition is compared: a truncated log has
    other records, or none, from an offset on, and a batch is of one log. What a topic's compaction removed is not noticed.
    """
    last = F.max_by(F.struct("offset", _fingerprint(letters).alias("print")), "offset").alias("last")
    by_partition: dict[int, dict[int, str]] = {}
    for row in letters.groupBy("run", "rejected_at", "partition").agg(last).collect():
        by_partition.setdefault(row["partition"], {})[row["last"]["offset"]] = row["last"]["print"]
    if not by_partition:
        return None
    topic, isolation = pipeline.topic.name, Isolation.READ_UNCOMMITTED  # the pipeline's may have been another one
    spans, compacted = kafka.offsets(topic, isolation), kafka.topic(topic).compacted
    for p, prints in by_partition.items():
        for offset in prints:
            if p not in spans or not spans[p].earliest <= offset < spans[p].stable:
                return p, offset
    # One request reads one record of each partition.
    for offsets in zip_longest(*([(p, o) for o in sorted(prints)] for p, prints in sorted(by_partition.items()))):
        places = dict(place for place in offsets if place is not None)
        for p, record in kafka.records(topic, places, isolation).items():
            if record is None and compacted:
                continue
            if record is None or not _is_of(by_partition[p][places[p]], record):
                return p, places[p]
    return None


def _is_of(known: str, record: Record) -> bool:
    """Return whether a dead letter is of this record: masks leave none of its bytes to compare."""
    return known in map(fingerprint.of_record, (record, replace(record, key=None, value=None)))


def _fingerprint(letters: DataFrame) -> Column:
    """Return the fingerprint of a dead letter's record; that of no record if a column was dropped from the table.

    Bytes that are encrypted count as none.
    """
    if not set(letters.columns) >= _COMPARED:
        return F.lit("")
    is_plain = [~F.coalesce(F.startswith(F.col(name), F.lit(MARK)), F.lit(False)) for name in ("key", "value")]
    return F.when(is_plain[0] & is_plain[1], fingerprint.of_columns()).otherwise(fingerprint.of_columns(held=False))
