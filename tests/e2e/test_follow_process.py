"""The entry point until it is told to stop: what is produced becomes visible, SIGTERM ends it within seconds, logs are metrics."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
PATIENCE = 120.0
FOLLOW = ("--follow", "--every-seconds", "0.2")


class Log:
    """The JSON lines of a process, as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        self._news, self.lines, self.others = threading.Condition(), list[dict[str, Any]](), list[str]()
        self._thread = threading.Thread(target=self._read, args=(process.stderr,))
        self._thread.start()

    def _read(self, stream: Any) -> None:
        for line in stream:
            with self._news:
                if line.startswith("{"):
                    self.lines.append(json.loads(line))
                else:
                    self.others.append(line)
                self._news.notify_all()

    def until(self, event: str, *, read: int = 0) -> dict[str, Any]:
        """Wait for events of that name which tell of so many records read in all; returns the newest."""

        def found() -> list[dict[str, Any]]:
            told = [line for line in self.lines if line["event"] == event]
            return told if sum(line.get("read", 0) for line in told) >= read else []

        with self._news:
            assert self._news.wait_for(found, PATIENCE), (self.lines, self.others)
            return found()[-1]

    def join(self) -> None:
        self._thread.join(PATIENCE)


@pytest.fixture
def following(shop: Shop, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Log]]:
    shop.register()
    process = shop.process(tmp_path, mode=FOLLOW)
    log = Log(process)
    try:
        yield process, log
    finally:
        process.kill()
        process.wait(PATIENCE)
        log.join()


def test_what_is_produced_becomes_visible_and_sigterm_ends_it_well(
    shop: Shop, following: tuple[subprocess.Popen[str], Log]
) -> None:
    process, log = following
    log.until("idle")
    shop.produce([*shop.orders(7, shop.register()), b"bad!!"])
    landed = log.until("batch_committed", read=8)  # in one batch or in two, as the producer sends them
    shop.assert_each_record_once()
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0, log.others
    assert time.monotonic() - began < 30
    assert log.until("pipeline_finished")["read"] == 8
    (directive,) = landed["_aws"]["CloudWatchMetrics"]
    assert {"freshness_seconds", "lag", "read", "duration_seconds"} <= {
        metric["Name"] for metric in directive["Metrics"]
    }
    assert [(line["reason"], line["rejected"]) for line in log.lines if line["event"] == "rejected"]
    shop.assert_each_record_once()


@pytest.mark.long
def test_a_second_sigterm_changes_nothing(shop: Shop, following: tuple[subprocess.Popen[str], Log]) -> None:
    process, log = following
    shop.produce(shop.orders(50, shop.register()))
    log.until("batch_committed")
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0, log.others
    shop.drain()
    shop.assert_each_record_once()
