"""A run that goes on: records become visible soon, outages are waited out, decisions are noticed, stopping is quick."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import functions as F

from frazil.clients.registry import Registry
from frazil.clients.secrets import Secrets
from frazil.declaration import Limits, Pipeline
from frazil.errors import KafkaUnavailable
from frazil.ingest import batch, drive
from frazil.ingest.accept import accept
from frazil.ingest.acceptance import Accepted
from tests.scenarios.test_accept import delete_records
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
ShopOf = Callable[..., Shop]
PATIENCE = 60.0


class Following:
    """A run in a thread of its own. Pauses last until they are passed, but no pause is slept out."""

    def __init__(self, shop: Shop, *shops: Shop, **overrides: Any) -> None:
        self.shops, self.stop, self.pauses = (shop, *shops), threading.Event(), list[float]()
        self._news, self._events = threading.Condition(), list[Mapping[str, Any]]()
        self.outcomes: dict[str, drive.Outcome] = {}
        registry = shop.environment.registry
        assert registry is not None
        self._registry = Registry.of(registry, Secrets({}))
        self._driver = shop.driver(stopping=self.stop.is_set, wait=self._wait, **overrides)
        self._thread = threading.Thread(target=self._follow)

    def __enter__(self) -> Following:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _follow(self) -> None:
        pipelines = [shop.pipeline for shop in self.shops]
        self.outcomes = drive.follow(
            pipelines, self._driver, self._registry, self._take, every_seconds=0.05, probe=False
        )

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


def test_a_topic_whose_first_schema_comes_later_is_landed_then(shop: Shop) -> None:
    with Following(shop) as run:
        run.until("idle", message="no schema is registered yet")
        shop.produce(shop.orders(3, shop.register()))
        run.until("batch_committed")  # there is a table now
        landed(shop, 3)
    shop.assert_each_record_once()


def test_idleness_is_told_once_a_minute_and_not_at_every_look(shop: Shop) -> None:
    shop.register()
    looks = threading.Event()
    count = [0]

    def reach(step: str) -> None:
        count[0] += step == "plan.done"
        if count[0] > 20:
            looks.set()

    with Following(shop, reach=reach) as run:
        assert looks.wait(PATIENCE)
        assert len(run.until("idle")) == 1
        assert run.until("idle")[0]["lag"] == 0


def test_an_outage_is_waited_out_with_growing_pauses(shop: Shop) -> None:
    schema_id = shop.register()
    cluster = Flaky(shop.driver().kafka)
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


def test_a_decision_is_noticed_without_a_new_run_and_neighbours_go_on(shop_of: ShopOf, shop: Shop) -> None:
    suspended = shop_of_its_own(shop)
    schema_id, other_id = suspended.register(), shop.register()
    suspended.produce(suspended.orders(5, schema_id))
    suspended.drain()
    suspended.produce(suspended.orders(5, schema_id, first=5))
    delete_records(suspended, 8)
    with Following(suspended, shop) as run:
        (refused, *_) = run.until("decision_required")
        assert (refused["error"], refused["retry_in_seconds"]) == ("OffsetsLost", 60.0)
        shop.produce(shop.orders(3, other_id))
        run.until("batch_committed", pipeline=shop.pipeline.name)
        accept(suspended.pipeline, Accepted.OFFSETS_LOST, "the test's word", suspended.driver())
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


def test_a_task_that_dies_of_memory_halves_the_batch(shop_of: ShopOf, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = shop_of(partitions=1)
    shop.produce(shop.orders(40, shop.register()))
    decode, sizes = batch.decode, list[int]()

    def dying(records: Any, decoding: Any) -> Any:
        """As a task would: batches of more than ten records end in an OutOfMemoryError."""
        sizes.append(records.count())
        if sizes[-1] > 10:
            death = F.raise_error(F.lit("java.lang.OutOfMemoryError: Java heap space")).cast("binary")
            records = records.withColumn("value", F.when(F.col("offset") >= 0, death))
        return decode(records, decoding)

    monkeypatch.setattr(batch, "decode", dying)
    small = Pipeline(
        name=shop.pipeline.name, topic=shop.pipeline.topic, table=shop.pipeline.table, limits=Limits(first_rows=40)
    )
    assert shop.drain(small).written == 40
    assert sizes[:3] == [40, 20, 10]
    shop.assert_each_record_once()


@contextmanager
def cancelling(shop: Shop, stop: threading.Event) -> Iterator[None]:
    ended = threading.Event()
    watch = threading.Thread(target=drive._cancel_jobs, args=(shop.spark, stop, ended))
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
    decode, stop, staging = batch.decode, threading.Event(), threading.Event()

    def endless(records: Any, decoding: Any) -> Any:
        staging.set()
        slow = F.when(F.expr("java_method('java.lang.Thread', 'sleep', 60000L)").isNull(), F.col("value"))
        return decode(records.withColumn("value", F.coalesce(slow, F.col("value"))), decoding)

    monkeypatch.setattr(batch, "decode", endless)
    ingestion = shop.ingestion(stopping=stop.is_set)
    with cancelling(shop, stop):
        run = threading.Thread(target=ingestion.drain)
        run.start()
        assert staging.wait(PATIENCE)
        began = time.monotonic()
        stop.set()
        run.join(PATIENCE)
        assert time.monotonic() - began < 30
    assert ingestion.total.read == 0
    assert shop.landed() == []
    monkeypatch.undo()
    shop.drain()
    shop.assert_each_record_once()
