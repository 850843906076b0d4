"""Dead letters land again: each record once, by whatever interleaving, and verification proves it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.declaration import Append, Changelog, Encrypted, Redact, Secret, Shape
from frazil.errors import InvalidInput
from frazil.replay.open_letters import Wanted
from frazil.replay.replay import Replayed
from tests.support.jobs import Crash, crash_at
from tests.support.repaired_shop import Repaired, produce
from tests.support.variants import first_short

pytestmark = [pytest.mark.spark, pytest.mark.e2e]
STEPS = ("publish.committed", "publish.filled", "replay.judged", "stage.started", "replay.staged", "decide.written")
STEPS = (*STEPS, "decide.decided", "finish.started", "finish.finished")


@pytest.mark.parametrize("repaired", first_short([Append(), Changelog()]), indirect=True)
def test_the_rows_land_with_their_coordinates_and_are_proven(repaired: Repaired) -> None:
    produce(repaired)
    repaired.repair()
    dry = repaired.replay(is_dry=True)
    assert dry.outcomes == {"recovered": 2}
    before = repaired.shop.entry()
    done = repaired.replay()
    assert (done.outcomes, done.failed, done.left) == (dry.outcomes, dry.failed, 0)
    assert list(done.failed.values()) == [1]
    assert repaired.users() == {**dict.fromkeys(range(5), "g"), 5: "e", 7: "e"}
    assert sorted(
        (row["_kafka_partition"], row["_kafka_offset"]) for row in repaired.shop.landed() if row["user"] == "e"
    ) == [
        (0, 5),
        (1, 0),
    ]
    assert repaired.outcomes() == [(0, 5, "recovered", 1), (0, 6, None, 1), (1, 0, "recovered", 1)]
    assert repaired.shop.entry().end.same_as(before.end)
    repaired.shop.assert_proven()
    again = repaired.replay()
    assert (again.outcomes, sum(again.failed.values())) == ({}, 1)
    repaired.good(9)
    repaired.drain()
    assert len(repaired.shop.landed()) == 8
    repaired.shop.assert_proven()


@pytest.mark.parametrize("step", first_short(STEPS))
def test_a_replay_that_is_killed_at_a_step_is_finished_by_the_next_command(repaired: Repaired, step: str) -> None:
    produce(repaired)
    repaired.repair()
    with pytest.raises(Crash):
        repaired.replay(failpoint=crash_at(step))
    verified = repaired.shop.verified()
    assert {one.flaw for one in verified.findings} <= {"unfinished"}
    repaired.replay()
    assert sorted(row["order_id"] for row in repaired.shop.landed()) == [0, 1, 2, 3, 4, 5, 7]
    assert [one[2] for one in repaired.outcomes()] == ["recovered", None, "recovered"]
    repaired.shop.assert_proven()


@pytest.mark.parametrize("step", first_short(STEPS))
def test_a_batch_that_lands_during_a_replay(repaired: Repaired, step: str) -> None:
    produce(repaired)
    repaired.repair()
    landed = []

    def land(at: str) -> None:
        if at == step and not landed:
            landed.append(at)
            repaired.good(9)
            repaired.bad(10)
            repaired.drain()

    repaired.replay(failpoint=land)
    assert landed
    assert sorted(row["order_id"] for row in repaired.shop.landed()) == [0, 1, 2, 3, 4, 5, 7, 9]
    repaired.shop.assert_proven()


@pytest.mark.parametrize("step", first_short(STEPS))
def test_a_replay_during_a_replay(repaired: Repaired, step: str) -> None:
    produce(repaired)
    repaired.repair()
    began = []

    def twin(at: str) -> None:
        if at == step and not began:
            began.append(at)
            repaired.replay()

    repaired.replay(failpoint=twin)
    assert sorted(row["order_id"] for row in repaired.shop.landed()) == [0, 1, 2, 3, 4, 5, 7]
    assert [one[2] for one in repaired.outcomes()] == ["recovered", None, "recovered"]
    repaired.shop.assert_proven()


@pytest.mark.parametrize(
    "step", first_short(["publish.decided", "plan.done", "stage.done", "publish.filled", "publish.committed"])
)
def test_a_replay_during_a_batch(repaired: Repaired, step: str) -> None:
    produce(repaired)
    repaired.repair()
    repaired.good(9)
    repaired.bad(10)
    began = []

    def twin(at: str) -> None:
        if at == step and not began:
            began.append(at)
            repaired.replay()

    repaired.shop.drain(registry=repaired.shop.registry(repaired.registry.url), failpoint=twin)
    assert began
    assert sorted(row["order_id"] for row in repaired.shop.landed()) == [0, 1, 2, 3, 4, 5, 7, 9]
    repaired.shop.assert_proven()


@pytest.mark.long
def test_batches_of_two_and_wanted_ones(repaired: Repaired) -> None:
    produce(repaired)
    repaired.repair()
    assert repaired.replay(Wanted(reason="undecodable"), is_dry=True).tried == 0
    seen: list[Replayed] = []
    repaired.replay(Wanted(partition=0), most=1, progress=seen.append)
    assert [one.left for one in seen] == [1, 0]
    assert [one[2] for one in repaired.outcomes()] == ["recovered", None, None]
    repaired.replay(most=1)
    assert [one[2] for one in repaired.outcomes()] == ["recovered", None, "recovered"]
    repaired.shop.assert_proven()


def test_a_pipeline_that_never_ran_has_nothing_to_replay(repaired: Repaired) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        repaired.replay()


def test_what_the_condition_leaves_out_is_filtered(repaired: Repaired) -> None:
    repaired.shop.pipeline = replace(repaired.shop.pipeline, shape=Shape(where="order_id <> 5"))
    produce(repaired)
    repaired.repair()
    assert repaired.replay(is_dry=True).outcomes == {"filtered": 1, "recovered": 1}
    assert repaired.replay().outcomes == {"filtered": 1, "recovered": 1}
    assert [one[2] for one in repaired.outcomes()] == ["filtered", None, "recovered"]
    repaired.shop.assert_proven()
    assert repaired.replay().outcomes == {}


@pytest.mark.long
def test_dead_letters_of_a_masked_pipeline_need_their_bytes(repaired: Repaired) -> None:
    masked = Shape(mask={"user": Redact()})
    repaired.shop.pipeline = replace(repaired.shop.pipeline, shape=masked)
    produce(repaired)
    repaired.repair()
    with pytest.raises(InvalidInput, match="bytes of 3 dead letters were not kept"):
        repaired.replay()
    repaired.shop.assert_proven()


def test_encrypted_dead_letters_land_masked(repaired: Repaired) -> None:
    kept = Shape(mask={"user": Redact()}, dead_letters=Encrypted(Secret(env="KEY")))
    repaired.shop.pipeline = replace(repaired.shop.pipeline, shape=kept)
    produce(repaired)
    repaired.repair()
    with pytest.raises(InvalidInput, match="encrypted with another secret"):
        repaired.replay(secret=lambda _: "another secret of 32 characters!!")
    assert repaired.replay().outcomes == {"recovered": 2}
    assert set(repaired.users().values()) == {"***"}
    assert len(repaired.users()) == 7
    repaired.shop.assert_proven()
