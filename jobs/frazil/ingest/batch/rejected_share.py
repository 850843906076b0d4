"""Stop a batch with more rejected or late records than the pipeline allows: the declaration or the source may be wrong."""

from __future__ import annotations

from frazil.declaration import Pipeline
from frazil.declaration.options import ErrorMode
from frazil.errors import KeysMissing, SourceTruncated, TooManyLate, TooManyRejected
from frazil.ingest.batch.record_counts import Rejected
from frazil.ingest.plan.planner import Accepted
from frazil.lake.ledger.entry import LATE_RECORDS, REJECTED_SHARE, SOURCE_TRUNCATED
from frazil.lake.ledger.next_offsets import Offsets
from frazil.lake.ledger.totals import Counts
from frazil.schemas.reasons import Reason

MOST_PERCENT = 50  # where the declaration says nothing
MOST_PERCENT_LATE = 1
LEAST_RECORDS = 100
"""A smaller batch says too little about a topic."""
_NO_FAULT = frozenset({Reason.TOMBSTONE.value, Reason.NO_CHANGE.value})
_NO_SKIPPED_FAULT = _NO_FAULT | {Reason.TRUNCATED.value}  # where a truncate is declared to delete all rows
_OF_THE_FRAME = frozenset({Reason.WRONG_MAGIC.value, Reason.TOO_SHORT.value})


def check_keys(pipeline: Pipeline, rejected: Rejected, records: int) -> None:
    """Raise `KeysMissing` if none of the batch's `records` has a key; it is asked while the table has had no record.

    Some of them may be rejected for another reason, such as a damaged value, but not all: then nothing is known of the others.
    """
    reason = Reason.KEY_MISSING.value
    if rejected.keyless == records and (rejected.kept.get(reason) or rejected.skipped.get(reason)):
        write, may_name_key = type(pipeline.write).__name__, not pipeline.is_change_data
        raise KeysMissing.of(pipeline.name, pipeline.topic.name, records, write=write, may_name_key=may_name_key)


def check_share(
    pipeline: Pipeline,
    counts: Counts,
    start: Offsets,
    end: Offsets,
    accepted: Accepted,
    *,
    is_fenced: bool = False,
) -> None:
    """Raise `TooManyRejected` if more of a batch is rejected or skipped than `max_rejected_percent` allows.

    Tombstones, events that change no row and truncates that take effect do not count, and nothing in error mode `suspend`, which
    lands no rejected record that an operator has not accepted. A batch that ends at or before the `accepted`
    offsets of this decision may be as it is. Raises `TooManyLate` and `SourceTruncated`, too, unless the batch `is_fenced`: its
    records are then late because another driver landed them.
    """
    offsets = f"{start} to {end}"
    if not is_fenced:
        _check_late(pipeline, counts, offsets, end, accepted)
        number = counts.rejected.get(Reason.TRUNCATED.value, 0)
        if number and not _is_accepted(end, accepted, SOURCE_TRUNCATED):
            raise SourceTruncated.of(pipeline.name, pipeline.table.identifier, offsets=offsets, number=number)
    if pipeline.on_error is ErrorMode.SUSPEND:
        return  # an operator accepted each rejected record of the batch
    reasons = {**counts.rejected, **{r: n for r, n in counts.skipped.items() if r not in _NO_SKIPPED_FAULT}}
    number, most = sum(reasons.values()), pipeline.max_rejected_percent or MOST_PERCENT
    if counts.own < LEAST_RECORDS or number * 100 <= most * counts.own or _is_accepted(end, accepted, REJECTED_SHARE):
        return
    raise TooManyRejected.of(
        pipeline.name,
        offsets=offsets,
        read=counts.own,
        counts=reasons,
        most_percent=most,
        is_unframed=bool(_OF_THE_FRAME & set(reasons)),
    )


def _check_late(pipeline: Pipeline, counts: Counts, offsets: str, end: Offsets, accepted: Accepted) -> None:
    """Raise `TooManyLate` if more than 1 % of a batch, and at least 100 records, are late, unless it ends within `accepted`."""
    if counts.late < LEAST_RECORDS or counts.late * 100 <= MOST_PERCENT_LATE * counts.own:
        return
    if not _is_accepted(end, accepted, LATE_RECORDS):
        raise TooManyLate.of(
            pipeline.name,
            pipeline.table.identifier,
            offsets=offsets,
            read=counts.own,
            late=counts.late,
        )


def _is_accepted(end: Offsets, accepted: Accepted, event: str) -> bool:
    until = accepted.get(event) or None
    return until is not None and all(offset <= until.get(p, 0) for p, offset in end.at.items())
