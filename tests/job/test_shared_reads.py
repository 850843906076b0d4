"""Which pipelines share a read, when its records are dropped, and that no pipeline depends on another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from frazil.job.shared_reads import LEAST_ROWS, MOST, MOST_OF_TOPIC, SharedReads, Stretch

N = LEAST_ROWS


class Frame:
    """Records that are kept."""

    def __init__(self) -> None:
        self.is_kept = True

    def unpersist(self) -> None:
        self.is_kept = False


class Driver:
    """The pipelines of a driver, all of one topic unless they have another `source`."""

    def __init__(self, *pipelines: str, source: str = "orders") -> None:
        self.reads, self.frames = SharedReads(), list[tuple[Stretch, Frame]]()
        for pipeline in pipelines:
            self.reads.enter(pipeline, source, in_slices=False)

    def begin(self, pipeline: str, start: int, end: int, **facts: Any) -> bool:
        """Begin a batch, and read its records; return whether they are kept."""
        batch = stretch(start, end, **facts)
        self.reads.begin(pipeline, batch)
        return self.reads.records(pipeline, batch, self._keep) is not None

    def _keep(self, of: Stretch) -> Any:
        frame = Frame()
        self.frames.append((of, frame))
        return frame

    @property
    def kept(self) -> list[tuple[int, int]]:
        """The reads whose records are kept, of the only partition."""
        return [(of.start[0], of.end[0]) for of, frame in self.frames if frame.is_kept]


def stretch(start: int, end: int, topic: str = "T", leaders: Mapping[int, int] | None = None) -> Stretch:
    return Stretch(topic, {0: start}, {0: end}, leaders or {0: 1}, is_slice=True)


def test_pipelines_at_the_same_offsets_read_them_once_and_keep_them_no_longer() -> None:
    driver = Driver("a", "b")
    for round_ in range(3):
        assert driver.begin("a", round_ * N, (round_ + 1) * N)
        assert driver.begin("b", round_ * N, (round_ + 1) * N)
    assert len(driver.frames) == 3
    assert driver.kept == [(2 * N, 3 * N)]
    driver.begin("a", 3 * N, 3 * N)  # nothing waits
    assert driver.kept == [(2 * N, 3 * N)]
    driver.begin("b", 3 * N, 3 * N)
    assert driver.kept == []


def test_a_slower_pipeline_takes_a_kept_read_in_several_batches() -> None:
    driver = Driver("a", "b")
    assert driver.begin("a", 0, 3 * N)
    assert [driver.begin("b", n * N, (n + 1) * N) for n in range(3)] == [True] * 3
    assert len(driver.frames) == 1
    assert driver.begin("a", 3 * N, 4 * N)
    assert driver.begin("b", 3 * N, 4 * N)
    assert driver.kept == [(3 * N, 4 * N)]


def test_a_pipeline_that_comes_later_takes_what_is_kept() -> None:
    driver = Driver("a", "b")
    assert driver.begin("a", 0, N)
    driver.reads.enter("late", "orders", in_slices=False)
    assert driver.begin("late", 0, N)
    assert len(driver.frames) == 1
    for name in ("a", "b", "late"):
        assert driver.kept == [(0, N)]
        driver.reads.leave(name)
    assert driver.kept == []


def test_a_pipeline_alone_keeps_nothing() -> None:
    driver = Driver("a")
    driver.reads.enter("other", "payments", in_slices=False)
    assert not driver.begin("a", 0, N)
    assert not driver.begin("other", 0, N)


def test_a_small_batch_is_read_alone() -> None:
    driver = Driver("a", "b")
    assert not driver.begin("a", 0, N - 1)


@pytest.mark.parametrize(
    ("start", "end", "facts"),
    [(1, N + 1, {}), (N // 2, 2 * N, {}), (0, N, {"topic": "U"}), (0, N, {"leaders": {0: 2}}), (5 * N, 6 * N, {})],
    ids=["further", "across its end", "of another log", "of another leader", "far from it"],
)
def test_a_batch_that_is_not_in_the_kept_read_is_read_alone(start: int, end: int, facts: Mapping[str, Any]) -> None:
    driver = Driver("a", "b")
    assert driver.begin("a", 0, N)
    assert not driver.begin("b", start, end, **facts)
    driver.begin("a", N, N)
    assert driver.kept == []


def test_a_batch_that_is_tried_again_is_read_alone_and_takes_nothing_from_others() -> None:
    driver = Driver("a", "b")
    assert driver.begin("a", 0, N)
    assert not driver.begin("a", 0, N)
    assert driver.kept == [(0, N)]
    assert driver.begin("b", 0, N)
    assert not driver.begin("b", 0, N // 2)
    assert driver.kept == []


def test_the_error_of_a_read_is_its_pipelines_own() -> None:
    driver, batch = Driver("a", "b"), stretch(0, N)

    def broken(of: Stretch) -> Any:
        raise OSError("no broker")

    driver.reads.begin("a", batch)
    with pytest.raises(OSError, match="no broker"):
        driver.reads.records("a", batch, broken)
    assert driver.begin("b", 0, N)


def test_what_a_pipeline_that_left_would_have_read_is_dropped() -> None:
    driver = Driver("a", "b")
    assert driver.begin("a", 0, N)
    driver.reads.leave("b")
    assert driver.kept == [(0, N)]
    assert not driver.begin("a", N, 2 * N)
    assert driver.kept == []
    assert driver.reads.ends("a", {0: 2 * N}, N) == []
    assert not driver.begin("b", 0, N)


def test_a_pipeline_that_does_not_go_on_bounds_what_is_kept_and_stops_no_other() -> None:
    driver = Driver("a", "slow")
    assert driver.begin("slow", 0, N)
    began = [driver.begin("a", n * N, (n + 1) * N) for n in range(6)]
    assert began == [True] * MOST_OF_TOPIC + [False] * (6 - MOST_OF_TOPIC)
    assert len(driver.kept) == MOST_OF_TOPIC


def test_reads_of_many_topics_have_a_bound() -> None:
    driver = Driver()
    for topic in range(MOST + 3):
        for name in ("a", "b"):
            driver.reads.enter(f"{name}{topic}", topic, in_slices=False)
    assert sum(driver.begin(f"a{topic}", 0, N) for topic in range(MOST + 3)) == MOST


def test_a_pipeline_that_depends_on_slices_of_time_ends_where_slices_do() -> None:
    driver = Driver("changes")
    driver.reads.enter("state", "orders", in_slices=True)
    assert driver.reads.has_slices("changes")
    assert not driver.reads.has_slices("state")
    of = Stretch("T", {0: 0}, {0: N}, {0: 1}, is_slice=False)
    driver.reads.begin("changes", of)
    assert driver.reads.records("changes", of, driver._keep) is None
    assert driver.reads.ends("state", {0: 0}, N) == []
    driver.reads.begin("changes", stretch(N, 2 * N))
    assert driver.reads.ends("state", {0: 0}, N) == [stretch(N, 2 * N)]
    assert driver.reads.ends("state", {0: 0}, N - 1) == []
