"""What a batch of 2,000 rows costs with many versions, and with many refused frames. The figures are in docs/benchmarks.md."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from frazil.declaration import Topic
from frazil.decode.record_decoder import RecordDecoder
from frazil.decode.writers.seen_frames import SeenFrames
from frazil.decode.writers.topic_writers import writer_schemas
from frazil.ingest.batch import record_counts
from frazil.schemas.evolution.table_mapping import landing
from frazil.schemas.reasons import Reason
from frazil.schemas.types import Struct
from frazil.schemas.wire_format import prefixed
from tests.support.fake_registry import FakeRegistry
from tests.support.shop import ORDER
from tests.support.shop import avro as written

pytestmark = [pytest.mark.spark, pytest.mark.long]
ROWS, ROUNDS = 2_000, 7


def version(number: int) -> dict[str, object]:
    """ORDER with ten columns more, one of them of this version only."""
    names = [*(f"c{n}" for n in range(9)), f"v{number}"]
    added = [{"name": name, "type": ["null", "string"], "default": None} for name in names]
    return {**ORDER, "fields": [*ORDER["fields"], *added]}


def batch(spark: SparkSession, values: list[bytes]) -> DataFrame:
    given = [(None, value, None, 0, n) for n, value in enumerate(values)]
    kind = "key binary, value binary, headers array<struct<key:string,value:binary>>, partition int, offset long"
    return spark.createDataFrame(given, kind).coalesce(2).cache()


def reject(records: DataFrame, decoder: RecordDecoder) -> None:
    observed = Observation()
    lost = record_counts.observe_rejected(decoder.rejected(records), observed, F.lit(False))
    lost.write.format("noop").mode("overwrite").save()
    assert record_counts.by_reason(observed.get, "rejected") == {"foreign_schema": 1}


def decoders(registered: int) -> tuple[RecordDecoder, list[int]]:
    """The decoder of a topic of so many versions, after records of its last three were met."""
    registry = FakeRegistry()
    ids = [registry.register("orders-value", json.dumps(version(number))) for number in range(registered)]
    writers = writer_schemas(Topic("orders", value="avro"), registry)  # type: ignore[arg-type]
    writers.refresh()
    writers.learn(SeenFrames(waiting=tuple(prefixed(schema_id, b"") for schema_id in ids[-3:])))
    target = landing(Struct(()), writers.versions[-3:]).target  # of equal width, so that only plans are compared
    return RecordDecoder(values=writers.decoder(target, {})), ids


def plan_of(frame: DataFrame) -> str:
    """Return the optimized plan, without the numbers of its expressions."""
    plan = frame._jdf.queryExecution().optimizedPlan().toJSON()
    return re.sub(r'"(exprId|resultId|id|jvmId)":("[^"]*"|\{[^{}]*\}|\d+)|#\d+', "", plan)


def test_300_versions_of_which_3_occur_make_the_plan_of_3(spark: SparkSession) -> None:
    """A plan that grows with the versions would make each batch slower."""
    values = [prefixed(1, written(version(0), {"order_id": 1, "user": "u", "amount": None}))]
    records = batch(spark, values)
    sizes = {many: len(plan_of(decoders(many)[0].rows(records))) for many in (3, 300)}
    assert abs(sizes[300] - sizes[3]) <= 0.02 * sizes[3], sizes  # ids and names of later versions have more digits


def test_more_refused_frames_than_are_remembered_cost_what_one_costs(spark: SparkSession) -> None:
    decoder, ids = decoders(3)
    foreign = [prefixed(n, b"") for n in range(1_000_000, 1_050_000)]
    last = prefixed(ids[-1], written(version(2), {"order_id": 1, "user": "u", "amount": None}))
    records = batch(spark, [*[last] * (ROWS - 1), foreign[0]])
    counts = (1, 5_000, 50_000)
    cases = {
        count: RecordDecoder(
            values=replace(decoder.values, refused=dict.fromkeys(foreign[:count], Reason.FOREIGN_SCHEMA))
        )
        for count in counts
    }
    for case in cases.values():
        reject(records, case)  # warms
    found = dict.fromkeys(counts, math.inf)
    for _ in range(ROUNDS):  # one after the other, so that what else the machine does disturbs all alike
        for count, case in cases.items():
            began = time.perf_counter()
            reject(records, case)
            found[count] = min(found[count], time.perf_counter() - began)
    print(f"seconds a batch by refused frames: {found}")
    assert found[5_000] <= 1.5 * found[1]  # `WriterSchemas` remembers 4,000
    assert found[50_000] <= 2 * found[1]
