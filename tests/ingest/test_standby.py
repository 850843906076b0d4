"""When a pipeline that another driver has fenced is tried again."""

from __future__ import annotations

from typing import Any

from frazil.ingest.guard import Standby


class Job:
    """A job whose pauses take no time; `meanwhile` is called in each."""

    def __init__(self) -> None:
        self.waited, self.is_stopping = 0.0, False
        self.meanwhile: Any = lambda: None

    def stopping(self) -> bool:
        return self.is_stopping

    def wait(self, seconds: float) -> None:
        self.waited += seconds
        self.meanwhile()


def pause(made: Standby, pipeline: str) -> bool:
    return made.may_wait(pipeline) and made.wait(pipeline)


def standby(*pipelines: str) -> tuple[Standby, Job]:
    job = Job()
    return Standby(pipelines, job), job  # type: ignore[arg-type]


def test_a_fenced_pipeline_is_tried_again_after_growing_pauses() -> None:
    made, job = standby("a", "b")
    pauses = []
    for _ in range(6):
        job.waited = 0.0
        assert pause(made, "a")
        pauses.append(job.waited)
    assert pauses == [60, 120, 240, 480, 600, 600]


def test_the_only_pipeline_of_a_run_ends_when_it_is_fenced() -> None:
    made, job = standby("a")
    assert not pause(made, "a")
    assert job.waited == 0


def test_a_run_whose_other_pipelines_end_or_are_fenced_ends_at_once() -> None:
    made, job = standby("a", "b", "c")
    made.ended("c")

    def fenced_too() -> None:
        job.meanwhile = lambda: None
        assert not pause(made, "b")

    job.meanwhile = fenced_too
    assert not pause(made, "a")
    assert job.waited == 5


def test_a_run_that_is_to_end_is_not_held_up() -> None:
    made, job = standby("a", "b")
    job.is_stopping = True
    assert pause(made, "a")
    assert job.waited == 0
