"""A run that goes on: records become visible soon, outages are waited out, decisions are noticed, stopping is quick."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import functions as F

from frazil.declaration import Limits, Pipeline, Spark, Upsert
from frazil.decode.record_decoder import RecordDecoder
from frazil.errors import Fault, InvalidInput, KafkaUnavailable
from frazil.ingest import guard, runner
from frazil.ingest.plan import planner
from frazil.job import session
from frazil.job.matched_topics import MatchedTopics
from frazil.lake.delete_files.staged_deletes import Found
from frazil.recovery.decisions import Accepted
from frazil.upsert.scan_resolver import ScanResolver
from tests.scenarios.test_upserts import State
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
PATIENCE = 60.0


class Following:
    """A run in a thread of its own. Pauses last until they are passed, but no pause is slept out."""

    def __init__(
        self,
        shop: Shop,
        *shops: Shop,
        report_seconds: float = 60.0,
        topics: MatchedTopics | None = None,
        declared: Sequence[Pipeline] = (),
        **overrides: Any,
    ) -> None:
        self._topics, self._declared = topics, declared
        self.shops, self.stop, self.pauses = (shop, *shops), threading.Event(), list[float]()
        self._news, self._events = threading.Condition(), list[Mapping[str, Any]]()
        self.outcomes: dict[str, guard.Outcome] = {}
        self._registry = shop.registry()
        self._job = shop.job(stopping=self.stop.is_set, wait=self._wait, **overrides)
        self._report_seconds = report_seconds
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> Following:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _follow(self) -> None:
        pipelines = [shop.pipeline for shop in self.shops] if self._topics is None else self._declared
        self.outcomes = runner.follow(
            pipelines,
            self._job,
            self._registry,
            self._take,
            topics=self._topics,
            topics_seconds=0.05,
            every_seconds=0.05,
            report_seconds=self._report_seconds,
            probe=False,
        )

    def join(self) -> None:
        """Wait until the run ends by itself."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.stop.wait(min(seconds, 0.05))

    def _take(self, event: Mapping[str, Any]) -> None:
        with self._news:
            self._events.append(event)
            self._news.notify_all()

    def until(self, event: str, number: int = 1, **facts: Any) -> list[Mapping[str, Any]]:
        """Wait for so many events of that name; returns them."""

        def found() -> list[Mapping[str, Any]]:
            return [e for e in self._events if e["event"] == event and facts.items() <= e.items()]

        with self._news:
            assert self._news.wait_for(lambda: len(found()) >= number, PATIENCE), [e["event"] for e in self._events]
            return found()


def landed(shop: Shop, number: int, seconds: float = PATIENCE) -> None:
    """Wait until a reader sees so many rows."""
    deadline = time.monotonic() + seconds
    while len(shop.landed()) != number:
        assert time.monotonic() < deadline


def test_records_become_visible_while_the_run_goes_on(shop: Shop) -> None:
    schema_id = shop.register()
    with Following(shop) as run:
        run.until("idle")
        for round_ in range(3):
            shop.produce(shop.orders(5, schema_id, first=5 * round_))
            landed(shop, 5 * (round_ + 1))
    assert run.outcomes[shop.pipeline.name].total.written == 15
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_topic_whose_first_schema_comes_later_is_landed_then(shop: Shop) -> None:
    shop.produce([b'{"order_id": 1}'] * 5, partition=0, timestamp=int((time.time() - 3600) * 1000))
    with Following(shop) as run:
        (idle, *_) = run.until("idle", message=f"waiting for a schema in subject {shop.topic}-value")
        assert idle["lag"] == 5
        assert 3600 <= idle["freshness_seconds"] < 3700
        assert idle["hint"].endswith("offset 0 looks like JSON without a schema id: declare the format json")
        shop.produce(shop.orders(3, shop.register()))
        run.until("batch_committed")  # there is a table now
        landed(shop, 3)
    shop.assert_each_record_once()


def test_idleness_is_told_once_a_minute_and_not_at_every_look(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "LOOK_SECONDS", 0.0)
    shop.register()
    looks = threading.Event()
    count = [0]

    def failpoint(step: str) -> None:
        count[0] += step == "plan.done"
        if count[0] > 20:
            looks.set()

    with Following(shop, failpoint=failpoint) as run:
        assert looks.wait(PATIENCE)
        assert len(run.until("idle")) == 1
        assert run.until("idle")[0]["lag"] == 0


def test_a_topic_without_new_records_is_looked_at_and_planned_seldom(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changes in it is noticed: records, a topic that was created again."""
    schema_id, plans, asked, seen = shop.register(), [0], [0], threading.Event()
    cluster = shop.job().kafka
    offsets_of = cluster.offsets_of

    def counted(topics: Any) -> Any:
        asked[0] += 1
        if asked[0] > 20:
            seen.set()
        return offsets_of(topics)

    monkeypatch.setattr(cluster, "offsets_of", counted)

    def failpoint(step: str) -> None:
        plans[0] += step == "plan.done"

    with Following(shop, kafka=cluster, failpoint=failpoint) as run:
        run.until("idle")
        assert seen.wait(PATIENCE)
        assert plans[0] < 5
        shop.produce(shop.orders(5, schema_id))
        landed(shop, 5)
        shop.new_topic(2)
        (decision, *_) = run.until("decision_required")
        assert decision["error"] == "TopicRecreated"


@pytest.mark.long
def test_an_outage_is_waited_out_with_growing_pauses(shop: Shop) -> None:
    schema_id = shop.register()
    cluster = Flaky(shop.job().kafka)
    with Following(shop, kafka=cluster) as run:
        run.until("idle")
        cluster.is_away = True
        shop.produce(shop.orders(4, schema_id))
        waits = run.until("service_unavailable", 4)
        assert [w["retry_in_seconds"] for w in waits[:4]] == [1.0, 2.0, 4.0, 8.0]
        assert shop.landed() == []
        cluster.is_away = False
        landed(shop, 4)
    shop.assert_each_record_once()
    assert run.outcomes[shop.pipeline.name].error is None


class Flaky:
    """A cluster that is away now and then."""

    def __init__(self, kafka: Any) -> None:
        self._kafka, self.is_away = kafka, False

    def __getattr__(self, name: str) -> Any:
        if self.is_away:
            raise KafkaUnavailable("the brokers are away", where="the test")
        return getattr(self._kafka, name)


class Broken:
    """A client with a defect that shows at one topic."""

    def __init__(self, kafka: Any, topic: str) -> None:
        self._kafka, self._topic = kafka, topic

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._kafka, name)
        if not callable(method):
            return method

        def call(*arguments: Any) -> Any:
            if self._topic in arguments:
                raise ValueError("year 55840 is out of range")
            return method(*arguments)

        return call


@pytest.mark.long
def test_an_error_that_nobody_expected_is_retried_then_reported_and_ends_no_neighbour(shop: Shop) -> None:
    broken = shop_of_its_own(shop)
    schema_id = shop.register()
    broken.register()
    cluster = Broken(shop.job().kafka, broken.topic)
    with Following(shop, broken, kafka=cluster, report_seconds=0.2) as run:
        name = broken.pipeline.name
        failed = run.until("pipeline_failed", 3, pipeline=name)  # again and again, while the other one goes on
        retried = run.until("pipeline_retried", pipeline=name)
        assert [each["retry_in_seconds"] for each in retried] == list(guard.FAILURE_SECONDS)
        assert {(each["error"], each["message"][:60]) for each in failed} == {
            ("Fault", f"pipeline {name}: ValueError: year 55840 is out of range (tes"[:60])
        }
        shop.produce(shop.orders(3, schema_id))
        run.until("batch_committed", pipeline=shop.pipeline.name)
        landed(shop, 3)
    assert isinstance(run.outcomes[name].error, Fault)
    assert run.outcomes[shop.pipeline.name].error is None


def test_a_run_ends_when_all_its_pipelines_have_failed(shop: Shop) -> None:
    shop.register()
    with Following(shop, kafka=Broken(shop.job().kafka, shop.topic)) as run:
        run.join()
    assert isinstance(run.outcomes[shop.pipeline.name].error, Fault)


@pytest.mark.parametrize("field", ["partition_by", "sort_by"])
def test_a_partition_or_sort_column_that_does_not_exist_ends_its_pipeline_at_once(shop_of: ShopOf, field: str) -> None:
    shop = shop_of(table={field: ("ordr_id",)})
    shop.register()
    with Following(shop) as run:
        run.join()
    error = run.outcomes[shop.pipeline.name].error
    assert isinstance(error, InvalidInput)
    assert "Did you mean order_id?" in str(error)
    assert run.pauses == []


@pytest.mark.long
def test_a_decision_is_noticed_without_a_new_run_and_neighbours_go_on(shop_of: ShopOf, shop: Shop) -> None:
    suspended = shop_of_its_own(shop)
    schema_id, other_id = suspended.register(), shop.register()
    suspended.produce(suspended.orders(5, schema_id))
    suspended.drain()
    suspended.produce(suspended.orders(5, schema_id, first=5))
    suspended.delete_records(8)
    with Following(suspended, shop) as run:
        (refused, *_) = run.until("decision_required")
        assert (refused["error"], refused["retry_in_seconds"]) == ("OffsetsLost", 60.0)
        shop.produce(shop.orders(3, other_id))
        run.until("batch_committed", pipeline=shop.pipeline.name)
        suspended.accept(Accepted.OFFSETS_LOST)
        run.until("batch_committed", pipeline=suspended.pipeline.name)
    assert len(suspended.landed()) == 7


def shop_of_its_own(shop: Shop) -> Shop:
    return Shop(shop.world, shop.spark, shop.lake, f"{shop.topic}_second", partitions=1)


def test_a_second_follower_is_fenced_and_the_first_goes_on(shop: Shop) -> None:
    schema_id = shop.register()
    with Following(shop) as first:
        first.until("idle")
        with Following(shop) as second:
            second.until("idle")
            shop.produce(shop.orders(3, schema_id))
            landed(shop, 3)
            shop.produce(shop.orders(3, schema_id, first=3))
            landed(shop, 6)
    assert sum(run.outcomes[shop.pipeline.name].total.fenced for run in (first, second)) <= 1
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_pipeline_that_another_run_landed_for_a_while_is_landed_again(shop: Shop) -> None:
    """The run lands another pipeline, so it does not end when it is fenced in this one."""
    second, schema_id = shop_of_its_own(shop), shop.register()
    fence = threading.Event()

    def other_run(step: str) -> None:
        if step == "stage.done" and fence.is_set():
            fence.clear()
            shop.drain()

    second.register()
    with Following(shop, second, failpoint=other_run) as run:
        run.until("idle", pipeline=shop.pipeline.name)
        run.until("idle", pipeline=second.pipeline.name)
        fence.set()
        shop.produce(shop.orders(3, schema_id))
        run.until("fenced", pipeline=shop.pipeline.name)
        shop.produce(shop.orders(3, schema_id, first=3))
        landed(shop, 6)
    assert not run.outcomes[shop.pipeline.name].total.fenced
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_task_that_dies_of_memory_halves_the_batch(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = shop_of(partitions=1)
    shop.produce(shop.orders(40, shop.register()))
    decode, sizes = RecordDecoder._decoded, list[int]()

    def dying(decoder: RecordDecoder, records: Any, *more: Any) -> Any:
        """As a task would: batches of more than ten records end in an OutOfMemoryError."""
        sizes.append(records.count())
        if sizes[-1] > 10:
            death = F.raise_error(F.lit("java.lang.OutOfMemoryError: Java heap space")).cast("binary")
            records = records.withColumn("value", F.when(F.col("offset") >= 0, death))
        return decode(decoder, records, *more)

    monkeypatch.setattr(RecordDecoder, "_decoded", dying)
    assert shop.drain(replace(shop.pipeline, engine=Spark(limits=Limits(first_rows=40)))).written == 40
    assert sizes[:3] == [40, 20, 10]
    shop.assert_each_record_once()


@contextmanager
def cancelling(shop: Shop, stop: threading.Event) -> Iterator[None]:
    ended = threading.Event()
    watch = threading.Thread(target=session._cancel_jobs, args=(shop.spark, stop, ended))
    watch.start()
    try:
        yield
    finally:
        ended.set()
        stop.set()
        watch.join(PATIENCE)


def test_stopping_ends_a_batch_that_is_being_staged_and_loses_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.produce(shop.orders(10, shop.register()))
    decode, stop, begun = RecordDecoder._decoded, threading.Event(), threading.Event()

    def endless(decoder: RecordDecoder, records: Any, *more: Any) -> Any:
        begun.set()
        slow = F.when(F.expr("java_method('java.lang.Thread', 'sleep', 60000L)").isNull(), F.col("value"))
        return decode(decoder, records.withColumn("value", F.coalesce(slow, F.col("value"))), *more)

    monkeypatch.setattr(RecordDecoder, "_decoded", endless)
    ingestion = shop.ingestion(stopping=stop.is_set)
    with cancelling(shop, stop):
        run = threading.Thread(target=ingestion.drain)
        run.start()
        assert begun.wait(PATIENCE)
        began = time.monotonic()
        stop.set()
        run.join(PATIENCE)
        assert time.monotonic() - began < 30
    assert ingestion.total.read == 0
    assert shop.landed() == []
    monkeypatch.undo()
    shop.drain()
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_run_that_goes_on_finds_keys_by_an_index_once_searches_have_cost_as_much(
    shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search takes two seconds more by the run's clock: an index pays behind the second one at the latest."""
    shop = shop_of(write=Upsert(), key_format="text")
    state, find, searches = State(shop), ScanResolver.find, list[int]()

    def slow(*asked: Any, **named: Any) -> Found:
        searches.append(len(searches))
        return find(*asked, **named)

    monkeypatch.setattr(ScanResolver, "find", slow)
    with Following(shop, clock=lambda: time.time() + 2 * len(searches)) as run:
        for number in range(6):
            state.put(number % 2, f"of {number}")
            run.until("batch_committed", number + 1)
        (built,) = run.until("key_index_built")
    assert built["rows"] == 2
    assert 1 <= len(searches) <= 2
    state.check()
