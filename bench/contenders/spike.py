"""The spike of the design, written again as the reference for the product's cost.

Million-row batches; the id in the frame by `hex` and `conv`; the value's columns and four of Kafka's; files staged through
the rewrite catalog while the batch before is appended and tagged in one transaction. No account, no headers, no key.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from bench.contenders.plain import COORDINATES, Offsets, create, read, session
from bench.topics import Job, Topic, Way
from frazil.lake.iceberg_java import Iceberg
from frazil.lake.java_classes import Java

TAG, END = "frazil_spike", "frazil.end"
_FETCH = {
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.max.poll.records": "20000",
    "kafka.group.id": "frazil-spike",
    "kafka.isolation.level": "read_committed",
    "failOnDataLoss": "true",
}


@contextmanager
def spike(job: Job) -> Iterator[Mapping[str, Way]]:
    """Stage and publish, overlapped."""
    with session(job) as spark:
        iceberg = Iceberg(spark)

        def ready(topic: Topic, table: str) -> Callable[[], None]:
            begin = dict.fromkeys(range(topic.partitions), 0)
            create(spark, _decode(read(spark, job, topic, begin, begin, _FETCH), topic), table)
            return lambda: _land(spark, iceberg, job, topic, table)

        yield {"spike": ready}


def _land(spark: SparkSession, iceberg: Iceberg, job: Job, topic: Topic, table: str) -> None:
    end, at = _ends(topic), dict.fromkeys(range(topic.partitions), 0)
    publishing: Future[None] | None = None
    with ThreadPoolExecutor(1) as publisher:
        while at != end:
            to = {p: min(end[p], at[p] + job.batch_rows // len(end)) for p in at}
            files = _stage(iceberg, table, _decode(read(spark, job, topic, at, to, _FETCH), topic))
            if publishing:
                publishing.result()
            publishing, at = publisher.submit(_publish, iceberg, table, files, at, to), to
        if publishing:
            publishing.result()


def _ends(topic: Topic) -> Offsets:
    share = range(topic.partitions)
    return {p: len(range(p, topic.rows, topic.partitions)) for p in share}


def _decode(records: DataFrame, topic: Topic) -> DataFrame:
    writer = topic.records.schema
    reader = json.loads(writer)
    reader["fields"].append({"name": "_decoded", "type": "boolean", "default": True})
    schema_id = F.conv(F.hex(F.substring("value", 2, 4)), 16, 10).cast("int")
    row = from_avro(F.expr("substring(value, 6)"), writer, {"mode": "PERMISSIVE", "avroSchema": json.dumps(reader)})
    own = [F.col(name).alias(f"_kafka_{name}") for name in COORDINATES]
    rows = records.select(F.when(schema_id == topic.schema_id, row).alias("r"), *own).where("r._decoded")
    return rows.select("r.*", *(f"_kafka_{name}" for name in COORDINATES)).drop("_decoded")


def _stage(iceberg: Iceberg, table: str, rows: DataFrame) -> Java:
    target, unique_id = iceberg.load(table), uuid.uuid4().hex
    cache, coordinator = iceberg.table_cache(), iceberg.coordinator()
    cache.add(unique_id, target)
    try:
        rows.writeTo(f"staged.`{unique_id}`").append()
        return coordinator.fetchNewFiles(target, unique_id)
    finally:
        coordinator.clearRewrite(target, unique_id)
        cache.remove(unique_id)


def _publish(iceberg: Iceberg, table: str, files: Java, start: Offsets, end: Offsets) -> None:
    transaction = iceberg.load(table).newTransaction()
    base = transaction.table()
    tag = base.refs().get(TAG)
    held = None if tag is None else base.snapshot(tag.snapshotId()).summary().get(END)
    assert held in (None, _text(start)), f"fenced: the table holds {held}"
    append = transaction.newAppend()
    for file in files:
        append.appendFile(file)
    append.set(END, _text(end))
    append.commit()
    snapshot = transaction.table().currentSnapshot().snapshotId()
    refs = transaction.manageSnapshots()
    (refs.createTag(TAG, snapshot) if tag is None else refs.replaceTag(TAG, snapshot)).commit()
    transaction.commitTransaction()


def _text(offsets: Offsets) -> str:
    return json.dumps(offsets, sort_keys=True)
