"""The order in which a drain takes its pipelines, if there are more than it lands at once.

A drain may be ended before all pipelines had their turn. In the declared order, it would always be the same ones. So those
that have waited longest for their records come first: who was landed at the end of one run is last in the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from frazil.declaration import Pipeline
from frazil.errors import FrazilError
from frazil.ingest.setup.table_setup import read_ledger
from frazil.ingest.spark_errors import explained
from frazil.job.context import JobContext


@dataclass(frozen=True, slots=True, order=True)
class Turn:
    """The place of a pipeline. `is_idle`: no record waits. `committed_at_ms`: its last commit; 0 if there is none, or unknown."""

    is_idle: bool
    committed_at_ms: int


UNKNOWN = Turn(is_idle=False, committed_at_ms=0)
"""The turn of a pipeline without a table, and of one whose table or topic cannot be read: its run reports the reason."""


def in_turn(pipelines: Sequence[Pipeline], turns: Mapping[str, Turn]) -> list[Pipeline]:
    """Return the pipelines by their turns: those that wait, the longest wait first, then those without records."""
    return sorted(pipelines, key=lambda pipeline: turns[pipeline.name])


def turns(pipelines: Sequence[Pipeline], job: JobContext, *, parallel: int) -> dict[str, Turn]:
    """Return the turn of each pipeline, from its table's ledger and its topic."""
    with ThreadPoolExecutor(parallel, thread_name_prefix="turns") as threads:
        found = threads.map(lambda pipeline: _turn(pipeline, job), pipelines)
        return dict(zip((pipeline.name for pipeline in pipelines), found, strict=True))


def _turn(pipeline: Pipeline, job: JobContext) -> Turn:
    try:
        with explained(f"pipeline {pipeline.name}", stopping=job.stopping, redact=job.redact):
            has_table = job.iceberg.exists(pipeline.table.identifier)
            last = read_ledger(job.iceberg, pipeline) if has_table else None
            if last is None or last.end is None:
                return UNKNOWN
            spans = job.kafka.offsets(pipeline.topic.name, pipeline.isolation)
    except FrazilError:
        return UNKNOWN
    is_idle = all(last.end.at.get(partition, 0) >= span.stable for partition, span in spans.items())
    return Turn(is_idle=is_idle, committed_at_ms=last.at_ms)
