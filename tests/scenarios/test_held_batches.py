"""A table of a routed topic without records of its own commits offsets seldom, and none is lost or counted twice."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import pytest

from frazil.clients.secrets import Secrets
from frazil.declaration import Limits, Pipeline, Spark
from frazil.errors import KafkaUnavailable, OffsetsLost, RejectedRecords
from frazil.ingest import held_batches
from frazil.ingest.loop import Ingestion
from frazil.lake.ledger.totals import Counts
from frazil.lake.read.stored_tables import Lake
from frazil.metrics.metric_registry import FRESHNESS, LAG, LAST_LOOK
from frazil.metrics.readings import Readings
from frazil.recovery.decisions import Accepted
from tests.scenarios.test_routes import by_field, drained, ids, once, row, table, together
from tests.support.jobs import Crash, crash_at
from tests.support.shop import Shop, ShopOf
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


class Away:
    """A cluster that is away after so many calls."""

    def __init__(self, kafka: Any, *, calls: int) -> None:
        self._kafka, self._left = kafka, calls

    def __getattr__(self, name: str) -> Any:
        self._left -= 1
        if self._left < 0:
            raise KafkaUnavailable("the brokers are away", where="the test")
        return getattr(self._kafka, name)


def drain_by_polls(run: Ingestion) -> None:
    """Poll until an error."""
    while True:
        run.poll()


def commits(shop: Shop, pipeline: Pipeline) -> int:
    """Return how many batches the pipeline has committed; the first snapshot has where it began."""
    found = Lake(shop.lake, Secrets({}).read).table(pipeline.table.identifier)
    return len(found.commits(pipeline.name)) - 1 if found is not None else 0


def test_offsets_without_records_wait_for_a_record(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=2)
    placed, paid = by_field(shop, otherwise="filter")
    runs = [shop.ingestion(one) for one in (placed, paid)]
    shop.produce([row("placed", 0), row("paid", 0)])
    for run in runs:
        run.poll()
    for number in range(1, 5):
        shop.produce([row("placed", number)] * 3)
        for run in runs:
            run.poll()
    assert [commits(shop, one) for one in (placed, paid)] == [5, 1]
    shop.assert_proven(paid, deep=True)
    shop.produce([row("paid", 9), row("placed", 9)])
    for run in runs:
        run.poll()
    assert [commits(shop, one) for one in (placed, paid)] == [6, 2]
    assert ids(shop, paid) == [0, 9]
    assert [shop.verified(one).sum_of("filtered") for one in (placed, paid)] == [2, 14]
    for one in (placed, paid):
        shop.assert_proven(one, deep=True)
    found = together(shop, (placed, paid))
    assert (found.outcome, found.is_complete) == ("proven", True)


def test_they_wait_ten_minutes_at_most_and_a_drain_commits_them(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    placed, paid = by_field(shop, otherwise="filter")
    now = [1000.0]
    shop.produce([row("paid", 0)])
    run = shop.ingestion(paid, clock=lambda: now[0])
    run.poll()
    for minutes, wanted in ((0, 1), (9, 1), (10.1, 2), (15, 2), (25.2, 3)):
        now[0] = 1000.0 + minutes * 60
        if minutes != 10.1:  # due without a record, too
            shop.produce([row("placed", 1)])
        run.poll()
        assert commits(shop, paid) == wanted, minutes
    shop.produce([row("placed", 2)])
    run.poll()
    assert commits(shop, paid) == 3
    drained(shop, (placed, paid))
    assert commits(shop, paid) == 4
    assert together(shop, (placed, paid)).is_complete
    assert held_batches.HOLD_SECONDS == 600


def test_a_driver_that_holds_batches_reports_its_looks_each_minute(shop_of: ShopOf) -> None:
    """The topic always has a record more, so that no plan is empty."""
    shop = shop_of(partitions=1)
    _, paid = by_field(shop, otherwise="filter")
    now = [time.time()]
    readings = Readings("r", "1", clock=lambda: now[0], cpu_seconds=lambda: None)
    shop.produce([row("paid", 0)])

    def one_more(step: str) -> None:
        if step == "stage.done":
            shop.produce([row("placed", 1)])

    run = shop.ingestion(paid, clock=lambda: now[0], failpoint=one_more)
    run.poll()
    began = len(shop.events)
    for _ in range(16):
        now[0] += 30.0
        run.poll()
        for event in shop.events:
            readings(event)
        found = {one.metric: one.value for one in readings.samples() if one.metric in (FRESHNESS, LAST_LOOK, LAG)}
        assert (found[FRESHNESS], found[LAG]) == (0, 0)
        assert now[0] - found[LAST_LOOK] < 60
    looks = [event for event in shop.events[began:] if event["event"] == "idle"]
    assert len(looks) == 8
    assert commits(shop, paid) == 1


def test_the_lag_of_held_batches_is_that_of_now(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    pipelines = by_field(shop, otherwise="filter")
    paid = replace(pipelines[1], engine=Spark(limits=Limits(max_rows=5, first_rows=5)))
    drained(shop, pipelines)
    shop.produce([row("placed", number) for number in range(12)])
    began = len(shop.events)
    shop.drain(paid)
    (look,) = (event for event in shop.events[began:] if event["event"] == "idle")
    assert look["lag"] == 7
    assert 0 <= look["freshness_seconds"] < 600
    assert look["retention_used"] == 0


@pytest.mark.parametrize("step", first_short(["publish.filled", "stage.done", "publish.committed"]))
def test_a_driver_that_dies_with_held_offsets_reads_them_again(shop_of: ShopOf, step: str) -> None:
    shop, steps = shop_of(partitions=1), [""]
    pipelines = by_field(shop)
    drained(shop, pipelines)
    run = shop.ingestion(pipelines[1], failpoint=lambda at: crash_at(steps[0])(at))
    for number in range(3):
        shop.produce([row("placed", number), row("x", number)])
        run.poll()
    assert commits(shop, pipelines[1]) == 0
    steps[0] = step
    shop.produce([row("paid", 1), row("placed", 7)])
    with pytest.raises(Crash):
        run.poll()
    drained(shop, pipelines, deep=True)
    assert ids(shop, pipelines[1]) == [1]
    assert len(once(shop, pipelines)) == len(shop.journal)
    assert together(shop, pipelines).outcome == "proven"


def test_a_drain_beside_a_driver_with_held_offsets_does_not_end_it(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    pipelines = by_field(shop, otherwise="filter")
    paid = pipelines[1]
    drained(shop, pipelines)
    first = shop.ingestion(paid, run="first")
    shop.produce([row("placed", 1)])
    first.poll()
    shop.produce([row("paid", 2)])
    shop.drained(paid)
    shop.produce([row("paid", 3)])
    first.poll()
    assert ids(shop, paid) == [2, 3]
    shop.produce([row("placed", 4)])
    first.poll()
    shop.drained(paid)
    shop.produce([row("placed", 5)])
    first.poll()
    drained(shop, pipelines, deep=True)
    assert together(shop, pipelines).is_complete


def test_outages_do_not_keep_a_table_of_rare_records_from_coming_further(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    pipelines = by_field(shop, otherwise="filter")
    paid = replace(pipelines[1], engine=Spark(limits=Limits(max_rows=5, first_rows=5)))
    drained(shop, pipelines)
    shop.produce([row("placed", number) for number in range(40)])
    for _ in range(2):
        run = shop.ingestion(paid, kafka=Away(shop.job().kafka, calls=12))
        with pytest.raises(KafkaUnavailable):
            drain_by_polls(run)
    assert commits(shop, paid) == 2
    drained(shop, pipelines, deep=True)


def test_partitions_that_are_added_meanwhile_are_read_from_their_beginning(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    pipelines = by_field(shop, otherwise="filter")
    paid = pipelines[1]
    shop.produce([row("paid", 0)])
    drained(shop, pipelines)
    run = shop.ingestion(paid)
    shop.produce([row("placed", 1)] * 4, partition=0)
    run.poll()
    shop.add_partitions(3)
    shop.produce([row("placed", 2)] * 4, partition=1)
    run.poll()
    shop.produce([*[row("placed", 3)] * 4, row("paid", 5)], partition=2)
    run.poll()
    assert ids(shop, paid) == [0, 5]
    shop.assert_proven(paid)
    drained(shop, pipelines, deep=True)
    found = together(shop, pipelines)
    assert (found.outcome, found.is_complete) == ("proven", True)


def test_a_table_that_is_dropped_meanwhile_is_made_again(shop_of: ShopOf) -> None:
    shop = shop_of(partitions=1)
    pipelines = _, paid = by_field(shop, otherwise="filter")
    shop.produce([row("paid", 0), row("placed", 0)])
    drained(shop, pipelines)
    run = shop.ingestion(paid)
    shop.produce([row("placed", 1)])
    run.poll()
    for identifier in paid.tables:
        shop.spark.sql(f"DROP TABLE IF EXISTS {shop.lake.catalog.name}.{identifier} PURGE")
    shop.produce([row("paid", 2)])
    run.drain()
    drained(shop, pipelines, deep=True)
    assert ids(shop, paid) == [0, 2]


def test_an_operator_decides_about_records_behind_held_batches(shop_of: ShopOf) -> None:
    """The newest entry of the ledger is a decision already."""
    shop = shop_of(partitions=1)
    placed, paid = (
        replace(one, engine=Spark(limits=Limits(max_rows=5, first_rows=5)))
        for one in by_field(shop, otherwise="filter", on_error="suspend")
    )
    shop.produce([row("placed", 0), row("paid", 0)])
    drained(shop, (placed, paid))
    shop.produce([row("paid", number) for number in range(4)])
    shop.delete_records(4)
    assert isinstance(shop.ended(placed).error, OffsetsLost)
    shop.accept(Accepted.OFFSETS_LOST, placed)
    shop.produce([row("paid", number) for number in range(20)])
    shop.produce([b"{"])
    assert isinstance(shop.ended(placed).error, RejectedRecords)
    shop.accept(Accepted.REJECTED_RECORDS, placed)
    assert shop.ended(placed).error is None
    shop.assert_proven(placed, deep=True)


def test_a_drain_that_is_stopped_keeps_what_it_has_read(shop_of: ShopOf) -> None:
    shop, staged = shop_of(partitions=1), [0]
    pipelines = by_field(shop, otherwise="filter")
    paid = replace(pipelines[1], engine=Spark(limits=Limits(max_rows=5, first_rows=5)))
    drained(shop, pipelines)
    shop.produce([row("placed", number) for number in range(40)])

    def counted(step: str) -> None:
        staged[0] += step == "stage.done"

    shop.ingestion(paid, failpoint=counted, stopping=lambda: staged[0] >= 3).drain()
    assert commits(shop, paid) == 1
    assert shop.verified(paid).sum_of("filtered") == 15


SEEDS = range(6)


@pytest.mark.parametrize("seed", first_short(SEEDS))
def test_for_any_order_of_polls_stops_and_crashes_each_record_is_in_one_table(shop_of: ShopOf, seed: int) -> None:
    draw = random.Random(seed)
    shop = shop_of(partitions=2)
    now = [1000.0]
    pipelines = by_field(shop, otherwise=draw.choice(["dead_letter", "filter", table(shop, "other")]))
    drained(shop, pipelines)

    def begun(one: Pipeline, step: str = "") -> Ingestion:
        return shop.ingestion(one, clock=lambda: now[0], failpoint=crash_at(step))

    runs = {one.name: begun(one) for one in pipelines}
    filtered, partitions = 0, 2
    for _ in range(12):
        if draw.random() < 0.15:
            partitions += 1
            shop.add_partitions(partitions)
        types = draw.choices(["placed", "paid", "x"], [6, 1, 1], k=draw.randint(0, 4))
        for type_ in types:
            shop.produce([row(type_, len(shop.journal))])
            filtered += type_ == "x"
        for one in draw.sample(pipelines, draw.randint(1, len(pipelines))):
            if draw.random() < 0.25:
                runs[one.name] = begun(one, draw.choice(["", "stage.done", "publish.filled", "publish.committed"]))
            try:
                runs[one.name].poll()
            except Crash:
                runs[one.name] = begun(one)
        now[0] += draw.choice([1.0, 100.0, 700.0])
    drained(shop, pipelines, deep=True)
    is_filtered = pipelines[0].shape.route is not None and pipelines[0].shape.route.rest == "filter"
    lost = filtered if is_filtered and len(pipelines) == 2 else 0
    assert len(once(shop, pipelines)) == len(shop.journal) - lost
    found = together(shop, pipelines)
    assert (found.outcome, found.is_complete, found.findings) == ("proven", True, ())


def test_counts_of_two_batches_are_those_of_one() -> None:
    one = Counts(read=5, written=2, filtered={"route": 3}, filtered_at={0: 3}, routed_at={0: 3}, gaps={0: 1})
    two = Counts(read=4, written=1, filtered={"route": 1, "where": 2}, filtered_at={1: 3}, routed_at={1: 1})
    both = one.plus(two)
    assert both.adds_up
    assert both == Counts(
        read=9,
        written=3,
        filtered={"route": 4, "where": 2},
        filtered_at={0: 3, 1: 3},
        routed_at={0: 3, 1: 1},
        gaps={0: 1},
    )
    assert one.plus(Counts()) == one
