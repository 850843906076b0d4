"""The records at which error mode `suspend` stops a pipeline, and whether an operator accepted them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.declaration import Pipeline
from frazil.declaration.options import ErrorMode
from frazil.decode.decoded_columns import DETAIL, REASON, SCHEMA_ID
from frazil.errors import RejectedRecords
from frazil.ingest.batch.record_counts import Rejected
from frazil.ingest.plan.plan import Plan
from frazil.lake.commit.fence import StageAgain
from frazil.lake.ledger.entry import Ranges
from frazil.schemas.reasons import Reason

MOST_NAMED = 10_000
"""Records that one stop names."""


@dataclass(frozen=True, slots=True, order=True)
class Refused:
    """A rejected record: its place, the reason, the schema id of its value's frame, and what else its decoding says."""

    partition: int
    offset: int
    reason: str
    schema_id: int | None = None
    detail: str | None = None


def refused(pipeline: Pipeline, letters: DataFrame) -> tuple[Refused, ...]:
    """Return the first records at which the pipeline stops, in order, one more than a stop names; none in another error mode."""
    if pipeline.on_error is not ErrorMode.SUSPEND:
        return ()
    wanted = letters.where(F.col(REASON) != Reason.TRUNCATED.value)  # a decision of its own
    found = wanted.select("partition", "offset", REASON, SCHEMA_ID, DETAIL).orderBy("partition", "offset")
    return tuple(Refused(*row) for row in found.limit(MOST_NAMED + 1).collect())


def check_mode(
    pipeline: Pipeline,
    planned: Plan,
    rejected: Rejected,
    found: Sequence[Refused],
    explain: Callable[[Refused], str],
) -> None:
    """Raise `RejectedRecords` if error mode `suspend` rejects records that no operator accepted; `explain` says what is wrong.

    Raises `StageAgain` if `found` are not the records that were counted, as after a truncated log.
    """
    counts = {reason: number for reason, number in rejected.kept.items() if reason != Reason.TRUNCATED.value}
    if not counts or pipeline.on_error is not ErrorMode.SUSPEND:
        return
    new = next((one for one in found if not _is_in(planned.accepted_records, one)), None)
    if new is None:
        if len(found) != sum(counts.values()):
            raise StageAgain("the topic's records changed while they were read", where=f"pipeline {pipeline.name}")
        return
    named = found[:MOST_NAMED]
    raise RejectedRecords.of(
        pipeline.name,
        pipeline.topic.name,
        counts=counts,
        first=(new.partition, new.offset, new.reason),
        detail=explain(new),
        records=ranges((one.partition, one.offset) for one in named),
        until=dict(planned.end.at) if len(found) == len(named) else _before(planned, found[-1]),
        topic_id=planned.end.topic_id,
    )


def ranges(places: Iterable[tuple[int, int]]) -> dict[int, list[list[int]]]:
    """Return sorted places as ranges of offsets, by partition."""
    found: dict[int, list[list[int]]] = {}
    for partition, offset in places:
        of_partition = found.setdefault(partition, [])
        if of_partition and of_partition[-1][1] == offset:
            of_partition[-1][1] += 1
        else:
            of_partition.append([offset, offset + 1])
    return found


def _is_in(accepted: Ranges, one: Refused) -> bool:
    return any(first <= one.offset < end for first, end in accepted.get(one.partition, ()))


def _before(planned: Plan, first: Refused) -> Mapping[int, int]:
    """Return the offsets before the first record that is not named, by partition; records are named partition by partition."""
    start, end = planned.start.at, planned.end.at
    return {p: first.offset if p == first.partition else end[p] if p < first.partition else start[p] for p in end}
