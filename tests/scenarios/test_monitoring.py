"""Metrics of real runs in a real Prometheus: the panels of the dashboard, and an alarm on its way to a receiver."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from frazil.declaration import Limits, Redact, Shape
from frazil.declaration.documents.document import document, environment_document
from frazil.declaration.documents.to_json import canonical
from frazil.metrics.alarm_rules import rules
from frazil.metrics.dashboard import PANELS
from frazil.metrics.notifications import Receiver, configuration
from frazil.metrics.prometheus_export import Address, served
from frazil.metrics.readings import Readings
from tests.scenarios.test_follow import Following
from tests.support.prometheus import alertmanager, prometheus
from tests.support.shop import Shop, ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
PATIENCE = 60.0


def readings_of(shop: Shop) -> Readings:
    return Readings("r", "1", clock=time.time, cpu_seconds=time.process_time)


def until(is_true: Callable[[], bool]) -> None:
    """Wait for a program that scrapes each second."""
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


class Measured(Following):
    """A run whose events are measured, too."""

    readings: Readings

    def _take(self, event: Mapping[str, Any]) -> None:
        self.readings(event)
        super()._take(event)


def test_each_panel_of_the_dashboard_has_data_of_a_run(shop_of: ShopOf, tmp_path: Path) -> None:
    shop = shop_of(shape=Shape(where="amount >= 1", mask={"user": Redact()}), limits=Limits(first_rows=30))
    readings, schema_id = readings_of(shop), shop.register()

    def land() -> None:
        before = len(shop.events)
        shop.produce([*shop.orders(40, schema_id), b"broken"])
        shop.drain()
        for event in shop.events[before:]:
            readings(event)

    with served(readings, Address("127.0.0.1", 0)) as address:
        land()
        readings({"event": "batch_retried", "time": time.time(), "pipeline": shop.pipeline.name, "topic": shop.topic})
        with prometheus(tmp_path, f"{address.host}:{address.port}") as server:
            until(lambda: server.scrapes() >= 2)
            land()
            seen = server.scrapes()
            until(lambda: server.scrapes() >= seen + 2)
            for panel in PANELS:
                query = panel.query.replace("$pipeline", shop.pipeline.name).replace("$__rate_interval", "1m")
                found = server.query(query)
                assert found, panel.title
                assert all(float(one["value"][1]) >= 0 for one in found), (panel.title, found)


def test_a_fault_is_notified_with_its_runbook(shop: Shop, tmp_path: Path) -> None:
    shop.produce(shop.orders(5, shop.register()))
    run = Measured(shop)
    run.readings = readings_of(shop)
    with (
        served(run.readings, Address("127.0.0.1", 0)) as address,
        alertmanager(tmp_path, configuration(Receiver.WEBHOOK)) as (receiver, notified),
        prometheus(tmp_path, f"{address.host}:{address.port}", rules=rules(), alertmanager=receiver) as server,
        run,
    ):
        run.until("batch_committed")
        until(lambda: bool(server.query('frazil_pipeline_state{state="running"}')))
        assert server.query("ALERTS") == []
        shop.new_topic(2)
        run.until("decision_required")
        alert = notified.get(timeout=PATIENCE)
        assert {one["metric"]["alertname"] for one in server.query("ALERTS")} == {"FrazilSuspended"}
    assert alert["labels"]["alertname"] == "FrazilSuspended"
    assert alert["labels"]["pipeline"] == shop.pipeline.name
    assert alert["annotations"] == {
        "summary": f"{shop.pipeline.name}: the pipeline stopped until an operator decides",
        "runbook_url": "docs/guides/alarms.md#frazilsuspended",
    }


@pytest.mark.long
def test_a_run_that_follows_serves_its_metrics_until_it_is_stopped(shop: Shop, tmp_path: Path) -> None:
    shop.produce(shop.orders(5, shop.register()))
    (tmp_path / "pipelines.json").write_bytes(canonical(document([shop.pipeline])))
    (tmp_path / "environment.json").write_bytes(canonical(environment_document(shop.environment)))
    options = ["--pipelines", "pipelines.json", "--env", "environment.json", "--master", "local[2]"]
    command = [
        sys.executable,
        "-c",
        "from frazil.cli.start import main; main()",
        "run",
        "--follow",
        "--metrics",
        "127.0.0.1:0",
        *options,
    ]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        try:
            lines = map(json.loads, run.stderr)
            address = next(line["message"] for line in lines if line["event"] == "metrics_served").split()[1]
            assert next(line for line in lines if line["event"] == "batch_committed")["read"] == 5

            def scraped() -> str:
                with urllib.request.urlopen(address, timeout=5) as answer:
                    return str(answer.read().decode())

            until(lambda: f'pipeline="{shop.pipeline.name}",topic="{shop.topic}"}} 5.0' in scraped())
            assert "frazil_cpu_seconds_total" in scraped()
        finally:
            run.send_signal(signal.SIGINT)
        rest = run.stderr.read()
    assert run.returncode == 0, rest
    with pytest.raises(OSError, match="refused"):
        scraped()
