"""Which tables of current state have their keys found by an index, and what is reported of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.declaration import Pipeline, Upsert
from frazil.ingest.reporting.events import Event, Reporter
from frazil.job.context import JobContext
from frazil.upsert.index_resolver import IndexResolver
from frazil.upsert.scan_resolver import ScanResolver
from frazil.write.state_columns import rules


def key_index(pipeline: Pipeline, job: JobContext, report: Reporter) -> IndexResolver | None:
    """Return the search by an index, for the batches of one run; None for a table whose batches would not use it.

    A batch that depends on more of its rows than their place searches the table.
    """
    if not isinstance(pipeline.write, Upsert) or rules(pipeline).need_rows:
        return None

    def reported(event: str, facts: Mapping[str, Any]) -> None:
        report(Event(f"key_index_{event}"), table=pipeline.table.identifier, **facts)

    return IndexResolver(ScanResolver(job.iceberg, pipeline.table.identifier), job, reported)
