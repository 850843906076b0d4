"""A driver in a process of its own that waits at a step while the test does something else."""

from __future__ import annotations

import copy
import json
import os
import select
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.shop import Shop

REACHED_SECONDS, END_SECONDS = 120, 120


@dataclass
class Driver:
    """The driver. Its output is known once it has ended successfully."""

    pid: int
    words: str = ""
    events: list[Mapping[str, Any]] = field(default_factory=list)

    def ended(self, *names: str) -> list[str]:
        """Return which of these events occurred, in order."""
        return [event["event"] for event in self.events if event["event"] in names]


@contextmanager
def paused(shop: Shop, folder: Path, step: str, **options: Any) -> Iterator[Driver]:
    """Run a driver of the shop's pipeline that waits at `step` during the block and then continues to its end.

    `options` are those of `Shop.process`.
    """
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    os.mkfifo(f"{pipe}.reached")
    reached = os.open(f"{pipe}.reached", os.O_RDONLY | os.O_NONBLOCK)
    process = shop.process(folder, failpoints=f"{step}=pause:{pipe}", **options)
    driver = Driver(process.pid)
    try:
        for _ in range(REACHED_SECONDS):
            if select.select([reached], [], [], 1)[0]:
                break
            assert process.poll() is None, process.communicate()
        assert os.read(reached, 1) == b".", f"{step} was not reached"
        yield driver
        pipe.write_bytes(b".")
        out, log = process.communicate(timeout=END_SECONDS)
        driver.words = out + log
        assert process.returncode == 0, log
        driver.events += [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    finally:
        os.close(reached)
        if process.poll() is None:
            process.kill()
            process.wait()


@contextmanager
def on_a_thread(shop: Shop, folder: Path, step: str) -> Iterator[Driver]:
    """Do the same with a driver on a thread of this process and on the shared session, which starts no JVM."""
    driver, mine = Driver(os.getpid()), copy.copy(shop)
    mine.events = driver.events
    reached, goes_on = threading.Event(), threading.Event()

    def failpoint(met: str) -> None:
        if met == step and not reached.is_set():
            reached.set()
            assert goes_on.wait(END_SECONDS), "the test does not go on"

    with ThreadPoolExecutor(1, thread_name_prefix="paused") as pool:
        drained = pool.submit(mine.drain, failpoint=failpoint)
        drained.add_done_callback(lambda _: reached.set())
        try:
            assert reached.wait(REACHED_SECONDS), f"{step} was not reached"
            assert not drained.done(), f"{step} was not reached: {driver.events}"
            yield driver
        finally:
            goes_on.set()
        drained.result(END_SECONDS)
