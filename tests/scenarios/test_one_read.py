"""Two pipelines of one driver on one topic: their rows are those of separate runs, and the topic's records are read once."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Barrier, get_ident
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from frazil.declaration import Changelog, ErrorMode, Limits, Pipeline, Upsert
from frazil.declaration.documents.document import document
from frazil.declaration.documents.to_json import canonical
from frazil.errors import Fault, RejectedRecords
from frazil.ingest.batch import staging
from frazil.ingest.batch.read import read
from frazil.ingest.plan.ranges import OffsetRange
from frazil.job import shared_reads
from frazil.lake import prepared_plan
from tests.scenarios.test_follow import Following
from tests.support import oracle
from tests.support.jobs import nothing
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
BATCH, RECORDS = 200, 800


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Share small batches; return how many offsets Spark is to read from Kafka, read by read."""
    found: list[int] = []

    def counted(spark: SparkSession, topic: str, ranges: Sequence[OffsetRange], **options: Any) -> DataFrame:
        found.append(sum(map(len, ranges)))
        return read(spark, topic, ranges, **options)

    monkeypatch.setattr(shared_reads, "LEAST_ROWS", BATCH // 4)
    monkeypatch.setattr(prepared_plan, "SMALL_ROWS", 0)
    monkeypatch.setattr(staging, "read", counted)
    return found


def shop_with(shop_of: ShopOf, *, bad: int = 0, **declared: Any) -> Shop:
    """Return a shop whose topic has changes and deletes of 300 keys, and a record without a schema after every `bad` ones."""
    shop = shop_of(
        write=Upsert(),
        key_format="text",
        limits=Limits(first_rows=BATCH, max_rows=BATCH),
        **{"on_error": ErrorMode.DEAD_LETTER, **declared},
    )
    schema_id = shop.register()
    for number, order in enumerate(shop.orders(RECORDS, schema_id)):
        key = number % 300
        value: bytes | None = order if number % 11 else None
        if bad and number % bad == bad - 1:
            value = b"no frame"
        shop.produce([value], partition=key % 2, key=b"k%d" % key)
    return shop


def named(shop: Shop, suffix: str, **changed: Any) -> Pipeline:
    table = replace(shop.pipeline.table, identifier=f"{shop.pipeline.table.identifier}_{suffix}")
    return replace(shop.pipeline, name=f"{shop.topic}_{suffix}", table=table, **changed)


def pair(shop: Shop, suffix: str, **changed: Any) -> tuple[Pipeline, Pipeline]:
    return (named(shop, f"state_{suffix}", **changed), named(shop, f"changes_{suffix}", write=Changelog(), **changed))


def both_begin(then: Callable[[str], None] = nothing) -> Callable[[str], None]:
    """Return a failpoint at which two pipelines wait until both begin, and until both have planned their first batch."""
    begin, planned = Barrier(2), set[int]()

    def reached(step: str) -> None:
        if step == "begin.resolved":
            begin.wait(60)
        if step == "plan.done" and get_ident() not in planned:
            planned.add(get_ident())
            begin.wait(60)
        then(step)

    return reached


def contents(shop: Shop, pipeline: Pipeline) -> list[str]:
    """Return the rows and dead letters of a pipeline, without what each run makes."""
    rows = oracle.rows(shop.lake, pipeline.table.identifier)
    letters = oracle.rows(shop.lake, pipeline.table.dead_letters)
    ignored = {"_ingested_at", "rejected_at", "run", "pipeline"}
    kept = [{k: v for k, v in row.items() if k not in ignored} for row in (*rows, *letters)]
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in kept)


def kept(shop: Shop) -> list[int]:
    """Return the number of each kept frame."""
    return list(shop.spark.sparkContext._jsc.getPersistentRDDs())  # type: ignore[attr-defined]


def test_two_pipelines_read_a_topic_once_and_have_the_rows_of_separate_runs(shop_of: ShopOf, asked: list[int]) -> None:
    shop = shop_with(shop_of, bad=90)
    alone, together = pair(shop, "alone"), pair(shop, "together")
    for pipeline in alone:
        assert shop.drained(pipeline)[pipeline.name].error is None
    separately = sum(asked)
    assert separately >= 3 * RECORDS  # twice where records are rejected
    asked.clear()
    outcomes = shop.drained(*together, failpoint=both_begin())
    assert [outcome.error for outcome in outcomes.values()] == [None, None]
    assert sum(asked) < separately  # about half of it, unless one of them planned before the other was there
    for one, other in zip(alone, together, strict=True):
        assert len(contents(shop, one)) > 250
        assert contents(shop, one) == contents(shop, other)
        shop.assert_proven(other, deep=True)
    assert kept(shop) == []


def test_a_stopped_pipeline_holds_up_no_other_and_keeps_nothing(shop_of: ShopOf) -> None:
    shop = shop_with(shop_of, bad=450)
    state, changes = pair(shop, "x")
    stopped = replace(state, on_error=ErrorMode.SUSPEND)
    outcomes = shop.drained(stopped, changes)
    assert isinstance(outcomes[stopped.name].error, RejectedRecords)
    assert outcomes[changes.name].error is None
    assert outcomes[changes.name].total.read == RECORDS
    assert kept(shop) == []
    shop.assert_proven(changes, deep=True)
    assert shop.drained(state)[state.name].error is None
    shop.assert_proven(state, deep=True)


def test_a_failure_in_the_middle_is_one_pipelines_own(shop_of: ShopOf) -> None:
    shop, steps = shop_with(shop_of), list[str]()
    pipelines = pair(shop, "x")

    def fail(step: str) -> None:
        steps.append(step)
        if step == "stage.written" and steps.count(step) == 4:
            raise RuntimeError("in the middle")

    outcomes = shop.drained(*pipelines, failpoint=fail)
    (error,) = (outcome.error for outcome in outcomes.values() if outcome.error is not None)
    assert isinstance(error, Fault)
    assert RECORDS in {outcome.total.read for outcome in outcomes.values()}
    assert kept(shop) == []
    assert [outcome.error for outcome in shop.drained(*pipelines).values()] == [None, None]
    for pipeline in pipelines:
        shop.assert_proven(pipeline, deep=True)


def test_a_lost_read_is_read_again_and_the_run_goes_on(shop_of: ShopOf) -> None:
    shop = shop_with(shop_of)
    pipelines = pair(shop, "x")
    lost: list[Path] = []
    disks: Any = shop.spark.sparkContext._jsc.sc().env().blockManager().diskBlockManager()  # type: ignore[attr-defined]

    def lose(step: str) -> None:
        for folder in map(str, disks.localDirs() if step == "stage.written" and len(lost) < 3 else ()):
            for file in Path(folder).rglob("rdd_*"):
                file.unlink(missing_ok=True)
                lost.append(file)

    shops = [shop_of_pipeline(shop, pipeline) for pipeline in pipelines]
    with Following(*shops, failpoint=both_begin(lose)) as run:
        for pipeline in pipelines:
            run.until("idle", pipeline=pipeline.name)
    assert lost
    for pipeline in pipelines:
        assert run.outcomes[pipeline.name].error is None
        shop.assert_proven(pipeline, deep=True)
    assert kept(shop) == []


@pytest.mark.long
@pytest.mark.parametrize("hit", [3, 4])
def test_a_killed_driver_leaves_nothing_of_a_shared_read(shop_of: ShopOf, tmp_path: Path, hit: int) -> None:
    shop = shop_of(write=Upsert(), key_format="text", partitions=2)
    schema_id = shop.register()
    for partition in range(2):
        for first in range(0, 600, 30):
            key = b"k%d-%d" % (partition, first)
            shop.produce(shop.orders(30, schema_id, first=first) * 50, partition=partition, key=key)
    pipelines = pair(shop, "x")
    killed = shop.process(tmp_path, failpoints=f"stage.written@{hit}=kill", declared=canonical(document(pipelines)))
    killed.communicate(timeout=300)
    assert killed.returncode == -signal.SIGKILL
    again = shop.process(tmp_path, declared=canonical(document(pipelines)))
    printed = again.communicate(timeout=300)
    assert again.returncode == 0, printed
    for pipeline in pipelines:
        shop.assert_proven(pipeline, deep=True)


def shop_of_pipeline(shop: Shop, pipeline: Pipeline) -> Any:
    class Of:
        registry, job = shop.registry, shop.job

    Of.pipeline = pipeline  # type: ignore[attr-defined]
    return Of
