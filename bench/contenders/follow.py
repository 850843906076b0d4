"""Frazil, following a topic like `frazil run --follow`, until its standard input ends."""

from __future__ import annotations

import sys
import threading
from typing import Any

from bench.accounting import Meter
from bench.contenders.product import declared, driver, heard
from bench.topics import Job
from frazil.ingest import runner


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Follow the timed topic with a look every `every_ms`; by default, as often as `--follow` does."""
    every = job.wants.get("every_ms", 0) / 1000 or runner.EVERY_SECONDS
    stopping = threading.Event()
    errors: list[Exception] = []
    with driver(job, stopping=stopping) as (shared, registry):

        def follow() -> None:
            pipeline = declared(job, job.timed, job.table)
            outcomes = runner.follow([pipeline], shared, registry, heard, every_seconds=every, probe=False)
            errors.extend(outcome.error for outcome in outcomes.values() if outcome.error)

        following = threading.Thread(target=follow)
        following.start()
        sys.stdin.read()
        peak = meter.peak_rss_mb()
        stopping.set()
        following.join()
    if errors:
        raise errors[0]
    return {"every_seconds": every, "peak_rss_mb": peak}
