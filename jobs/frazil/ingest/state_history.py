"""The history of a pipeline's table of current state, which its driver has follow each commit."""

from __future__ import annotations

from frazil.declaration import Pipeline
from frazil.declaration.write_modes import history
from frazil.errors import SparkFailed
from frazil.ingest.events import Event, Reporter
from frazil.ingest.spark_errors import TimestampOverflow, explained
from frazil.job.context import JobContext
from frazil.lake import layout
from frazil.lake.history.follow import Followed, Follower


class StateHistory:
    """The history of one pipeline; of one that declares none, nothing is done."""

    def __init__(self, pipeline: Pipeline, job: JobContext, report: Reporter) -> None:
        self._pipeline, self._job, self._report = pipeline, job, report
        table = pipeline.table
        properties = layout.properties(
            format_version=2,
            target_file_size_bytes=table.target_file_size_bytes,
            keep_snapshots=table.keep_snapshots,
            offset_columns=("_sequence",),
            declared={},
        )
        is_declared = history(pipeline.write) is not None
        follower = Follower(job, pipeline.name, table.identifier, table.history, properties)
        self._follower = follower if is_declared else None

    def catch_up(self) -> None:
        """Record what an earlier driver left open, before the first batch. A new history begins here."""
        done = self._followed()
        if done.commits or done.undone:
            self._report(Event.HISTORY_RECORDED, commits=done.commits, rows=done.rows, undone=done.undone)

    def follow(self) -> None:
        """Record the changes of the commit that was made just now."""
        self._followed()

    def _followed(self) -> Followed:
        if self._follower is None:
            return Followed()
        where = f"pipeline {self._pipeline.name}, table {self._follower.history}"
        try:
            with explained(where, stopping=self._job.stopping, redact=self._job.redact):
                done = self._follower.follow()
        except (MemoryError, TimestampOverflow) as error:
            # It is not the batch's: that is committed, and a smaller one would not help.
            raise SparkFailed(
                f"the changes of a commit could not be recorded: {error or 'the driver has too little memory'}",
                where=where,
                do="The state has them, and its history gets them at the next try. Give the driver and the tasks more memory",
            ) from None
        if done.began is not None:
            facts = {"rows_before": done.began.began, "since_sequence": done.began.since}
            self._report(Event.HISTORY_BEGAN, table=self._follower.history, **facts)
        return done
