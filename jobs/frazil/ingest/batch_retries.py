"""A batch is retried: after which failures, how often, and what is done before the next try."""

from __future__ import annotations

from enum import Enum, auto

from frazil.decode.writers.seen_frames import UnknownSchemas
from frazil.errors import CountsDisagree, Fenced, SparkFailed
from frazil.ingest.one_batch import BatchTooLarge
from frazil.ingest.spark_errors import LoginRefused
from frazil.lake.commit.fence import StageAgain

ATTEMPTS = 3
"""So often one batch is staged before the run gives up."""
RETRIED = (UnknownSchemas, StageAgain, Fenced, CountsDisagree, BatchTooLarge, LoginRefused)
"""The failures after which a batch is retried."""


class Before(Enum):
    """What is done before the next try."""

    NOTHING = auto()
    LOOK_UP_SCHEMAS = auto()
    HALVE_ROWS = auto()
    READ_SECRETS = auto()
    READ_TABLE = auto()


def before_next_try(problem: Exception, attempts: int, pipeline: str) -> Before:
    """Return what is done before a batch is staged again, after `attempts` that failed.

    Raises the problem if another try would not help, and `SparkFailed` for one record that is too large.
    """
    match problem:
        case UnknownSchemas():  # expected with each new schema
            return Before.LOOK_UP_SCHEMAS
        case BatchTooLarge() if problem.rows > 1:
            return Before.HALVE_ROWS
        case LoginRefused() if attempts == 1:
            return Before.READ_SECRETS
        case StageAgain() | Fenced() if attempts < ATTEMPTS:
            return Before.READ_TABLE
    if attempts < (2 if isinstance(problem, CountsDisagree) else ATTEMPTS):
        return Before.NOTHING
    if isinstance(problem, BatchTooLarge):
        raise SparkFailed(str(problem), where=f"pipeline {pipeline}", do="Give tasks more memory") from None
    raise problem
