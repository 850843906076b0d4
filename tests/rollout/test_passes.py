"""The deployed reconciler brings a job where it should be, pass by pass, in every mode and with good and bad releases."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from frazil.rollout.desired import Desired, Mode
from frazil.rollout.function_settings import EXECUTION
from frazil.rollout.state import stored_state
from frazil.rollout.stopped_pipelines import change_stop
from tests.support.deployed_reconciler import Deployed, Driver, lands, lands_nothing, without_services
from tests.support.rollout_world import JOB, Calls, Killed, World, desired, release, replaced

BUSY, QUIET, HALF = {"orders": True, "users": True}, {"orders": False, "users": False}, {"orders": True, "users": False}
TOPICS = pytest.mark.parametrize("topics", [BUSY, QUIET, HALF], ids=["busy", "quiet", "half"])
MODES = pytest.mark.parametrize("mode", list(Mode))
SHORT_MODES = pytest.mark.parametrize("mode", [Mode.FOLLOW, pytest.param(Mode.DRAIN, marks=pytest.mark.long)])
"""Where the other mode passes the same steps, at more cost."""
DAY = 4 * 60  # minutes


def deployed(mode: Mode, first: Driver | None, second: Driver | None = None) -> tuple[Deployed, Desired]:
    """Deploy the first generation, and let it prove itself."""
    world = World()
    made = Deployed(world, {1: first, 2: second})
    wanted = world.want(desired(mode=mode))
    made.live(25)
    return made, wanted


@MODES
@TOPICS
def test_a_good_release_replaces_another_without_a_person(mode: Mode, topics: Mapping[str, bool]) -> None:
    made, first = deployed(mode, lands(topics), lands(topics))
    assert stored_state(made.world.store, JOB).proven == first
    second = made.world.want(replaced(first, release=release("2.0.0").key))
    made.live(120)
    assert stored_state(made.world.store, JOB).proven == second
    assert stored_state(made.world.store, JOB).given_up == ()
    assert made.generations()[-1] == 2
    assert made.errors == []


@MODES
@pytest.mark.parametrize(
    "topics", [pytest.param(BUSY, id="busy"), pytest.param(HALF, id="half", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("bad", ["crashes", "lands nothing"])
def test_a_bad_release_is_rolled_back_and_not_started_again(mode: Mode, topics: Mapping[str, bool], bad: str) -> None:
    made, first = deployed(mode, lands(topics), None if bad == "crashes" else lands_nothing(topics))
    second = made.world.want(replaced(first, release=release("2.0.0").key))
    made.live(180)
    assert stored_state(made.world.store, JOB).given_up == (second.digest,)
    tried = made.generations().count(2)
    made.live(DAY)
    assert made.generations().count(2) == tried
    assert made.generations()[-1] == 1
    assert stored_state(made.world.store, JOB).proven == first
    assert made.errors == []


@SHORT_MODES
def test_an_outage_rolls_no_release_back(mode: Mode) -> None:
    made, first = deployed(mode, lands(BUSY), without_services)
    made.fails = {2}
    second = made.world.want(replaced(first))
    made.live(6 * 60)
    assert stored_state(made.world.store, JOB).given_up == ()
    made.drivers[2], made.fails = lands(BUSY), set()
    made.live(60)
    assert stored_state(made.world.store, JOB).proven == second
    assert made.errors == []


def test_the_schedule_starts_each_drain_once_and_none_beside_another() -> None:
    made, _ = deployed(Mode.DRAIN, lands(BUSY))  # the world refuses a start beside another run
    before = len(made.runs())
    for _ in range(4):
        made.reconcile({EXECUTION: "execution-twice"})
        made.live(1)
    made.live(11)
    made.reconcile({EXECUTION: "execution-twice"})
    made.live(DAY - 15)
    assert len(made.runs()) - before == DAY // 15, "the schedule's call during the first one started none"


def test_a_rollback_is_one_write_of_the_state() -> None:
    """Between the write and the next drain, nothing else must happen."""
    made, first = deployed(Mode.DRAIN, lands(BUSY), lands(BUSY))
    second = made.world.want(replaced(first, release=release("2.0.0").key))
    state = stored_state(made.world.store, JOB).with_given_up(second)
    made.world.store.put("reconcile/orders.json", state.document())
    made.live(60)
    assert 2 not in made.generations()


def test_a_pipeline_of_a_drain_can_be_stopped_and_started() -> None:
    made, first = deployed(Mode.DRAIN, lands(BUSY))
    change_stop(made.world.store, first, "users", is_stopped=True)
    before = len(made.runs())
    made.live(60)
    new = [run.request["jobDriver"]["sparkSubmit"]["entryPointArguments"] for run in made.runs()[before:]]
    assert len(new) == 4
    assert all(arguments[-2:] == ["--without", "users"] for arguments in new)
    change_stop(made.world.store, first, "orders", is_stopped=True)
    made.live(5)
    before = len(made.runs())
    made.live(60)
    assert len(made.runs()) == before
    for name in ("orders", "users"):
        change_stop(made.world.store, first, name, is_stopped=False)
    made.live(20)
    assert "--without" not in made.runs()[-1].request["jobDriver"]["sparkSubmit"]["entryPointArguments"]
    assert made.errors == []


def test_a_streaming_run_that_died_for_good_is_started_again_without_a_person() -> None:
    made, _ = deployed(Mode.FOLLOW, lands(BUSY))
    died = made.world.running()
    made.world.emr.kill(died.id)
    made.live(10)
    assert made.world.running().id != died.id
    made.live(120)
    assert len(made.runs()) == 2
    assert made.errors == []


def test_a_streaming_run_that_dies_again_and_again_is_an_error_and_then_tried_again() -> None:
    made, _ = deployed(Mode.FOLLOW, lands(BUSY))
    made.drivers[1] = None
    made.live(120)
    assert "RolloutFailed" in made.errors, "an alarm counts it"
    assert len(made.runs()) < 12
    made.drivers[1] = lands(BUSY)
    made.live(90)
    assert len(made.world.emr.active()) == 1


# ── Crashes, and two at once ────────────────────────────────────────────────────────────────────
@pytest.mark.long
@MODES
@pytest.mark.parametrize("dies_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("second", [lands(BUSY), None], ids=["good", "bad"])
def test_a_function_that_dies_at_any_call_of_a_pass_leaves_what_the_next_passes_end(
    mode: Mode, dies_after: bool, second: Driver | None
) -> None:
    """In each try, one pass dies at one of its calls, and its lease stays."""
    for number in range(24):
        made, first = deployed(mode, lands(BUSY), second)
        wanted = made.world.want(replaced(first, release=release("2.0.0").key))
        has_died = made.live_with_a_death(number, dies_after=dies_after)
        state = stored_state(made.world.store, JOB)
        assert state.proven == (wanted if second else first), number
        assert made.generations()[-1] == (2 if second else 1), number
        assert made.errors == [], number
        if not has_died:
            break


def test_two_passes_at_once_start_one_run() -> None:
    for number in range(12):
        made, first = deployed(Mode.FOLLOW, lands(BUSY), lands(BUSY))
        wanted = made.world.want(replaced(first, release=release("2.0.0").key))
        raced = list[bool]()

        def other(made: Deployed = made, raced: list[bool] = raced) -> None:
            if not raced:
                raced.append(True)
                made.reconcile({}, holder="another")

        made.calls_of_pass = lambda number=number, raced=raced, other=other: (  # type: ignore[misc]
            Calls() if raced else Calls(at={number: other})
        )
        made.live(90)
        assert stored_state(made.world.store, JOB).proven == wanted, number
        assert made.generations() == [1, 2], number
        if not raced:
            break


def test_a_pass_waits_for_a_lease_that_is_held_for_seconds_and_leaves_one_that_is_held_longer() -> None:
    made, first = deployed(Mode.FOLLOW, lands(BUSY), lands(BUSY))
    made.world.want(replaced(first))
    with pytest.raises(Killed):
        made.world.run(Calls(dies_at=6), holder="a person")
    before = made.generations()
    made.reconcile({})
    assert made.errors == []
    assert made.generations() == before
    made.live(60)
    assert made.generations()[-1] == 2


def test_a_pass_with_nothing_to_do_writes_nothing() -> None:
    made, _ = deployed(Mode.FOLLOW, lands(BUSY))
    writes = made.world.store.writes
    for _ in range(3):
        made.reconcile({})
    assert made.world.store.writes == writes
