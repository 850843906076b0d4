from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.clients.kafka import Span
from frazil.declaration import Limits
from frazil.errors import LogTruncated, OffsetsLost, TopicRecreated
from frazil.ingest.plan.plan import Handling, Pace, Place, Plan, no_further, plan, up_to
from frazil.ingest.plan.ranges import OffsetRange
from frazil.lake.ledger.next_offsets import Offsets


def planned(
    held: dict[int, int], spans: dict[int, tuple[int, int]], max_rows: int = 10**9, topic_id: str = "T"
) -> Plan:
    there = {p: Span(e, s) for p, (e, s) in spans.items()}
    return plan("p", Offsets("orders", "T", held), topic_id, there, max_rows=max_rows)


def test_a_batch_reads_from_the_ledger_to_the_stable_offsets_and_a_new_partition_from_0() -> None:
    found = planned({0: 3, 1: 9}, {0: (0, 7), 1: (2, 9), 2: (0, 8)})
    assert found.ranges == (OffsetRange(0, 3, 7), OffsetRange(2, 0, 8))
    assert found.end.at == {0: 7, 1: 9, 2: 8}
    assert planned({0: 3}, {0: (0, 3)}).is_empty


@pytest.mark.parametrize(
    ("held", "spans", "topic_id", "error", "said"),
    [
        ({0: 0}, {0: (0, 1)}, "other", TopicRecreated, "frazil accept p topic-recreated"),
        ({0: 5}, {0: (0, 4)}, "T", LogTruncated, "frazil accept p log-truncated"),
        ({0: 0, 1: 0}, {0: (0, 4)}, "T", LogTruncated, r"\[1\]"),
        ({0: 2}, {0: (5, 9)}, "T", OffsetsLost, "records 2 to 4 of partition 0"),
        ({0: 3}, {0: (0, 3), 1: (5, 8)}, "T", OffsetsLost, "records 0 to 4 of partition 1"),
    ],
    ids=["re-created", "shorter", "partition gone", "records gone", "records of a new partition gone"],
)
def test_what_kafka_lacks_of_the_ledgers_offsets_is_refused_by_name_and_with_the_command(
    held: dict[int, int], spans: dict[int, tuple[int, int]], topic_id: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        planned(held, spans, topic_id=topic_id)


@given(st.dictionaries(st.integers(0, 50), st.integers(0, 10**6), min_size=1), st.integers(1, 10**6))
def test_a_limit_is_used_up_and_never_passed(waiting: dict[int, int], limit: int) -> None:
    result = planned(dict.fromkeys(waiting, 0), {p: (0, n) for p, n in waiting.items()}, limit)
    assert result.rows == min(limit, sum(waiting.values()))
    assert all(len(r) <= waiting[r.partition] for r in result.ranges)
    assert result.lag == sum(waiting.values())


def test_a_pipeline_that_was_moved_is_not_called_a_topic_that_was_deleted() -> None:
    with pytest.raises(
        TopicRecreated,
        match="that of topic orders, and the pipeline has topic invoices.*exclude invoices.*topic-recreated",
    ):
        plan("p", Offsets("orders", "T", {0: 0}), "other", {}, max_rows=1, topic="invoices")


def test_a_drain_ends_where_the_topic_ended_when_it_began() -> None:
    def now(stable: int) -> Span:
        return Span(earliest=1, stable=stable, leader_epoch=stable)

    first: dict[int, Span] = {0: now(5), 1: now(9)}
    later = up_to(first, {0: now(7), 1: now(6), 2: now(3)}, None)
    assert {p: (s.stable, s.leader_epoch) for p, s in later.items()} == {0: (5, 7), 1: (6, 6), 2: (3, 3)}
    assert up_to(first, {2: now(8)}, Offsets("orders", "id", {2: 1}))[2].stable == 3


def test_a_drain_that_another_driver_passes_ends_where_that_one_is_and_sees_a_truncated_log_all_the_same() -> None:
    def ends(committed: int, stable: int) -> int:
        first: dict[int, Span] = {0: Span(earliest=0, stable=5, leader_epoch=0)}
        now: Span = Span(earliest=0, stable=stable, leader_epoch=0)
        return up_to(first, {0: now}, Offsets("orders", "id", {0: committed}))[0].stable

    assert (ends(committed=7, stable=9), ends(committed=7, stable=6), ends(committed=3, stable=4)) == (7, 6, 4)


PACE = Pace(Limits(target_seconds=10, max_rows=1_000_000, max_bytes=1 << 30, first_rows=20_000), rows=20_000)


@pytest.mark.parametrize(
    ("at", "rows", "of_bytes", "seconds", "following"),
    [
        (20_000, 20_000, 2_000_000, 0.5, 80_000),
        (80_000, 80_000, 8_000_000, 20, 40_000),
        (20_000, 10, 1_000, 0.5, 20_000),
        (20_000, 20_000, 20_000 * 1_000_000, 1, (1 << 30) // 1_000_000),
    ],
    ids=["fast: at most fourfold", "slow", "a small one says nothing", "large records"],
)
def test_a_batch_is_as_large_as_the_last_ones_time_and_bytes_allow(
    at: int, rows: int, of_bytes: int, seconds: float, following: int
) -> None:
    assert replace(PACE, rows=at).after(rows, of_bytes, seconds).rows == following


def test_slow_commits_do_not_make_batches_ever_smaller() -> None:
    """A commit that takes longer than the target takes as long for fewer records."""
    pace = PACE
    for _ in range(20):
        pace = pace.after(pace.rows, pace.rows * 100, 25)
    assert pace.rows == 20_000
    for rows in (50, 25, 10):
        pace = pace.after(rows, rows * 100, 25)
    assert pace.rows == 20_000


def test_a_batch_that_must_not_be_larger_is_not_and_the_next_may_grow() -> None:
    small = PACE.at_most(7)
    assert small.rows == 7
    assert PACE.at_most(PACE.rows + 1).rows == PACE.rows
    assert small.after(7, 7, 0.01).rows > 7


def test_a_batch_that_memory_made_small_is_not_made_large_by_being_slow() -> None:
    pace = PACE.halved(20_000).halved(10_000)
    assert pace.after(pace.rows, pace.rows * 100, 25).rows == 5_000


def test_a_batch_never_passes_the_declared_rows() -> None:
    pace = PACE
    for _ in range(10):
        pace = pace.after(pace.rows, pace.rows * 100, 0.1)
    assert pace.rows == 1_000_000


def test_no_batch_is_as_large_again_as_one_that_died_of_memory_until_it_may_be_tried() -> None:
    """Such a batch may be staged in no time, and die when it is committed."""
    pace = PACE.after(20_000, 2_000_000, 1).halved(16)
    assert pace.after(8, 800, 0.1).rows == 8
    assert pace.lifted().after(8, 800, 0.1).rows == 16
    assert PACE.lifted() == PACE


def test_a_death_of_memory_halves_the_batch_down_to_one() -> None:
    pace = PACE
    for _ in range(30):
        pace = pace.halved(pace.rows)
    assert pace.rows == 1


@pytest.mark.parametrize(
    ("held", "ends"),
    [
        ({0: 2, 1: 1}, {0: 5, 1: 1, 2: 0}),  # partition 2 was added since
        ({0: 5, 1: 1}, {0: 9, 1: 9, 2: 9}),  # all that was named is held
        ({0: 5, 1: 2, 2: 3}, {0: 9, 1: 9, 2: 9}),
        ({0: 5, 1: 0}, {0: 5, 1: 1, 2: 0}),
    ],
)
def test_partitions_end_at_the_offsets_that_are_named_until_all_are_held(
    held: dict[int, int], ends: dict[int, int]
) -> None:
    spans = {p: Span(earliest=0, stable=9, leader_epoch=None) for p in range(3)}
    found = no_further(spans, Offsets("orders", "T", held), {0: 5, 1: 1})
    assert {p: span.stable for p, span in found.items()} == ends


def test_a_partition_that_is_shorter_than_the_offset_named_holds_up_no_other() -> None:
    spans = {p: Span(earliest=0, stable=stable, leader_epoch=None) for p, stable in ((0, 9), (1, 4))}
    assert no_further(spans, Offsets("orders", "T", {0: 5, 1: 4}), {0: 5, 1: 7}) is spans


def test_a_truncate_is_of_a_batch_that_has_it_and_of_a_topic_of_one_partition() -> None:
    end, start = Offsets("orders", "T1", {0: 20}), Offsets("orders", "T1", {0: 10})
    one = Plan(start, start, end, lag=10)
    at = one.truncate_at(12)
    assert at == Place("T1", 0, 12)
    found = [replace(one, handling=Handling(truncate=place)).truncated_at for place in (
        at, Place("T1", 0, 9), Place("T1", 0, 20), Place("T2", 0, 12), Place("T1", 1, 12), None
    )]  # fmt: skip
    assert found == [12, None, None, None, None, None]
    two = Plan(start, Offsets("orders", "T1", {0: 10, 1: 0}), Offsets("orders", "T1", {0: 20, 1: 5}), lag=15)
    assert (two.truncate_at(12), replace(two, handling=Handling(truncate=at)).truncated_at) == (None, None)
