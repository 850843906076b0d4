"""What a small batch costs however small it is, counted: calls into the JVM, Spark jobs, catalog loads, requests to Kafka."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from py4j.clientserver import JavaClient
from pyspark.sql import SparkSession

from frazil.clients import kafka_connection
from frazil.clients.kafka_connection import Connection
from frazil.declaration.environment import Environment
from frazil.lake.iceberg_java import Iceberg
from frazil.local.services import LocalServices
from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
FREED = "m"  # py4j's command that frees an object; the garbage collector decides when


class Cost:
    """The counts of what happens in its block, by all threads of this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
        self.counts: Counter[str] = Counter()
        self._scheduler = spark.sparkContext._jsc.sc().dagScheduler()  # type: ignore[attr-defined]
        self._count(monkeypatch, JavaClient, "send_command", "calls")
        self._count(monkeypatch, Iceberg, "load", "loads")
        self._count(monkeypatch, Connection, "ask", "requests")
        self._count(monkeypatch, kafka_connection, "Consumer", "consumers")

    def _count(self, monkeypatch: pytest.MonkeyPatch, holder: Any, name: str, what: str) -> None:
        original = getattr(holder, name)

        def counted(*given: Any, **named: Any) -> Any:
            self.counts[what] += what != "calls" or not given[1].startswith(FREED)
            return original(*given, **named)

        monkeypatch.setattr(holder, name, counted)

    def of(self, landing: Callable[[], object]) -> dict[str, int]:
        before = self._scheduler.numTotalJobs()
        self.counts.clear()
        landing()
        found = dict(self.counts)
        return {**found, "jobs": self._scheduler.numTotalJobs() - before}


def test_a_small_batch_costs_few_calls_and_one_job(
    monkeypatch: pytest.MonkeyPatch, local_world: LocalServices, spark: SparkSession, lake_environment: Environment
) -> None:
    cost = Cost(monkeypatch, spark)
    first, second = (Shop(local_world, spark, lake_environment, f"c{uuid.uuid4().hex[:9]}") for _ in range(2))
    for shop in (first, second):  # the first one looks up classes and methods
        schema_id = shop.register()
        shop.produce(shop.orders(6, schema_id))
        found = cost.of(shop.drain)
    assert found["calls"] <= 920, found
    assert found["loads"] <= 17, found
    assert found["requests"] <= 10, found
    assert (found["jobs"], found.get("consumers", 0)) == (1, 0), found
    running = second.ingestion()
    for number in range(3):  # the first batch of a run has its plan made
        second.produce(second.orders(3, schema_id, first=9 + 3 * number))
        found = cost.of(running.poll)
    assert found["calls"] <= 200, found
    assert (found["jobs"], found["loads"], found["requests"]) == (1, 2, 6), found
    second.produce(second.orders(3, schema_id, first=6))
    found = cost.of(second.drain)
    assert found["calls"] <= 797, found
    assert found["loads"] <= 18, found  # two more: it compares the table with the declaration, and clears a stop
    assert (found["jobs"], found["consumers"]) == (1, 1), found  # it reads the last records back
    second.assert_each_record_once()
