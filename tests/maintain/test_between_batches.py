"""How a driver's compaction learns how much it can rewrite between two batches."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from frazil.declaration import Pipeline, Table, Topic, Upsert
from frazil.errors import RowsWouldChange
from frazil.maintain import between_batches
from frazil.maintain.between_batches import (
    GROUPS,
    LEAST_BYTES,
    MANY_SMALL,
    MANY_SMALL_AT_END,
    MIB,
    RETRY_SECONDS,
    BetweenBatches,
    Counted,
    is_due,
)
from frazil.maintain.choose_upkeep import Why
from frazil.maintain.target import Action, MaintenanceRun, Outcome, Status

PIPELINE = Pipeline(topic=Topic("orders", value="avro"), table=Table("shop.orders"), write=Upsert())


class Upkeep:
    """Upkeep of a table whose files are groups of these sizes; of one look, the group `late` is not done in time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sizes: list[int], late: int | None = None) -> None:
        self.sizes, self.late, self.now, self.rewritten = sizes, late, 1000.0, list[int]()
        self.fails: Exception | None = None
        self.seconds = 0.0
        self.many_files: int | None = None
        self.budget: Any = None
        upkeep = self

        class Budget:
            def __init__(self, *_: Any) -> None:
                self.is_over, self.holds, upkeep.budget = False, lambda: True, self

            def __enter__(self) -> None:
                pass

            def __exit__(self, *_: object) -> None:
                pass

        monkeypatch.setattr(between_batches, "_Budget", Budget)
        monkeypatch.setattr(between_batches, "compact", self.compact)
        merged = Outcome(action=Action.MERGE, table="shop.orders")
        monkeypatch.setattr(between_batches, "merge_deletes", lambda *_, **__: merged)
        monkeypatch.setattr(between_batches, "is_due", lambda *_: True)
        monkeypatch.setattr(Counted, "of", lambda _: Counted())
        monkeypatch.setattr(BetweenBatches, "_is_free", lambda *_: True)
        job: Any = SimpleNamespace(
            clock=lambda: self.now, stopping=lambda: False, iceberg=SimpleNamespace(load=lambda _: None)
        )
        self.between = BetweenBatches(job, PIPELINE, 10.0)

    def compact(
        self, run: MaintenanceRun, *_: Any, hold: Callable[[], bool], chosen: Callable[[Any, Why], bool]
    ) -> Outcome:
        self.many_files = run.policy.many_files
        self.now += self.seconds
        if self.fails:
            raise self.fails
        groups = [size for size in self.sizes if chosen(SimpleNamespace(bytes=size, partition=""), Why.DELETED)]
        commits, ended = 0, Status.DONE
        for number, size in enumerate(groups):
            assert hold()
            if number == self.late:
                self.budget.is_over, ended = True, Status.STOPPED
                break
            commits += 1
            self.rewritten.append(size)
        return Outcome(action=Action.COMPACT, table="shop.orders", ended=ended, snapshots=commits)

    def look(self) -> Outcome | None:
        self.now += 60.0
        return self.between.compact()


@pytest.mark.parametrize("fails", [None, PySparkException("the store is away")])
def test_it_takes_a_fifth_of_the_drivers_time_at_most(monkeypatch: pytest.MonkeyPatch, fails: Exception | None) -> None:
    upkeep = Upkeep(monkeypatch, [MIB])
    upkeep.seconds, upkeep.fails = 8.0, fails
    upkeep.look()
    ended = upkeep.now
    upkeep.now = ended + 31.9
    assert upkeep.between.compact() is None
    upkeep.now = ended + 32.0
    assert upkeep.between.compact() is not None


def test_what_was_committed_before_the_time_was_over_stays_and_large_files_are_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    upkeep = Upkeep(monkeypatch, [40 * MIB, 40 * MIB, 256 * MIB], late=2)
    for _ in range(9):
        found = upkeep.look()
        assert found is not None
        assert (found.ended, found.snapshots) == (Status.STOPPED, 2)
    assert upkeep.between.too_large == inf
    assert upkeep.between.group_bytes == 40 * MIB


def test_a_file_that_takes_too_long_is_left_alone_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(monkeypatch, [256 * MIB, 30 * MIB], late=0)
    upkeep.look()
    upkeep.late = None
    upkeep.look()
    assert upkeep.rewritten == [30 * MIB]
    upkeep.now += RETRY_SECONDS
    upkeep.look()
    assert upkeep.rewritten == [30 * MIB, 256 * MIB, 30 * MIB]


def test_groups_become_smaller_and_larger_again(monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(monkeypatch, [LEAST_BYTES], late=0)
    for _ in range(5):
        upkeep.look()
    assert upkeep.between.group_bytes == LEAST_BYTES
    assert upkeep.between.too_large == inf
    upkeep.late = None
    upkeep.look()
    assert upkeep.between.group_bytes == 2 * LEAST_BYTES


def test_one_look_makes_few_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(monkeypatch, [MIB] * 20)
    found = upkeep.look()
    assert found is not None
    assert found.snapshots == GROUPS


def test_rows_that_would_change_end_the_upkeep_and_not_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(monkeypatch, [MIB])
    upkeep.fails = RowsWouldChange("1 file holds 2 rows", where="table shop.orders")
    found = upkeep.look()
    assert found is not None
    assert found.ended is Status.FAILED
    assert "1 file holds 2 rows" in found.why
    assert upkeep.look() is None
    assert upkeep.between.compact(at_end=True) is None


def test_fewer_small_files_are_enough_at_the_end_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep = Upkeep(monkeypatch, [MIB])
    upkeep.look()
    assert upkeep.many_files == MANY_SMALL
    upkeep.between.compact(at_end=True)
    assert upkeep.many_files == MANY_SMALL_AT_END
    few = Counted(data_files=MANY_SMALL_AT_END, bytes=MIB)
    assert not is_due(few, Counted(), MANY_SMALL)
    assert is_due(few, Counted(), MANY_SMALL_AT_END)


@pytest.mark.parametrize(
    ("now", "seen", "due"),
    [
        (Counted(data_files=5, delete_files=9, deleted=9_999, rows=20_000), Counted(), False),
        (Counted(data_files=5, delete_files=10), Counted(), True),
        (
            Counted(data_files=60, delete_files=60),
            Counted(data_files=55, delete_files=55),
            False,
        ),  # vectors of many files
        (Counted(data_files=60, delete_files=65), Counted(data_files=55, delete_files=55), True),
        (Counted(data_files=5, deleted=10_000, rows=100_000), Counted(), True),
        (Counted(data_files=5, deleted=10_000, rows=100_001), Counted(), False),
        (Counted(data_files=20, bytes=MIB), Counted(), True),
        (Counted(data_files=200, bytes=190 * 64 * MIB), Counted(), False),
        (Counted(data_files=500, bytes=MIB), Counted(data_files=490), False),  # small files of many partitions
    ],
)
def test_what_is_due_is_known_from_the_heads_summary(now: Counted, seen: Counted, due: bool) -> None:
    assert is_due(now, seen, MANY_SMALL) is due
