"""Frazil with a thousand commits of a few rows: the cost of a commit, of planning and of the metadata as the table ages."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyiceberg.catalog import load_catalog

from bench.accounting import Meter
from bench.contenders.product import declared, driver, ingestion, timed_commits
from bench.topics import Job
from frazil.clients.secrets import Secrets
from frazil.job.context import JobContext
from frazil.lake.catalogs import pyiceberg_properties
from frazil.lake.iceberg_java import Iceberg

EVERY = 5  # commits between two looks at planning and metadata, in the two hundreds that are compared


def run(job: Job, meter: Meter) -> dict[str, Any]:
    """Land the timed topic in batches of the job's size. Return the cost of each commit, and of looks in between."""
    looks: list[dict[str, float]] = []
    wanted = job.timed.rows // job.batch_rows
    with driver(job) as (shared, registry):
        catalog = load_catalog("lake", **pyiceberg_properties(job.environment, Secrets({}).read))

        def look(event: Mapping[str, Any]) -> None:
            is_compared = 100 < len(commits) <= 200 or len(commits) > wanted - 100
            if event["event"] == "batch_committed" and is_compared and len(commits) % EVERY == 0:
                looks.append({"commit": len(commits), **_look(shared, catalog, job.table)})

        commits = timed_commits()
        pipeline = declared(job, job.timed, job.table)
        began = time.monotonic()
        total = ingestion(shared, registry, pipeline, hear=look).drain()
        seconds = time.monotonic() - began
        assert len(commits) == wanted, f"{len(commits)} commits were timed, {wanted} expected"
        return {
            "commits": commits,
            "looks": looks,
            "seconds": seconds,
            "counted": total.written,
            "peak_rss_mb": meter.peak_rss_mb(),
        }


def _look(shared: JobContext, catalog: Any, table: str) -> dict[str, float]:
    java = min(_java_planning(shared.iceberg, table) for _ in range(3))
    began = time.monotonic()
    found = catalog.load_table(table)
    files = sum(1 for _ in found.scan().plan_files())
    python = time.monotonic() - began
    metadata = Path(urlparse(found.location()).path) / "metadata"
    sizes = []
    for file in metadata.iterdir():
        with suppress(FileNotFoundError):  # upkeep removes files meanwhile
            sizes.append(file.stat().st_size)
    current = Path(urlparse(found.metadata_location).path).stat().st_size
    return {
        "java_planning_seconds": java,
        "pyiceberg_planning_seconds": python,
        "data_files": files,
        "metadata_bytes": sum(sizes),
        "metadata_files": len(sizes),
        "metadata_json_bytes": current,
        "snapshots": len(found.metadata.snapshots),
    }


def _java_planning(iceberg: Iceberg, table: str) -> float:
    began = time.monotonic()
    tasks = iceberg.load(table).newScan().planFiles()
    arguments = ("java.lang.Iterable", tasks)
    iceberg.classes.static("relocated.com.google.common.collect.Iterables", "size", arguments)
    return time.monotonic() - began
