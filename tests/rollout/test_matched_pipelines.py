"""Pipelines of patterns, which no document names: what their proofs say, and how an operator stops them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from frazil.declaration import Pipeline, Table, Topic, TopicPattern, canonical, each_topic
from frazil.declaration.documents.document import document
from frazil.errors import InvalidInput
from frazil.release.upload import document_key
from frazil.rollout.desired import Desired, Mode, desired_document, desired_key
from frazil.rollout.group_jobs import deployed_pipelines, job_of, without_moved
from frazil.rollout.job_run_request import run_settings
from frazil.rollout.readiness import ProofReadiness, Readiness
from frazil.rollout.reconciler_function import silent_pipelines
from frazil.rollout.run_proof import Reached, RunName
from frazil.rollout.state import stored_state
from frazil.rollout.stopped_pipelines import change_stop, with_stops
from tests.support.deployed_reconciler import Deployed
from tests.support.fake_store import FakeStore
from tests.support.rollout_world import BUCKET, JOB, World, desired, release, replaced

COMMITTED, CAUGHT_UP, UNAVAILABLE, NOTHING = Reached
SHOP = each_topic(r"shop\..*", table="shop.{topic}", value="text")
OWN = Pipeline(topic=Topic("own", value="text"), table=Table("pay.own"))


def deployed(
    store: FakeStore, *pipelines: Pipeline, patterns: Sequence[TopicPattern] = (SHOP,), job: str = "orders"
) -> Desired:
    """Deploy a job with pipelines and patterns."""
    written = canonical(document(pipelines, patterns))
    store.put(document_key(written), written)
    wanted = desired(job=job, document=document_key(written), mode=Mode.FOLLOW)
    store.put(desired_key(job), desired_document(wanted))
    return wanted


def proven(
    store: FakeStore,
    wanted: Desired,
    pipelines: Mapping[str, Reached],
    *,
    id: str = "0f",
    at_ms: int = 1,
    reported: Mapping[str, int] | None = None,
) -> None:
    """Write a proof of a run of a generation."""
    name = RunName.of(f"{wanted.run_prefix}{id}")
    assert name is not None
    times = dict.fromkeys(pipelines, at_ms) if reported is None else reported
    proof = name.proof(pipelines, at_ms=at_ms, began_ms=0, reported=times)
    store.put(name.proof_key, proof.document())


PATTERN = {"patterns[0]": CAUGHT_UP}


@pytest.mark.parametrize(
    ("reached", "readiness"),
    [
        ({"patterns[0]": NOTHING}, Readiness.NOTHING_YET),
        ({"patterns[0]": UNAVAILABLE}, Readiness.UNKNOWN),
        (PATTERN, Readiness.CAUGHT_UP),
        ({**PATTERN, "a": NOTHING, "b": NOTHING}, Readiness.NOTHING_YET),
        ({**PATTERN, "a": NOTHING, "b": CAUGHT_UP}, Readiness.CAUGHT_UP),
        ({**PATTERN, "a": NOTHING, "b": COMMITTED}, Readiness.COMMITTED),
        ({**PATTERN, "a": UNAVAILABLE, "b": COMMITTED}, Readiness.COMMITTED),
        ({**PATTERN, "a": UNAVAILABLE, "b": NOTHING}, Readiness.UNKNOWN),
    ],
)
@pytest.mark.parametrize("mode", Mode)
def test_one_good_pipeline_of_a_pattern_is_evidence_and_no_bad_one_is_if_others_are_good(
    reached: Mapping[str, Reached], readiness: Readiness, mode: Mode
) -> None:
    store = FakeStore()
    wanted = deployed(store)
    proven(store, wanted, reached)
    assert ProofReadiness(store).of(wanted) is readiness


def test_a_declared_pipeline_still_has_to_prove_itself_next_to_a_pattern() -> None:
    store = FakeStore()
    wanted = deployed(store, OWN)
    proven(store, wanted, {**PATTERN, "own": NOTHING, "a": COMMITTED})
    assert ProofReadiness(store).of(wanted) is Readiness.NOTHING_YET
    proven(store, wanted, {**PATTERN, "own": CAUGHT_UP, "a": NOTHING}, id="1f", at_ms=2)
    assert ProofReadiness(store).of(wanted) is Readiness.COMMITTED, "the commit of an earlier run counts"


def test_without_a_pattern_an_unknown_name_in_a_proof_shows_nothing() -> None:
    store = FakeStore()
    wanted = deployed(store, OWN, patterns=())
    proven(store, wanted, {"own": CAUGHT_UP, "other": NOTHING})
    assert ProofReadiness(store).of(wanted) is Readiness.CAUGHT_UP


def test_a_pipeline_of_a_pattern_is_stopped_and_started_by_its_name() -> None:
    store = FakeStore()
    wanted = deployed(store, OWN)
    proven(store, wanted, {**PATTERN, "own": CAUGHT_UP, "shop_a": COMMITTED, "shop_b": NOTHING})
    assert job_of(store, ["shop_b"]) == "orders"
    assert change_stop(store, wanted, "shop_b", is_stopped=True)
    stopped = with_stops(wanted, store)
    assert (stopped.stopped, stopped.is_stopped) == (("shop_b",), False)
    spark = run_settings(stopped, release(), bucket=BUCKET)["jobDriver"]["sparkSubmit"]
    assert spark["entryPointArguments"][-2:] == ["--without", "shop_b"]
    proven(store, stopped, {**PATTERN, "own": CAUGHT_UP, "shop_a": NOTHING})
    assert change_stop(store, wanted, "shop_a", is_stopped=True)
    assert job_of(store, ["shop_a", "shop_b"]) == "orders"
    assert change_stop(store, wanted, "shop_a", "shop_b", is_stopped=False)
    assert with_stops(wanted, store) == wanted


@pytest.mark.parametrize("name", ["patterns[0]", "shop_x", "topic shop.x"])
def test_a_name_that_no_run_has_reported_is_refused(name: str) -> None:
    store = FakeStore()
    wanted = deployed(store, OWN)
    proven(store, wanted, {**PATTERN, "shop_a": COMMITTED})
    for refused in (lambda: change_stop(store, wanted, name, is_stopped=True), lambda: job_of(store, [name])):
        with pytest.raises(InvalidInput, match="own, shop_a"):
            refused()


def test_a_job_with_a_pattern_runs_though_all_declared_pipelines_are_stopped() -> None:
    store = FakeStore()
    wanted = deployed(store, OWN)
    proven(store, wanted, {**PATTERN, "own": CAUGHT_UP, "shop_a": COMMITTED})
    change_stop(store, wanted, "own", "shop_a", is_stopped=True)
    assert not with_stops(wanted, store).is_stopped
    store.put(f"reconcile/{wanted.job}/proof/{wanted.run_prefix}ff.json", b"{")
    assert not with_stops(wanted, store).is_stopped


def test_a_proof_that_cannot_be_read_names_no_pipeline() -> None:
    store = FakeStore()
    wanted = deployed(store, OWN)
    store.put(f"reconcile/{wanted.job}/proof/{wanted.run_prefix}ff.json", b"{")
    with pytest.raises(InvalidInput, match="Name one of own"):
        change_stop(store, wanted, "shop_a", is_stopped=True)


def test_a_topic_that_moved_to_another_job_is_not_landed_after_a_return() -> None:
    """The pattern of the proven generation had the topic, and the document of another group has it now."""
    store = FakeStore()
    before = deployed(store)
    proven(store, before, {**PATTERN, "a": COMMITTED, "b": COMMITTED})
    after = deployed(store, OWN, patterns=())
    deployed(store, Pipeline(topic=Topic("shop.a", value="text"), table=Table("shop.a")), patterns=(), job="ingest-pay")
    namesake = Pipeline(topic=Topic("b", value="text"), table=Table("pay.b"))
    deployed(store, namesake, patterns=(), job="ingest-other")
    assert without_moved(before, after, store).stopped == ("a",), "pay.b is another table"
    assert not without_moved(before, after, store).is_stopped


def test_deployed_pipelines_name_patterns_by_their_text() -> None:
    store = FakeStore()
    deployed(store, OWN)
    assert deployed_pipelines(store) == {"orders": ("own", r"shop\..*")}


def test_a_pattern_is_never_silent_once_it_has_reported_and_its_pipelines_may_be() -> None:
    store = FakeStore()
    wanted = deployed(store, OWN)
    now = 10_000_000
    reached = {**PATTERN, "own": COMMITTED, "a": COMMITTED, "b": COMMITTED}
    proven(store, wanted, reached, at_ms=now, reported={"patterns[0]": 1, "own": now, "a": now, "b": 1})
    assert silent_pipelines(wanted, store, now_ms=now, seconds=60) == ("b",)
    proven(store, wanted, reached, at_ms=now, reported={"own": now, "a": now, "b": now})
    assert silent_pipelines(wanted, store, now_ms=now, seconds=60) == ("patterns[0]",), "it cannot list topics"


# ── A job of a pattern only, minute by minute ───────────────────────────────────────────────────
BUSY, QUIET = {**PATTERN, "a": COMMITTED, "bad": NOTHING}, {**PATTERN, "a": CAUGHT_UP, "bad": NOTHING}
FIRST = {**PATTERN, "a": COMMITTED, "bad": COMMITTED}


def upgraded(mode: Mode, reached: Mapping[str, Reached]) -> tuple[FakeStore, Desired]:
    """Deploy a release that proves itself, then another one whose runs come so far. Return its generation."""
    world = World()
    written = canonical(document([], [SHOP]))
    world.store.put(document_key(written), written)
    made = Deployed(world, {1: FIRST.get, 2: reached.get}, names=tuple(FIRST))
    first = world.want(desired(mode=mode, document=document_key(written)))
    made.live(25)
    assert stored_state(world.store, JOB).proven == first
    second = world.want(replaced(first, release=release("2.0.0").key))
    made.live(240)
    assert made.errors == []
    return world.store, second


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("reached", [BUSY, QUIET], ids=["busy", "quiet"])
def test_one_bad_topic_of_others_rolls_back_no_release(mode: Mode, reached: Mapping[str, Reached]) -> None:
    store, second = upgraded(mode, reached)
    assert stored_state(store, JOB).proven == second


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("pattern", [CAUGHT_UP, NOTHING])
def test_a_release_that_lands_no_topic_is_rolled_back(mode: Mode, pattern: Reached) -> None:
    store, second = upgraded(mode, {"patterns[0]": pattern, "a": NOTHING, "bad": NOTHING})
    assert stored_state(store, JOB).given_up == (second.digest,)
