"""Give open dead letters up, with a reason: they stay in their table, and are open no more."""

from __future__ import annotations

from frazil.declaration import Pipeline
from frazil.errors import Fenced, InvalidInput
from frazil.ingest.setup.table_setup import make_dead_letters
from frazil.ingest.spark_errors import explained
from frazil.job.context import JobContext
from frazil.lake.commit.fence import StageAgain
from frazil.replay.open_letters import Wanted
from frazil.replay.outcome_commit import ATTEMPTS, Decided, commit_outcomes, dead_letters, settled_tables
from frazil.schemas.dead_letter_outcomes import DeadLetterOutcome

MOST = 200_000
"""Dead letters of one commit."""


def discard(pipeline: Pipeline, job: JobContext, wanted: Wanted, why: str, *, most: int = MOST) -> int:
    """Discard the wanted open dead letters of a pipeline, for the reason `why`; return how many.

    Raises `InvalidInput` for an empty reason, or without dead letters, and `Fenced` or `StageAgain` if other commits come
    first each time.
    """
    if not why.strip():
        raise InvalidInput("a discard needs a reason", where="--why", do='Say why, like --why "test records"')
    with explained(f"pipeline {pipeline.name}", stopping=job.stopping, redact=job.redact):
        settled_tables(pipeline, job)
        make_dead_letters(job, pipeline)
        number = attempts = 0
        while not job.stopping():
            found = settled_tables(pipeline, job)
            letters, last = dead_letters(pipeline, job, found).next(wanted, None, most)
            if last is None:
                break
            try:
                commit_outcomes(
                    pipeline, job, found, Decided(outcomes={DeadLetterOutcome.DISCARDED: [*letters]}, why=why)
                )
            except (StageAgain, Fenced):
                attempts += 1
                if attempts == ATTEMPTS:
                    raise
                continue
            number, attempts = number + len(letters), 0
        return number
