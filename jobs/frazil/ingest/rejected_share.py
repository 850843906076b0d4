"""Stop a batch with more rejected or late records than the pipeline allows: the declaration or the source may be wrong."""

from __future__ import annotations

from collections.abc import Mapping

from frazil.declaration import Pipeline
from frazil.declaration.options import ErrorMode
from frazil.errors import KeysMissing, RejectedRecords, SourceTruncated, TooManyLate, TooManyRejected
from frazil.ingest.plan import Span
from frazil.ingest.record_counts import Rejected
from frazil.lake.ledger import Entry
from frazil.lake.offsets import Offsets
from frazil.lake.totals import Counts
from frazil.schemas.reasons import Reason

MOST_PERCENT = 50  # where the declaration says nothing
MOST_PERCENT_LATE = 1
LEAST_RECORDS = 100
"""A smaller batch says too little about a topic."""
_NO_FAULT = frozenset({Reason.TOMBSTONE.value, Reason.NO_CHANGE.value})
_NO_SKIPPED_FAULT = _NO_FAULT | {Reason.TRUNCATED.value}  # where a truncate is declared to delete all rows
_OF_THE_FRAME = frozenset({Reason.WRONG_MAGIC.value, Reason.TOO_SHORT.value})


def check_keys(pipeline: Pipeline, rejected: Rejected, records: int) -> None:
    """Raise `KeysMissing` if none of the batch's `records` has a key; it is asked while the table has had no record."""
    reason = Reason.KEY_MISSING.value
    if records and rejected.kept.get(reason, 0) + rejected.skipped.get(reason, 0) == records:
        raise KeysMissing.of(pipeline.name, pipeline.topic.name, records)


def check_mode(pipeline: Pipeline, rejected: Rejected) -> None:
    """Raise `RejectedRecords` if records are rejected and the error mode is `suspend`."""
    kept = {reason: number for reason, number in rejected.kept.items() if reason != Reason.TRUNCATED.value}
    if kept and rejected.first and pipeline.on_error is ErrorMode.SUSPEND:
        raise RejectedRecords.of(pipeline.name, pipeline.topic.name, counts=kept, first=rejected.first)


def check_share(
    pipeline: Pipeline,
    counts: Counts,
    start: Offsets,
    end: Offsets,
    accepted: Mapping[int, int],
    *,
    is_fenced: bool = False,
) -> None:
    """Raise `TooManyRejected` if more of a batch is rejected or skipped than `max_rejected_percent` allows.

    Tombstones, events that change no row and truncates that take effect do not count. A batch that ends at or before the `accepted`
    offsets, by partition, may be as it is. Raises as `check_late` and `check_truncates` do, too, unless the batch `is_fenced`: its
    records are then late because another driver landed them.
    """
    if not is_fenced:
        check_late(pipeline, counts, start, end, accepted)
        check_truncates(pipeline, counts, start, end, accepted)
    reasons = {**counts.rejected, **{r: n for r, n in counts.skipped.items() if r not in _NO_SKIPPED_FAULT}}
    number, most = sum(reasons.values()), pipeline.max_rejected_percent or MOST_PERCENT
    if counts.read < LEAST_RECORDS or number * 100 <= most * counts.read or _is_accepted(end, accepted):
        return
    raise TooManyRejected.of(
        pipeline.name,
        offsets=f"{start} to {end}",
        read=counts.read,
        counts=reasons,
        most_percent=most,
        is_unframed=bool(_OF_THE_FRAME & set(reasons)),
    )


def check_late(pipeline: Pipeline, counts: Counts, start: Offsets, end: Offsets, accepted: Mapping[int, int]) -> None:
    """Raise `TooManyLate` if more than 1 % of a batch, and at least 100 records, are late, unless it ends within `accepted`."""
    if counts.late < LEAST_RECORDS or counts.late * 100 <= MOST_PERCENT_LATE * counts.read:
        return
    if not _is_accepted(end, accepted):
        raise TooManyLate.of(
            pipeline.name,
            pipeline.table.identifier,
            offsets=f"{start} to {end}",
            read=counts.read,
            late=counts.late,
        )


def check_truncates(
    pipeline: Pipeline, counts: Counts, start: Offsets, end: Offsets, accepted: Mapping[int, int]
) -> None:
    """Raise `SourceTruncated` if a batch has truncates, unless it ends within `accepted`."""
    number = counts.rejected.get(Reason.TRUNCATED.value, 0)
    if number and not _is_accepted(end, accepted):
        offsets = f"{start} to {end}"
        raise SourceTruncated.of(pipeline.name, pipeline.table.identifier, offsets=offsets, number=number)


def _is_accepted(end: Offsets, accepted: Mapping[int, int]) -> bool:
    return bool(accepted) and all(offset <= accepted.get(p, 0) for p, offset in end.at.items())


def accepted(newest: Entry, spans: Mapping[int, Span]) -> dict[int, int]:
    """Return the offsets, by partition, up to which an operator accepted such batches; nothing if the ledger has no such decision.

    If no batch was committed since the decision, these are the topic's ends now. The commits of batches before these offsets
    repeat them.
    """
    known = newest.rejects_accepted
    if newest.accepts_next_rejects:
        return {p: span.stable for p, span in spans.items()}
    if known is None or newest.end is None or known.topic_id != newest.end.topic_id:
        return {}
    return dict(known.at)


def still_accepted(accepted: Mapping[int, int], end: Offsets) -> Offsets | None:
    """Return the accepted offsets as the commit of a batch repeats them; None if the batch that ends at `end` reaches all."""
    if all(end.at.get(p, 0) >= offset for p, offset in accepted.items()):
        return None
    return Offsets(end.topic, end.topic_id, accepted)
