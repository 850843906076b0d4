"""What a run that continues does with a pipeline that another driver lands.

Two drivers of the same pipelines can fence each other, so that each lands some of them. If one of them ends, its part would
have no driver while the other continues. So a pipeline that was fenced is tried again after a pause, as long as the run lands
another. A run that lands no pipeline any more ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from frazil.job.context import JobContext

SECONDS = (60.0, 600.0)  # the first pause of a pipeline that was fenced, doubled each time up to the last
STEP_SECONDS = 5.0  # how soon a pipeline that waits notices that the run lands nothing any more


class Standby:
    """The pipelines of a run, by name. Safe to share between threads."""

    def __init__(self, pipelines: Iterable[str], job: JobContext) -> None:
        self._job, self._landing = job, set(pipelines)
        self._pauses: dict[str, float] = {}

    def ended(self, pipeline: str) -> None:
        """Note that a pipeline has ended."""
        self._landing.discard(pipeline)

    def may_wait(self, pipeline: str) -> bool:
        """Note that `pipeline` was fenced; return whether the run lands others."""
        self._landing.discard(pipeline)
        return bool(self._landing)

    def wait(self, pipeline: str) -> bool:
        """Wait; return whether `pipeline` is to be tried again: the run still lands others, or is to end."""
        pause = min(max(self._pauses.get(pipeline, 0.0) * 2, SECONDS[0]), SECONDS[1])
        self._pauses[pipeline] = pause
        for _ in range(round(pause / STEP_SECONDS)):
            if not self._landing or self._job.stopping():
                break
            self._job.wait(STEP_SECONDS)
        if not self._landing and not self._job.stopping():
            return False
        self._landing.add(pipeline)
        return True
