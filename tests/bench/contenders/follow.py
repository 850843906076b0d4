"""Ours, following a topic: asked for new records again and again, until its standard input ends."""

from __future__ import annotations

import select
import sys
from typing import Any

from frazil.ingest.report import Reporter
from frazil.ingest.run import Ingestion
from frazil.ingest.writers import Writers
from tests.bench.accounting import Meter
from tests.bench.contenders.product import declared, driver
from tests.bench.topics import Job


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Follow the timed topic. A line on standard input is the number of seconds to wait between two looks from now on."""
    seconds, polls = 0.2, 0
    with driver(job) as (shared, registry):
        pipeline = declared(job, job.timed, job.table)
        report = Reporter(lambda event: None, pipeline.name, job.timed.name, shared.run, shared.clock)
        ingestion = Ingestion(pipeline, shared, Writers(pipeline.topic, registry), report)
        ingestion.poll()
        print("ready", flush=True)
        while True:
            if select.select([sys.stdin], [], [], seconds)[0]:
                told = sys.stdin.readline()
                if not told:
                    return {"polls": polls, "peak_rss_mb": meter.peak_rss_mb()}
                seconds = float(told)
            ingestion.poll()
            polls += 1
