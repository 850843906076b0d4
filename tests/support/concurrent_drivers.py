"""Two concurrent drivers on one pipeline, on any lake. One makes progress, the other is fenced."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

from frazil.declaration import Limits
from frazil.recovery.decisions import Accepted
from tests.support.paused_driver import Driver, paused
from tests.support.shop import Shop, ShopOf

TWIN = Path(__file__).parent / "replanning_driver.py"
STEPS = ("plan.done", "stage.written", "publish.decided", "publish.filled")
"""Where a driver may pause while its twin lands the same records: between planning and the transaction, and between
the transaction's base and its commit."""
Paused = Callable[..., AbstractContextManager[Driver]]
"""Runs a driver that pauses: in a process of its own, or on a thread."""
BEGINNINGS = ("begin.resolved", "publish.decided", "publish.filled")
"""The same before the table has the pipeline's tag."""


def run_both(shop: Shop, folder: Path, *, beside: Callable[[], object] | None = None) -> list[dict[str, int]]:
    """Run two drivers that plan again whenever they are fenced, until both have drained the topic; what each of them counts.

    Meanwhile `beside` is called, again and again.
    """
    drivers = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        drivers.append(shop.process(folder / name, script=TWIN))
    try:
        for driver in drivers:
            assert driver.stdout.readline() == "ready\n", driver.communicate()
        for driver in drivers:
            driver.stdin.write("go\n")
            driver.stdin.flush()
        with ThreadPoolExecutor(len(drivers)) as pool:  # both logs are read all the while: no driver waits for it
            ends = [pool.submit(driver.communicate, timeout=600) for driver in drivers]
            while beside is not None and not all(end.done() for end in ends):
                beside()
            words = [end.result() for end in ends]
    finally:
        for driver in drivers:
            driver.kill()
    results = []
    for driver, (out, log) in zip(drivers, words, strict=True):
        assert driver.returncode == 0, log
        results.append(json.loads(out.splitlines()[-1]))
    return results


def run_free(shop_of: ShopOf, folder: Path, *, orders: int = 1000, batch: int = 40) -> None:
    """Have two drivers land the same records at the same time."""
    shop = shop_of(limits=Limits(first_rows=batch, max_rows=batch), partitions=3)
    shop.produce([*shop.orders(orders, shop.register()), *[b"bad!!"] * 10])
    results = run_both(shop, folder)
    shop.assert_each_record_once()
    assert sum(r["batches"] for r in results) >= (orders + 10) // batch, results
    assert sum(r["fenced"] for r in results) >= 1, results


def commit_while_one_pauses(shop: Shop, folder: Path, step: str, paused: Paused = paused) -> None:
    """Pause a driver at `step` of a later batch while a second one lands everything. The first must be fenced."""
    schema_id = shop.register()
    shop.produce(shop.orders(5, schema_id))
    shop.drain()
    shop.produce([*shop.orders(5, schema_id, first=5), b"bad!!"])
    with paused(shop, folder, step) as driver:
        shop.drain()
    assert driver.ended("fenced", "batch_committed") == ["fenced"]
    shop.assert_each_record_once()


def decide_while_one_pauses(shop: Shop, folder: Path, step: str, paused: Paused = paused) -> None:
    """Pause a driver at `step` of a later batch while the table is rolled back and an operator decides to replay."""
    schema_id = shop.register()
    for first in (0, 5):
        shop.produce([*shop.orders(5, schema_id, first=first), b"bad!!"])
        shop.drain()
    shop.produce([*shop.orders(5, schema_id, first=10), b"bad!!"])
    with paused(shop, folder, step) as driver:
        shop.roll_back()
        shop.accept(Accepted.ROLLED_BACK_REPLAY)
    ended = driver.ended("fenced", "batch_committed")
    assert ended[-1:] == ["batch_committed"], ended
    shop.drain()
    shop.assert_each_record_once()


def begin_while_one_pauses(shop: Shop, folder: Path, step: str, paused: Paused = paused) -> None:
    """Pause a driver before its first commit while a second one lands everything. The first finds it done."""
    shop.produce(shop.orders(5, shop.register()))
    with paused(shop, folder, step) as driver:
        shop.drain()
    assert driver.ended("fenced", "batch_committed", "idle") == ["idle"]
    shop.assert_each_record_once()
