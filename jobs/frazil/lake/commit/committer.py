"""The part of a job that commits need."""

from __future__ import annotations

from typing import Protocol

from frazil.lake.iceberg_java import Iceberg


class Committer(Protocol):
    """A job as far as a commit needs it; `frazil.job.context.JobContext` is one.

    `stopping` says whether the job is to end. `run` and `version` are written into the ledger. `clock` is in seconds since
    1970. `wait` sleeps for a number of seconds, and ends early if the job is to stop. `failpoint` marks a step at which a test
    may interfere (see `frazil.job.failpoints`).
    """

    @property
    def iceberg(self) -> Iceberg:
        """The catalog."""

    @property
    def run(self) -> str:
        """The run's name."""

    @property
    def version(self) -> str:
        """The version of Frazil."""

    def stopping(self) -> bool:
        """Return whether the job is to end."""

    def clock(self) -> float:
        """Return the time."""

    def wait(self, seconds: float, /) -> None:
        """Wait."""

    def failpoint(self, step: str, /) -> None:
        """Mark a step."""
