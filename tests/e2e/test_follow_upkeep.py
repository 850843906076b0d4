"""A following process keeps an upsert table in shape between its batches."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from frazil.declaration import Keep, Limits, Upsert
from tests.e2e.test_follow_process import FOLLOW, PATIENCE, Log
from tests.scenarios.test_upserts import State
from tests.support.shop import ShopOf

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long]
BATCHES, KEYS, TARGET = 200, 7, 10


@pytest.mark.timeout(3600)
def test_upkeep_is_done_between_batches_within_its_time_and_sigterm_ends_it(shop_of: ShopOf, tmp_path: Path) -> None:
    limits = Limits(first_rows=KEYS, max_rows=KEYS, target_seconds=TARGET)
    shop = shop_of(write=Upsert(), key_format="text", limits=limits, table={"snapshots": Keep(20)})
    state = State(shop)
    process = shop.process(tmp_path, mode=FOLLOW)
    log = Log(process)
    try:
        _feed(state, log, BATCHES)
        done = [line for line in log.lines if line["event"] == "files_compacted"]
        assert done
        assert {line["ended"] for line in done} <= {"done", "stopped"}
        assert sum(line["ended"] == "done" for line in done) > 1
        assert max(line["seconds"] for line in done) < TARGET + 5
        commits = [line for line in log.lines if line["event"] == "batch_committed"]
        first, last = (log.lines.index(one) for one in (done[0], commits[-1]))
        assert first < last  # not only at the end of the run
        began, ended = (datetime.fromisoformat(line["time"]) for line in (commits[0], commits[-1]))
        spent = sum(line["seconds"] for line in done)
        assert spent < (ended - began).total_seconds() / 4  # a fifth on a long average
        assert max(line["freshness_seconds"] for line in commits[BATCHES // 10 :]) < 2 * TARGET
        assert [line for line in log.lines if line["event"] == "snapshots_expired"]
        assert int(shop.stored.current_snapshot().summary["total-data-files"]) < 50
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, log.others
    finally:
        process.kill()
        process.wait(PATIENCE)
        log.join()
    state.settle()


@pytest.mark.parametrize("step", ["compact.rewritten", "merge.written"])
def test_a_sigterm_during_upkeep_ends_the_process_and_leaves_the_state_right(
    shop_of: ShopOf, tmp_path: Path, step: str
) -> None:
    limits = Limits(first_rows=KEYS, max_rows=KEYS)
    shop = shop_of(write=Upsert(), key_format="text", limits=limits)
    state = State(shop)
    pipe, reached = tmp_path / "pipe", tmp_path / "pipe.reached"
    os.mkfifo(pipe)
    process = shop.process(tmp_path, mode=FOLLOW, failpoints=f"{step}=pause:{pipe}")
    log = Log(process)
    try:
        _feed(state, log, 40, until=reached.exists)
        assert reached.exists()
        process.send_signal(signal.SIGTERM)
        pipe.write_bytes(b".")
        assert process.wait(PATIENCE) == 0, log.others
    finally:
        process.kill()
        process.wait(PATIENCE)
        log.join()
    state.settle()


def _feed(state: State, log: Log, batches: int, until: Callable[[], bool] = lambda: False) -> None:
    """Produce so many batches, each when the one before is committed, or until something happens."""
    for number in range(batches):
        for key in range(KEYS - 1):
            state.put(key if number % 2 else key + KEYS, f"of {number}", partition=key % 2)
        state.delete(number % KEYS, partition=number % KEYS % 2)
        deadline = time.monotonic() + PATIENCE
        while (
            sum(line.get("read", 0) for line in log.lines if line["event"] == "batch_committed") < (number + 1) * KEYS
        ):
            if until():
                return
            assert time.monotonic() < deadline, (log.lines[-5:], log.others[-5:])
            time.sleep(0.02)  # records of the process's log come from another thread
