"""The lease: one holder at a time, by conditional writes alone; and the stored state survives its holder."""

from __future__ import annotations

import pytest

from frazil.errors import LockHeld
from frazil.rollout.state import LEASE_SECONDS, REMEMBERED, SKEW_SECONDS, Lease, RolloutState, state_key, stored_state
from tests.support.fake_store import FakeStore
from tests.support.fake_time import FakeTime
from tests.support.rollout_world import JOB, desired


@pytest.fixture
def passing() -> FakeTime:
    return FakeTime()


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


def lease(store: FakeStore, passing: FakeTime, holder: str) -> Lease:
    return Lease(store, JOB, holder=holder, clock=passing.clock)


def test_one_has_it_and_the_other_is_told_who(store: FakeStore, passing: FakeTime) -> None:
    lease(store, passing, "a").take()
    with pytest.raises(LockHeld, match="a holds the lease for 600 s at most"):
        lease(store, passing, "b").take()


def test_of_two_that_find_it_free_one_gets_it(store: FakeStore, passing: FakeTime) -> None:
    """Both have read; both write."""

    class Slow(FakeStore):
        def swap(self, key: str, data: bytes, *, version: str | None) -> str | None:
            lease(store, passing, "a").take()
            return store.swap(key, data, version=version)

    with pytest.raises(LockHeld, match="a holds the lease"):
        lease(Slow(store.objects), passing, "b").take()
    assert stored_state(store, JOB).holder == "a"


def test_a_lease_from_a_clock_that_is_ahead_blocks_nothing_and_its_holder_loses_it(
    store: FakeStore, passing: FakeTime
) -> None:
    ahead = Lease(store, JOB, holder="ahead", clock=lambda: passing.clock() + SKEW_SECONDS + 1)
    ahead.take()
    taken = lease(store, passing, "b")
    taken.take()
    with pytest.raises(LockHeld, match="b holds the lease"):
        ahead.keep()
    taken.keep()


def test_clocks_that_differ_a_little_keep_the_lease(store: FakeStore, passing: FakeTime) -> None:
    Lease(store, JOB, holder="ahead", clock=lambda: passing.clock() + SKEW_SECONDS).take()
    with pytest.raises(LockHeld, match="ahead holds the lease"):
        lease(store, passing, "b").take()


def test_keeping_it_makes_it_last(store: FakeStore, passing: FakeTime) -> None:
    held = lease(store, passing, "a")
    held.take()
    for _ in range(5):
        passing.sleep(LEASE_SECONDS - 1)
        held.keep()
    with pytest.raises(LockHeld):
        lease(store, passing, "b").take()


def test_who_lost_it_can_neither_keep_nor_give_it_back(store: FakeStore, passing: FakeTime) -> None:
    lost = lease(store, passing, "a")
    lost.take()
    passing.sleep(LEASE_SECONDS + 1)
    lease(store, passing, "b").take()
    with pytest.raises(LockHeld, match="b holds the lease"):
        lost.keep(lambda state: state.with_proven(desired()))
    lost.give_back()
    assert stored_state(store, JOB).holder == "b"
    assert stored_state(store, JOB).proven is None


def test_what_is_remembered_outlives_the_lease(store: FakeStore, passing: FakeTime) -> None:
    first = lease(store, passing, "a")
    first.take()
    first.keep(lambda state: state.with_proven(desired()))
    first.keep(lambda state: state.with_given_up(desired(2)))
    first.give_back()
    state = lease(store, passing, "b").take()
    assert (state.proven, state.given_up) == (desired(), (desired(2).digest,))


def test_no_two_writes_are_equal(store: FakeStore, passing: FakeTime) -> None:
    """So that a lost answer can be told by the content."""
    held = lease(store, passing, "a")
    held.take()
    seen = set()
    for _ in range(3):
        held.keep()
        seen.add(store.objects[state_key(JOB)].data)
    assert len(seen) == 3


def test_memory_does_not_grow_without_end() -> None:
    state = RolloutState()
    for generation in range(1, 3 * REMEMBERED):
        state = state.with_given_up(desired(generation)).with_application(f"app{generation}")
    assert len(state.given_up) == len(state.applications) == REMEMBERED
    assert state.given_up[-1] == desired(3 * REMEMBERED - 1).digest


def test_a_generation_that_is_proven_forgets_no_application() -> None:
    """A reconciler that was paused may yet start a run on one that the job has left."""
    state = RolloutState().with_application("app1").with_application("app2").with_proven(desired(application="app2"))
    assert state.applications == ("app1", "app2")
    assert state.with_proven(desired(3, application="app1")).applications == ("app2", "app1")
    assert state.without_application("app1").applications == ("app2",)
