"""Rollbacks and lost tables after a replay of dead letters: none lands twice, and none is lost."""

from __future__ import annotations

import pytest

from frazil.declaration import Append, Upsert
from frazil.errors import InvalidInput, RolledBack
from frazil.recovery.decisions import Accepted
from frazil.replay.discard import discard
from frazil.replay.open_letters import Wanted
from tests.support.jobs import Crash, crash_at
from tests.support.repaired_shop import Repaired, produce
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
WRITES = pytest.mark.parametrize("repaired", first_short([Append(), Upsert()]), indirect=True)


def replayed(repaired: Repaired) -> None:
    produce(repaired)
    repaired.repair()
    assert repaired.replay().outcomes == {"recovered": 2}


def side_roll_back(repaired: Repaired, snapshots: int) -> None:
    side = repaired.shop.job().iceberg.load(repaired.shop.pipeline.table.dead_letters)
    snapshot = side.currentSnapshot()
    for _ in range(snapshots):
        snapshot = side.snapshot(snapshot.parentId())
    side.manageSnapshots().rollbackTo(snapshot.snapshotId()).commit()


def open_letters(repaired: Repaired) -> list[tuple[int, int]]:
    return sorted((p, offset) for p, offset, outcome, _ in repaired.outcomes() if outcome is None)


@WRITES
@pytest.mark.parametrize("way", first_short([Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD]))
def test_dead_letters_of_an_undone_replay_are_open_again(repaired: Repaired, way: Accepted) -> None:
    replayed(repaired)
    repaired.shop.roll_back(1)
    with pytest.raises(RolledBack):
        repaired.replay()
    repaired.shop.accept(way)
    assert open_letters(repaired) == [(0, 5), (0, 6), (1, 0)]
    repaired.shop.assert_proven()
    assert repaired.shop.entry().closed_dead_letters == {}
    assert repaired.replay().outcomes == {"recovered": 2}
    assert repaired.users() == {**dict.fromkeys(range(5), "g"), 5: "e", 7: "e"}
    repaired.shop.assert_proven()


@pytest.mark.long
@WRITES
@pytest.mark.parametrize("way", [Accepted.ROLLED_BACK_REPLAY, Accepted.ROLLED_BACK_HOLD])
def test_a_rollback_over_a_replay_and_a_batch(repaired: Repaired, way: Accepted) -> None:
    replayed(repaired)
    repaired.good(8)
    repaired.bad(9)
    repaired.drain()
    repaired.shop.roll_back(2)
    repaired.shop.accept(way)
    repaired.shop.assert_proven()
    repaired.drain()
    repaired.replay()
    left = {8: "g"} if way is Accepted.ROLLED_BACK_REPLAY else {}
    assert repaired.users() == {**dict.fromkeys(range(5), "g"), 5: "e", 7: "e", **left}
    assert open_letters(repaired) == [(0, 6), (0, 8)]
    repaired.shop.assert_proven()


@pytest.mark.long
def test_a_rollback_that_leaves_the_replay(repaired: Repaired) -> None:
    replayed(repaired)
    repaired.good(8)
    repaired.drain()
    repaired.shop.roll_back(1)
    repaired.shop.accept(Accepted.ROLLED_BACK_REPLAY)
    assert open_letters(repaired) == [(0, 6)]
    repaired.drain()
    repaired.shop.assert_proven()


@pytest.mark.long
def test_a_dead_letter_table_that_was_rolled_back_over_a_replay_is_only_restored(repaired: Repaired) -> None:
    replayed(repaired)
    side_roll_back(repaired, 2)
    with pytest.raises(InvalidInput, match="rolled back to before a replay"):
        repaired.shop.accept(Accepted.ROLLED_BACK_HOLD)
    repaired.shop.accept(Accepted.ROLLED_BACK_REPLAY)
    assert open_letters(repaired) == [(0, 6)]
    repaired.shop.assert_proven()


@pytest.mark.long
@pytest.mark.parametrize("step", ["publish.committed", "finish.started"])
def test_an_unfinished_replay_of_a_dead_letter_table_that_is_rolled_back(repaired: Repaired, step: str) -> None:
    produce(repaired)
    repaired.bad(8)
    repaired.drain()
    repaired.repair()
    with pytest.raises(Crash):
        repaired.replay(failpoint=crash_at(step))
    side_roll_back(repaired, 1)
    repaired.shop.accept(Accepted.ROLLED_BACK_REPLAY)
    assert open_letters(repaired) == [(0, 6), (0, 7)]
    repaired.shop.assert_proven()


def test_a_dead_letter_table_that_was_dropped_after_a_replay(repaired: Repaired) -> None:
    replayed(repaired)
    repaired.shop.job().iceberg.drop(repaired.shop.pipeline.table.dead_letters, purge=False)
    decided = repaired.shop.accept(Accepted.SIDE_TABLE_REPLACED)
    assert decided.lost == {0: 1}
    repaired.shop.assert_proven()
    repaired.bad(8)
    repaired.drain()
    assert open_letters(repaired) == [(0, 7)]
    assert discard(repaired.shop.pipeline, repaired.shop.job(), Wanted(), "as the test says") == 1
    assert repaired.shop.entry().closed_dead_letters == {"discarded": 1}
    repaired.shop.assert_proven()


def test_the_topic_is_created_again_after_the_records_were_rejected(repaired: Repaired) -> None:
    produce(repaired)
    repaired.shop.new_topic(2)
    repaired.shop.accept(Accepted.TOPIC_RECREATED)
    for number in range(20, 25):
        repaired.good(number)
    repaired.early(25)
    repaired.drain()
    repaired.repair()
    assert repaired.replay().outcomes == {"recovered": 3}
    assert repaired.users() == {**dict.fromkeys([*range(5), *range(20, 25)], "g"), 5: "e", 7: "e", 25: "e"}
    repaired.shop.assert_proven()


@pytest.mark.long
def test_retention_took_the_records(repaired: Repaired) -> None:
    produce(repaired)
    for partition in (0, 1):
        repaired.shop.delete_records(7 if partition == 0 else 1, partition=partition)
    repaired.repair()
    assert repaired.replay().outcomes == {"recovered": 2}
    repaired.shop.assert_proven()


def test_a_discarded_dead_letter_stays_and_never_lands(repaired: Repaired) -> None:
    produce(repaired)
    with pytest.raises(InvalidInput, match="needs a reason"):
        discard(repaired.shop.pipeline, repaired.shop.job(), Wanted(), " ")
    assert discard(repaired.shop.pipeline, repaired.shop.job(), Wanted(partition=1), "a test record") == 1
    repaired.repair()
    assert repaired.replay().outcomes == {"recovered": 1}
    assert {row["outcome_reason"] for row in repaired.shop.dead() if row["outcome"] == "discarded"} == {"a test record"}
    assert repaired.shop.entry().closed_dead_letters == {"discarded": 1, "recovered": 1}
    repaired.shop.assert_proven()
