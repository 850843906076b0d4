"""Pipelines of one topic come to end their batches at the same offsets, none waits for another one, and limits stay."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.declaration import Append, Json, Pipeline, Table, Topic, Upsert
from frazil.declaration.options import Isolation
from frazil.ingest.plan.meeting import meeting, met
from frazil.ingest.plan.planner import Planner
from frazil.ingest.reporting.events import Reporter
from frazil.job import shared_reads
from frazil.job.shared_reads import SharedReads, Stretch
from frazil.lake.ledger.entry import Entry
from frazil.lake.ledger.next_offsets import Offsets
from tests.support.fake_kafka import FakeKafka

LEAST = 4
TOPIC = Topic("orders", value=Json(columns=("id long",)), key=Json(columns=("id long",)))


@pytest.fixture(autouse=True, scope="module")
def small_batches_are_shared() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_reads, "LEAST_ROWS", LEAST)
        yield


class Reader:
    """A pipeline that lands what its planner plans, at once."""

    def __init__(self, name: str, driver: Driver, at: list[int], most: int, *, by_time: bool) -> None:
        self.name, self.driver, self.most, self.by_time = name, driver, most, by_time
        pipeline = Pipeline(topic=TOPIC, table=Table(f"shop.{name}"), write=Upsert() if by_time else Append())
        self.planner = Planner(pipeline, driver.job, Reporter(lambda _: None, name, "orders", "me", lambda: 0.0))
        self.at = Offsets("orders", driver.kafka.topic("orders").topic_id, dict(enumerate(at)))
        self.resume()

    def resume(self) -> None:
        self.planner.resume(Entry(1, None, None, self.at, None, None, "me", {}))

    def spans(self) -> Any:
        return self.driver.kafka.offsets("orders", Isolation.READ_COMMITTED)

    @property
    def lag(self) -> int:
        return sum(span.stable - self.at.at[p] for p, span in self.spans().items())

    def land(self) -> int:
        """Land a batch; return how many of its records were read from the topic for it."""
        lag, planned = self.lag, self.planner.next(self.at, self.spans, self.most)
        assert planned.rows > 0 or lag == 0, "it waits"
        assert planned.rows <= self.most
        assert planned.lag == lag
        if planned.is_empty:
            self.planner.idle(planned)
        else:
            self.planner.begin(planned)
        reads: list[Stretch] = []
        kept = self.driver.reads.records(self.name, planned.stretch, lambda of: self.driver.frame(of, reads))
        self.at = planned.end
        self.driver.shared += kept is not None and not reads
        return sum(of.rows for of in reads) if kept is not None else planned.rows


class Driver:
    def __init__(self, *partitions: list[int]) -> None:
        self.kafka, self.reads, self.shared = FakeKafka(), SharedReads(), 0
        self.kafka.create("orders", partitions=len(partitions))
        for number, times in enumerate(partitions):
            self.kafka.append("orders", number, times)
        self.job: Any = SimpleNamespace(kafka=self.kafka, reads=self.reads, clock=lambda: 0.0)

    def frame(self, of: Stretch, reads: list[Stretch]) -> Any:
        reads.append(of)
        return SimpleNamespace(persist=lambda _: object())


def stretch(*ends: int) -> Stretch:
    return Stretch("T", dict.fromkeys(range(len(ends)), 0), dict(enumerate(ends)))


def test_a_batch_ends_at_the_nearest_place_of_another_pipeline_and_goes_back_in_no_partition() -> None:
    start, end = {0: 10, 1: 20}, {0: 50, 1: 60}
    assert meeting(start, end, [stretch(10, 20), stretch(5, 5), stretch(40, 90), stretch(30, 25)]) == stretch(30, 25)
    assert met(start, end, stretch(30, 25)) == {0: 30, 1: 25}
    assert met(start, end, stretch(5, 25)) == {0: 10, 1: 25}
    assert met(start, end, stretch(70, 70)) == end
    assert meeting(start, end, [stretch(10, 20)]) is None


def test_the_end_of_a_pipeline_that_read_beyond_a_slice_is_none() -> None:
    """Partition 0 is at a later time than the slice that it meets: who follows by time would read that first."""
    driver = Driver([1, 4, 7, 10, 13, 16], [2, 8])
    by_time = Reader("a", driver, [0, 0], 4, by_time=True)
    ahead = Reader("b", driver, [4, 0], 4, by_time=False)
    by_time.land()
    ahead.land()
    by_time.land()
    times, ends = ([1, 4, 7, 10, 13, 16], [2, 8]), by_time.at.at
    newest = max(of[ends[p] - 1] for p, of in enumerate(times) if ends[p])
    assert all(newest < ms for p, of in enumerate(times) for ms in of[ends[p] :])


TIMES = st.lists(st.lists(st.integers(0, 10_000), max_size=60, unique=True).map(sorted), min_size=1, max_size=3)


@given(data=st.data(), times=TIMES)
def test_no_pipeline_waits_and_limits_and_slices_of_time_are_kept(data: st.DataObject, times: list[list[int]]) -> None:
    times = [[ms * len(times) + p for ms in of] for p, of in enumerate(times)]  # no time is in two partitions
    driver, readers = Driver(*times), list[Reader]()
    for name in "abc"[: data.draw(st.integers(2, 3))]:
        by_time = data.draw(st.booleans())
        at = [0 if by_time else data.draw(st.integers(0, len(of))) for of in times]
        readers.append(Reader(name, driver, at, data.draw(st.integers(2, 40)), by_time=by_time))
    for _ in range(data.draw(st.integers(1, 60))):
        reader = data.draw(st.sampled_from(readers))
        if data.draw(st.integers(0, 9)) == 0:  # it stops, or begins again
            driver.reads.leave(reader.name)
            if data.draw(st.booleans()):
                reader.resume()
            continue
        reader.land()
        if reader.by_time:
            ends = reader.at.at
            newest = max((of[ends[p] - 1] for p, of in enumerate(times) if ends[p]), default=-1)
            assert all(newest < ms for p, of in enumerate(times) for ms in of[ends[p] :]), "a later record came first"
    for reader in readers:  # each one lands all, whatever the others do
        for _ in range(200):
            if not reader.lag:
                break
            reader.land()
        assert reader.lag == 0
    for reader in readers:
        driver.reads.leave(reader.name)
    assert driver.reads._kept == []


@given(
    st.lists(st.integers(0, 30), min_size=2, max_size=2),
    st.lists(st.integers(8, 40), min_size=2, max_size=2),
    st.booleans(),
    st.integers(1, 3),
)
def test_two_pipelines_meet_wherever_they_began(
    begin: list[int], most: list[int], by_time: bool, partitions: int
) -> None:
    times = [[ms * partitions + p for ms in range(600 // partitions)] for p in range(partitions)]
    driver = Driver(*times)
    starts = [[at // partitions] * partitions for at in begin]
    a = Reader("a", driver, starts[0], most[0], by_time=by_time)
    b = Reader("b", driver, starts[1], most[1], by_time=False)
    read, landed = 0, a.lag + b.lag
    while a.lag or b.lag:
        read += a.land() if a.lag >= b.lag else b.land()
    assert driver.shared > 0
    assert read < landed * 0.75, f"{read} of {landed}"


UNEVEN = list(range(300)), list(range(1000, 1100))
"""All records of the second partition are later than those of the first one."""


def test_a_pipeline_in_slices_of_time_ends_at_no_place_that_is_none() -> None:
    driver = Driver(*UNEVEN)
    changes = Reader("changes", driver, [0, 0], 40, by_time=False)
    changes.land()
    assert changes.at.at == {0: 30, 1: 10}
    state = Reader("state", driver, [0, 0], 400, by_time=True)
    state.land()
    assert state.at.at == {0: 300, 1: 100}


def test_a_pipeline_next_to_one_in_slices_of_time_reads_in_slices_so_that_they_meet() -> None:
    driver = Driver(*UNEVEN)
    changes = Reader("changes", driver, [0, 0], 40, by_time=False)
    state = Reader("state", driver, [0, 0], 40, by_time=True)
    landed, read = changes.lag + state.lag, 0
    while changes.lag or state.lag:
        read += changes.land() if changes.lag >= state.lag else state.land()
    assert read <= landed * 0.6, f"{read} of {landed}"


def test_a_slice_after_records_that_are_later_than_it_is_no_place_to_meet() -> None:
    driver = Driver(*UNEVEN)
    changes = Reader("changes", driver, [0, 0], 40, by_time=False)
    changes.land()
    state = Reader("state", driver, [0, 0], 400, by_time=True)
    changes.land()
    state.land()
    assert state.at.at == {0: 300, 1: 100}
