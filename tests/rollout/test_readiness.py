"""What the proofs of a generation's runs say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from frazil.errors import FrazilError
from frazil.rollout.desired import Desired, Mode
from frazil.rollout.readiness import ProofReadiness, Readiness
from frazil.rollout.run_proof import Reached, RunName
from tests.support.fake_store import FakeStore
from tests.support.rollout_world import World, desired

COMMITTED, CAUGHT_UP, UNAVAILABLE, NOTHING = Reached


@pytest.fixture
def store() -> FakeStore:
    return World().store


def proven(
    store: FakeStore,
    wanted: Desired,
    *,
    at_ms: int = 1,
    id: str = "0f",
    turns: Sequence[str] = ("orders", "users"),
    **pipelines: Reached,
) -> None:
    """Write a proof of a run in which the pipelines `turns` had their turn."""
    name = RunName.of(f"{wanted.run_prefix}{id}")
    assert name is not None
    proof = name.proof(pipelines, at_ms=at_ms, reported=dict.fromkeys(turns, at_ms))
    store.put(name.proof_key, proof.document())


@pytest.mark.parametrize(
    ("orders", "users", "follow", "drain"),
    [
        (COMMITTED, COMMITTED, Readiness.COMMITTED, Readiness.COMMITTED),
        (COMMITTED, CAUGHT_UP, Readiness.COMMITTED, Readiness.COMMITTED),
        (COMMITTED, NOTHING, Readiness.NOTHING_YET, Readiness.BEHIND),
        (COMMITTED, UNAVAILABLE, Readiness.PARTLY, Readiness.PARTLY),
        (CAUGHT_UP, CAUGHT_UP, Readiness.CAUGHT_UP, Readiness.CAUGHT_UP),
        (CAUGHT_UP, NOTHING, Readiness.NOTHING_YET, Readiness.NOTHING_YET),
        (CAUGHT_UP, UNAVAILABLE, Readiness.UNKNOWN, Readiness.UNKNOWN),
        (UNAVAILABLE, NOTHING, Readiness.NOTHING_YET, Readiness.NOTHING_YET),
        (NOTHING, NOTHING, Readiness.NOTHING_YET, Readiness.NOTHING_YET),
    ],
)
def test_what_one_proof_says(
    store: FakeStore, orders: Reached, users: Reached, follow: Readiness, drain: Readiness
) -> None:
    for mode, readiness in ((Mode.FOLLOW, follow), (Mode.DRAIN, drain)):
        wanted = desired(2, mode=mode)
        proven(store, wanted, orders=orders, users=users)
        assert ProofReadiness(store).of(wanted) is readiness


@pytest.mark.parametrize("content", [b"", b'{"run":', b"\xff", b"[]", b'{"version":1,"run":"x","unknown":1}'])
def test_a_proof_that_cannot_be_read_shows_nothing_and_hides_no_other(store: FakeStore, content: bytes) -> None:
    wanted = desired(2)
    store.put(f"reconcile/{wanted.job}/proof/{wanted.run_prefix}ff.json", content)
    assert ProofReadiness(store).of(wanted) is Readiness.NOTHING_YET
    proven(store, wanted, orders=COMMITTED, users=COMMITTED)
    assert ProofReadiness(store).of(wanted) is Readiness.COMMITTED


def test_a_pipeline_that_no_proof_names_has_landed_nothing(store: FakeStore) -> None:
    assert ProofReadiness(store).of(desired(2)) is Readiness.NOTHING_YET
    proven(store, desired(2), orders=COMMITTED)
    assert ProofReadiness(store).of(desired(2)) is Readiness.NOTHING_YET


def test_a_commit_counts_whichever_run_made_it_and_else_the_newest_proof(store: FakeStore) -> None:
    wanted = desired(2)
    proven(store, wanted, at_ms=1, id="1", orders=COMMITTED, users=CAUGHT_UP)
    proven(store, wanted, at_ms=2, id="0", orders=NOTHING, users=NOTHING)
    assert ProofReadiness(store).of(wanted) is Readiness.NOTHING_YET
    proven(store, wanted, at_ms=3, id="2", orders=NOTHING, users=CAUGHT_UP)
    assert ProofReadiness(store).of(wanted) is Readiness.COMMITTED


# ── Drains, which may end before all pipelines had their turn ───────────────────────────────────
DRAIN = desired(2, mode=Mode.DRAIN)


@pytest.mark.parametrize(
    ("orders", "readiness"),
    [
        (COMMITTED, Readiness.BEHIND),
        (CAUGHT_UP, Readiness.BEHIND),
        (UNAVAILABLE, Readiness.BEHIND),
        (NOTHING, Readiness.NOTHING_YET),
    ],
)
def test_a_pipeline_that_waits_for_its_turn_in_a_drain_shows_nothing(
    store: FakeStore, orders: Reached, readiness: Readiness
) -> None:
    for at_ms in range(9):
        proven(store, DRAIN, at_ms=at_ms, id=f"{at_ms}", turns=["orders"], orders=orders, users=NOTHING)
        assert ProofReadiness(store).of(DRAIN) is readiness


def test_a_drain_that_hangs_before_its_first_pipeline_has_landed_nothing(store: FakeStore) -> None:
    proven(store, DRAIN, turns=[], orders=NOTHING, users=NOTHING)
    assert ProofReadiness(store).of(DRAIN) is Readiness.NOTHING_YET


@pytest.mark.parametrize("last", [["orders", "users"], ["orders"]], ids=["a turn", "no turn"])
def test_a_pipeline_that_lands_nothing_in_three_turns_is_stuck(store: FakeStore, last: list[str]) -> None:
    for at_ms in range(3):
        proven(store, DRAIN, at_ms=at_ms, id=f"{at_ms}", orders=COMMITTED, users=NOTHING)
        assert ProofReadiness(store).of(DRAIN) is (Readiness.STUCK if at_ms == 2 else Readiness.BEHIND)
    proven(store, DRAIN, at_ms=3, id="3", turns=last, orders=NOTHING, users=NOTHING)
    assert ProofReadiness(store).of(DRAIN) is Readiness.STUCK
    proven(store, DRAIN, at_ms=4, id="4", orders=NOTHING, users=CAUGHT_UP)
    assert ProofReadiness(store).of(DRAIN) is Readiness.COMMITTED


def test_turns_without_a_service_do_not_count(store: FakeStore) -> None:
    for at_ms, users in enumerate((UNAVAILABLE, CAUGHT_UP, UNAVAILABLE, NOTHING, NOTHING)):
        proven(store, DRAIN, at_ms=at_ms, id=f"{at_ms}", orders=COMMITTED, users=users)
    assert ProofReadiness(store).of(DRAIN) is Readiness.BEHIND
    proven(store, DRAIN, at_ms=9, id="9", orders=COMMITTED, users=NOTHING)
    assert ProofReadiness(store).of(DRAIN) is Readiness.STUCK


def test_another_generations_proofs_do_not_count(store: FakeStore) -> None:
    for other in (desired(1), desired(22), desired(2, is_stopped=True), desired(2, job="orders-eu")):
        proven(store, other, orders=COMMITTED, users=COMMITTED)
    assert ProofReadiness(store).of(desired(2)) is Readiness.NOTHING_YET


def test_a_stopped_pipeline_need_prove_nothing(store: FakeStore) -> None:
    wanted = desired(2, stopped=("users",))
    proven(store, wanted, orders=COMMITTED)
    assert ProofReadiness(store).of(wanted) is Readiness.COMMITTED


def test_a_document_that_is_not_there_is_an_error(store: FakeStore) -> None:
    with pytest.raises(FrazilError, match="does not exist"):
        ProofReadiness(store).of(desired(2, document=f"documents/{'0' * 64}.json"))
