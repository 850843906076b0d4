"""Small batches run the plan of an earlier one: their rows are those of batches that are planned each by itself."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.audit.verify import verify
from frazil.clients.secrets import Secrets
from frazil.declaration import Append, Changelog, ErrorMode, Limits, Pipeline, Spark, Upsert
from frazil.ingest.loop import Ingestion
from frazil.lake import prepared_plan
from frazil.lake.prepared_plan import PreparedPlans
from frazil.lake.read.stored_tables import Lake
from frazil.recovery.apply import accept
from frazil.recovery.decisions import Accepted
from tests.support import oracle
from tests.support.shop import ORDER, Shop, ShopOf, avro, frame

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
MODES: dict[str, Append | Upsert | Changelog] = {
    "append": Append(),
    "upsert": Upsert(),
    "soft": Upsert(on_tombstone="soft_delete"),
    "ordered": Upsert(order_by="_kafka_timestamp"),
    "changelog": Changelog(),
}
EVENTS = ("records", "records", "poison", "field", "partition_spec", "partition", "rollback", "restart", "deletes")


class Twins:
    """Two pipelines of one topic: `lasting` runs prepared plans in one ingestion, `anew` plans each batch by itself."""

    def __init__(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shop, self.schema, self.partitions, self.sent = shop, dict(ORDER), 2, 0
        self.schema_id = shop.register()
        self._monkeypatch = monkeypatch
        self.lasting, self.anew = self._named("lasting"), replace(self._named("anew"), engine=Spark())
        self._ingestion: Ingestion | None = None

    def _named(self, suffix: str) -> Pipeline:
        of = self.shop.pipeline
        table = replace(of.table, identifier=f"{of.table.identifier}_{suffix}")
        return replace(of, name=f"{self.shop.topic}_{suffix}", table=table)

    def produce(self, count: int, *, share_of_deletes: int = 0, bad: int = 0) -> None:
        for number in range(count):
            self.sent += 1
            key, order = self.sent % 7, {"order_id": self.sent, "user": f"u{self.sent % 3}", "amount": self.sent / 4}
            order |= {field["name"]: self.sent for field in self.schema["fields"][3:]}
            value: bytes | None = frame(self.schema_id, avro(self.schema, order))
            if share_of_deletes and number % share_of_deletes == 0:
                value = None
            if bad and number % bad == 0:
                value = b"no frame" if number % 2 else frame(self.schema_id, b"\x02")
            self.shop.produce([value], partition=key % 2, key=b"k%d" % key)

    def land(self) -> None:
        """Land what there is by both, small batch by small batch."""
        self._ingestion = self._ingestion or self.shop.ingestion(self.lasting)
        while self._ingestion.poll():
            pass
        with self._monkeypatch.context() as changed:
            changed.setattr(prepared_plan, "SMALL_ROWS", 0)
            self.shop.drain(self.anew)

    def happen(self, event: str) -> None:
        match event:
            case "records":
                self.produce(9)
            case "deletes":
                self.produce(6, share_of_deletes=2)
            case "poison":
                self.produce(8, bad=3)
            case "field" if len(self.schema["fields"]) < 6:
                new = {"name": f"f{len(self.schema['fields'])}", "type": ["null", "long"], "default": None}
                self.schema = {**self.schema, "fields": [*self.schema["fields"], new]}
                self.schema_id = self.shop.registry_admin.register(f"{self.shop.topic}-value", json.dumps(self.schema))
                self.produce(5)
            case "partition_spec":
                for table in self._tables():
                    names = {str(field.name()) for field in table.spec().fields()}
                    spec = table.updateSpec()
                    (spec.removeField("user") if "user" in names else spec.addField("user")).commit()
                self.produce(5)
            case "partition" if self.partitions < 4:
                self.partitions += 1
                self.shop.add_partitions(self.partitions)
                self.shop.produce([b"no frame"], partition=self.partitions - 1, key=b"other")
            case "rollback":
                self._roll_back()
            case "restart":
                self._ingestion = None
                self.produce(3)

    def _tables(self) -> list[Any]:
        iceberg = self.shop.job().iceberg
        return [iceberg.load(pipeline.table.identifier) for pipeline in (self.lasting, self.anew)]

    def _roll_back(self) -> None:
        """Set both tables back to the commit before, and have their records landed again."""
        for pipeline, table in zip((self.lasting, self.anew), self._tables(), strict=True):
            head = table.currentSnapshot()
            was = table.snapshot(head.parentId()) if head.parentId() is not None else None
            if was is not None and all("frazil.end" in dict(snapshot.summary()) for snapshot in (head, was)):
                table.manageSnapshots().rollbackTo(was.snapshotId()).commit()
                accept(pipeline, Accepted.ROLLED_BACK_REPLAY, "as the test says", self.shop.job())
        self._ingestion = None  # a driver is stopped before

    def contents(self, pipeline: Pipeline) -> list[str]:
        lake, ignored = self.shop.lake, {"_ingested_at", "_deleted_at", "rejected_at", "run", "pipeline"}
        rows = [*oracle.rows(lake, pipeline.table.identifier), *oracle.rows(lake, pipeline.table.dead_letters)]
        kept = ({name: value for name, value in row.items() if name not in ignored} for row in rows)
        return sorted(json.dumps(row, default=str, sort_keys=True) for row in kept)


def twins(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, mode: str) -> Twins:
    shop = shop_of(
        write=MODES[mode],
        key_format="text",
        on_error=ErrorMode.DEAD_LETTER,
        max_rejected_percent=100,
        limits=Limits(first_rows=4, max_rows=4),
        table={"partition_by": ()},
    )
    return Twins(shop, monkeypatch)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what plans are made, and run, from now on."""
    found: list[str] = []
    made, run = prepared_plan._Prepared.__init__, PreparedPlans.run

    def making(self: Any, *given: Any) -> None:
        found.append("made")
        made(self, *given)

    def running(self: Any, *given: Any) -> Any:
        found.append("run")
        return run(self, *given)

    monkeypatch.setattr(prepared_plan._Prepared, "__init__", making)
    monkeypatch.setattr(PreparedPlans, "run", running)
    return found


@pytest.mark.parametrize(
    ("mode", "number"),
    [
        *((mode, 0) for mode in MODES),
        *(pytest.param(mode, number, marks=pytest.mark.long) for mode in MODES for number in range(1, 6)),
    ],
)
def test_any_order_of_events_leaves_the_rows_of_batches_that_are_planned_anew(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch, mode: str, number: int
) -> None:
    pair, dice = twins(shop_of, monkeypatch, mode), random.Random(f"{mode} {number}")
    pair.produce(4)
    pair.land()
    events = dice.sample(EVENTS, len(EVENTS))
    for event in events:
        pair.happen(event)
        pair.land()
        assert pair.contents(pair.lasting) == pair.contents(pair.anew), events
    for pipeline in (pair.lasting, pair.anew):
        proof = verify(pipeline, Lake(pair.shop.lake, Secrets({}).read), deep=True)
        assert proof.outcome == "proven", (events, proof.findings)


def test_small_batches_of_one_schema_share_one_plan(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    pair, plans = twins(shop_of, monkeypatch, "upsert"), counted(monkeypatch)
    pair.produce(24)
    pair.land()
    assert plans.count("made") == 1
    assert plans.count("run") >= 6
    pair.happen("field")
    pair.land()
    assert plans.count("made") == 3  # the first batch of the new schema had rejected records, too


def test_a_plan_counts_each_batch_by_itself(shop_of: ShopOf) -> None:
    shop = shop_of()
    spark = shop.job().small_batches.session(shop.spark)
    plans, records = PreparedPlans(), spark.range(0, 10, numPartitions=2)

    def rows_of(frame: DataFrame) -> prepared_plan.Rows:
        return prepared_plan.Rows(frame._jdf.queryExecution().toRdd(), frame._jdf.schema())

    def build(frame: DataFrame, observed: Any) -> DataFrame:
        some = frame.observe(observed("seen"), F.count(F.lit(1)).alias("n"), F.max("id").alias("most"))
        return some.where(even(F.col("id"))).withColumn("twice", F.col("id") * 2)

    def even(number: Column) -> Column:
        return number % 2 == 0

    runs = [plans.run(spark, "key", rows_of(records.where(F.col("id") < most)), build) for most in (10, 4)]
    found = [[tuple(row) for row in run.rows.collect()] for run in reversed(runs)]
    assert found == [[(0, 0), (2, 4)], [(0, 0), (2, 4), (4, 8), (6, 12), (8, 16)]]
    seen: list[Mapping[str, Any]] = [run.observed("seen") for run in runs]
    assert seen == [{"n": 10, "most": 9}, {"n": 4, "most": 3}]


def test_the_oldest_of_many_plans_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    plans, made = PreparedPlans(), list[Any]()

    class Made:
        def __init__(self, spark: Any, records: Any, build: Any) -> None:
            made.append(records)

        def over(self, records: Any) -> Any:
            return None

    monkeypatch.setattr(prepared_plan, "_Prepared", Made)
    nothing: Any = None
    for number in (*range(prepared_plan.MOST_PLANS), 1, prepared_plan.MOST_PLANS, 1, 0):
        plans.run(nothing, number, nothing, nothing)
    assert len(made) == prepared_plan.MOST_PLANS + 2


def test_rows_that_are_computed_again_are_counted_once(shop_of: ShopOf) -> None:
    shop = shop_of()
    spark = shop.job().small_batches.session(shop.spark)
    of = spark.range(0, 10, numPartitions=2)
    records = prepared_plan.Rows(of._jdf.queryExecution().toRdd(), of._jdf.schema())

    def build(frame: DataFrame, observed: Any) -> DataFrame:
        counted = frame.observe(observed("first"), F.count(F.lit(1)).alias("n"))
        return counted.observe(observed("second"), F.max("id").alias("most"))

    run = PreparedPlans().run(spark, "key", records, build)
    assert len(run.rows.collect()) == 10
    assert run.observed("first") == {"n": 10}
    assert len(run.rows.collect()) == 10
    assert (run.observed("first"), run.observed("second")) == ({"n": 10}, {"most": 9})
