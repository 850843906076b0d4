"""What runs is moved to what is wanted: in every state, with a crash at any call, with two reconcilers at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from frazil.declaration import InvalidDeclaration, Pipeline
from frazil.errors import FrazilError, LockHeld, ObjectDiffers, ReleaseUntrusted, RolloutFailed
from frazil.release.signature import sign, signature_key
from frazil.rollout.desired import Desired, Mode, desired_document, desired_key
from frazil.rollout.function_settings import Settings
from frazil.rollout.group_jobs import job_of
from frazil.rollout.readiness import Readiness
from frazil.rollout.reconciler_function import reconciler_of
from frazil.rollout.state import LEASE_SECONDS, RolloutState, state_key, stored_state
from frazil.rollout.stopped_pipelines import change_stop
from tests.support.rollout_world import JOB, PIPELINES, WRITTEN, Calls, Killed, World, desired, release, replaced


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def first(world: World) -> Desired:
    """The first generation, which has proven itself."""
    wanted = world.want(desired())
    world.settle()
    return wanted


def landing(world: World) -> tuple[int, tuple[str, ...]]:
    """The generation that runs after all, and its stopped pipelines."""
    runs = world.run()
    assert runs is not None
    return runs.generation, runs.stopped


def test_what_nobody_wants_is_an_error_that_says_who_should(world: World) -> None:
    with pytest.raises(FrazilError, match="the desired state does not exist"):
        world.run()


def test_the_first_generation_is_started_and_proves_itself(world: World) -> None:
    first = world.want(desired())
    assert world.run() == first
    assert world.steps() == ["Start", "Prove"]
    assert stored_state(world.store, JOB).proven == first
    assert world.running().request["tags"]["frazil:generation"] == "1"


def test_a_cancelled_run_has_its_grace(world: World) -> None:
    first = world.want(desired(grace_seconds=900))
    world.settle()
    began = world.time.now
    world.want(replaced(first))
    world.run()
    (old,) = world.runs_of(first)
    assert old.grace == 900
    (new,) = world.emr.active()
    assert new.born >= began + 900


def test_a_generation_that_commits_nothing_is_given_up_for_the_one_before(world: World, first: Desired) -> None:
    world.readiness[2] = Readiness.NOTHING_YET
    second = world.want(replaced(first))
    assert world.run() == first
    assert world.steps() == ["Cancel", "Start", "GiveUp", "Cancel", "Start"]
    assert stored_state(world.store, JOB).given_up == (second.digest,)
    assert world.running().request["tags"]["frazil:generation"] == "1"
    assert len(world.runs_of(second)) == 1
    assert world.reconciler().drift(JOB) == (), "it is not tried again"


def test_only_a_proven_generation_is_tried_again_by_the_service(world: World, first: Desired) -> None:
    """The reconciler counts the failures of an unproven one, so that three failures and not fifteen roll it back."""
    world.running().killed = world.time.now
    world.settle()
    world.failing.add(2)
    world.readiness[2] = Readiness.NOTHING_YET
    second = world.want(replaced(first))
    world.settle()

    def tries(wanted: Desired) -> list[int]:
        return [run.request["retryPolicy"]["maxFailedAttemptsPerHour"] for run in world.runs_of(wanted)]

    assert tries(second) == [1, 1, 1]
    assert tries(first) == [1, 5, 5]


@pytest.mark.parametrize("when", ["before", "while it is proven", "after"])
def test_a_stopped_pipeline_stays_stopped_when_the_release_is_given_up(world: World, first: Desired, when: str) -> None:
    world.readiness[2] = Readiness.NOTHING_YET
    second = replaced(first, release=release("2.0.0").key)

    def stop() -> None:
        change_stop(world.store, second, "users", is_stopped=True)

    calls = Calls()
    if when == "before":
        stop()
    if when == "while it is proven":
        is_done = list[bool]()

        def stop_once() -> None:
            if world.runs_of(second) and not is_done:
                is_done.append(True)
                stop()

        calls.at = dict.fromkeys(range(10_000), stop_once)
    world.want(second)
    world.run(calls)
    if when == "after":
        stop()
    assert landing(world) == (1, ("users",))
    submit = world.running().request["jobDriver"]["sparkSubmit"]
    assert submit["entryPointArguments"][-2:] == ["--without", "users"]
    assert world.reconciler().drift(JOB) == ()
    change_stop(world.store, second, "users", is_stopped=False)
    assert world.run() == first


def test_when_every_pipeline_is_stopped_a_release_that_is_given_up_leaves_nothing_running(
    world: World, first: Desired
) -> None:
    world.readiness[2] = Readiness.NOTHING_YET
    second = world.want(replaced(first))
    world.settle()
    for name in ("orders", "users"):
        change_stop(world.store, second, name, is_stopped=True)
    assert world.run() is None
    assert world.emr.active() == []
    change_stop(world.store, second, "orders", is_stopped=False)
    assert landing(world) == (1, ("users",))


def given_up(world: World, *pipelines: Pipeline) -> tuple[Desired, Desired]:
    """Prove a generation of both pipelines, then give up one of these pipelines."""
    first = world.want(desired())
    world.settle()
    world.readiness[2] = Readiness.NOTHING_YET
    second = world.want(replaced(first, document=world.documented(*pipelines)))
    world.settle()
    assert stored_state(world.store, JOB).given_up == (second.digest,)
    return first, second


def test_stops_of_all_pipelines_of_a_rejected_document_end_only_these(world: World) -> None:
    _, second = given_up(world, PIPELINES[0])
    change_stop(world.store, second, "orders", is_stopped=True)
    assert landing(world) == (1, ("orders",)), "users was never stopped"
    assert len(world.emr.active()) == 1
    assert world.reconciler().drift(JOB) == ()


def test_a_pipeline_that_the_rejected_document_does_not_have_can_be_stopped(world: World) -> None:
    first, second = given_up(world, PIPELINES[0])
    assert job_of(world.store, ["users"]) == JOB
    change_stop(world.store, second, "users", is_stopped=True)
    assert world.run() == replace(first, stopped=("users",))
    change_stop(world.store, second, "users", is_stopped=False)
    assert world.run() == first


def test_a_pipeline_that_no_other_job_lands_after_its_rollback_stays(world: World) -> None:
    """A bad release moves a pipeline to another group, and both groups return."""
    other = desired(2, job="orders-b", document=world.documented(PIPELINES[1]))
    world.store.put(desired_key(other.job), desired_document(other))
    rejected = RolloutState().with_given_up(other)
    world.store.put(state_key(other.job), rejected.document())
    first, _ = given_up(world, PIPELINES[0])
    assert world.run() == first, "its runs land users"
    assert job_of(world.store, ["users"]) == JOB
    again = replaced(other)
    world.store.put(desired_key(other.job), desired_document(again))
    assert world.run() == replace(first, stopped=("users",)), "the other group tries again"
    assert job_of(world.store, ["users"]) == other.job


def test_a_watch_does_not_end_while_a_run_is_left_unproven(world: World, first: Desired) -> None:
    world.readiness[2] = Readiness.UNKNOWN
    world.want(replaced(desired()))
    world.run()
    watching = world.reconciler()
    assert watching.drift(JOB) == ()
    with pytest.raises(RolloutFailed, match="it took longer"):
        watching.watch(JOB, patience_seconds=3600)
    world.readiness[2] = Readiness.COMMITTED
    world.run()
    assert watching.watch(JOB, patience_seconds=3600) == replaced(desired())


def test_a_stop_of_an_idle_pipeline_holds_where_kafka_cannot_be_asked(world: World, first: Desired) -> None:
    world.readiness[1] = Readiness.NOTHING_YET
    change_stop(world.store, first, "users", is_stopped=True)
    assert landing(world) == (1, ("users",))
    world.time.sleep(100_000)
    assert world.reconciler().drift(JOB) == ()
    assert stored_state(world.store, JOB).given_up == ()


def test_going_back_with_a_stop_finds_the_names_in_the_copy_of_a_deleted_document(world: World, first: Desired) -> None:
    second = replaced(first, document=world.documented(PIPELINES[0]), release=release("2.0.0").key)
    del world.store.objects[first.document]
    change_stop(world.store, second, "orders", is_stopped=True)
    world.readiness[2] = Readiness.NOTHING_YET
    world.want(second)
    assert world.run() is None, "all that it has is stopped"
    change_stop(world.store, second, "orders", is_stopped=False)
    assert landing(world) == (1, ())


def test_a_first_generation_that_fails_leaves_nothing_running_and_halts(world: World) -> None:
    world.readiness[1] = Readiness.NOTHING_YET
    world.want(desired())
    with pytest.raises(RolloutFailed, match="none was proven before"):
        world.run()
    assert world.emr.active() == []
    with pytest.raises(RolloutFailed):
        world.run()  # again, and nothing more is started
    assert sum(map(len, world.emr.applications.values())) == 1


def test_a_stopped_job_has_no_run(world: World, first: Desired) -> None:
    stopped = world.want(replaced(first, is_stopped=True))
    assert world.run() is None
    assert world.emr.active() == []
    assert world.reconciler().drift(JOB) == ()
    started = world.want(replaced(stopped, is_stopped=False))
    assert world.run() == started


def test_a_job_that_is_declared_stopped_stays_so_whatever_an_operator_starts(world: World, first: Desired) -> None:
    stopped = world.want(replaced(first, is_stopped=True, stopped=("users",)))
    assert world.run() is None
    for is_stopped in (True, False):
        change_stop(world.store, stopped, "users", is_stopped=is_stopped)
        assert world.run() is None
    assert world.emr.active() == []


def test_a_deployment_does_not_start_what_an_operator_has_stopped(world: World, first: Desired) -> None:
    assert change_stop(world.store, first, "users", is_stopped=True)
    assert not change_stop(world.store, first, "users", is_stopped=True), "once is enough"
    world.want(replaced(first, release=release("2.0.0").key))
    assert landing(world) == (2, ("users",))


@pytest.mark.parametrize("mode", Mode)
def test_what_cannot_be_stopped_is_refused(world: World, mode: Mode) -> None:
    first = world.want(desired(mode=mode))
    with pytest.raises(FrazilError, match="no pipeline others"):
        change_stop(world.store, first, "others", is_stopped=True)
    assert world.reconciler().desired(JOB) == first


def test_two_operators_at_once_do_not_undo_each_other(world: World) -> None:
    first = world.want(desired())
    swap = world.store.swap

    def late(key: str, data: bytes, *, version: str | None) -> str | None:
        world.store.swap = swap  # type: ignore[method-assign]
        change_stop(world.store, first, "orders", is_stopped=True)
        return swap(key, data, version=version)

    world.store.swap = late  # type: ignore[method-assign]
    with pytest.raises(ObjectDiffers):
        change_stop(world.store, first, "users", is_stopped=True)
    assert world.reconciler().desired(JOB).stopped == ("orders",)


def test_going_back_finds_the_documents_that_deployment_has_deleted(world: World, first: Desired) -> None:
    newer = world.documented(PIPELINES[0])
    del world.store.objects[first.document]
    world.readiness[2] = Readiness.NOTHING_YET
    second = world.want(replaced(first, document=newer))
    assert world.run() == first
    held = world.store.read(first.document)
    assert held is not None
    assert held.data == WRITTEN
    assert world.runs_of(second) != []


def test_an_unproven_generation_makes_way_for_a_newer_one(world: World, first: Desired) -> None:
    world.readiness[2] = Readiness.NOTHING_YET
    second = world.want(replaced(first, application="app2"))
    third = replaced(second, application="app1")
    calls = Calls()

    def newer() -> None:  # Terraform writes while the second generation is being proven
        if world.runs_of(second) and world.runs_of(second)[0].state(world.time.now) == "RUNNING":
            world.store.put(desired_key(JOB), desired_document(third))

    calls.at = dict.fromkeys(range(10_000), newer)
    assert world.run(calls) == third
    assert stored_state(world.store, JOB).given_up == ()


def test_a_twin_that_someone_started_is_cancelled_and_the_older_run_goes_on(world: World, first: Desired) -> None:
    kept = world.running()
    world.time.sleep(60)
    world.emr.started = lambda request: None  # by hand: the rule is not ours to keep here
    request = {key: value for key, value in kept.request.items() if key != "clientToken"}
    world.emr.start_job_run(clientToken="by hand", **request)
    world.run()
    assert world.steps() == ["Cancel"]
    assert world.running() is kept


def test_runs_of_other_jobs_are_left_alone(world: World) -> None:
    other = {"applicationId": "app1", "executionRoleArn": "arn:aws:iam::1:role/x", "mode": "STREAMING"}
    world.emr.started = lambda request: None
    world.emr.start_job_run(clientToken="x", name="frazil-orders-eu-1", tags={"frazil:job": "orders-eu"}, **other)
    world.emr.start_job_run(clientToken="y", name="somebody", tags={}, **other)
    world.want(desired())
    world.run()
    assert {run.state(world.time.now) for run in world.emr.applications["app1"]} == {"RUNNING"}
    assert len(world.emr.active()) == 3


def test_a_job_that_returns_does_not_land_what_another_group_lands_by_now(world: World, first: Desired) -> None:
    keys = [world.documented(pipeline) for pipeline in PIPELINES]
    other = desired(job="orders-b", document=keys[1])
    world.store.put(desired_key(other.job), desired_document(other))
    world.readiness[2] = Readiness.NOTHING_YET
    second = world.want(replaced(first, document=keys[0]))
    back = world.run()
    assert back == replace(first, stopped=("users",))
    assert world.running().request["jobDriver"]["sparkSubmit"]["entryPointArguments"][-2:] == ["--without", "users"]
    assert stored_state(world.store, JOB).given_up == (second.digest,)
    assert world.reconciler().drift(JOB) == ()


@pytest.mark.parametrize("missing", ["release", "document", "environment"])
def test_a_generation_that_cannot_start_ends_no_run_and_starts_none(world: World, missing: str) -> None:
    nowhere = f"releases/9.9.9/{'0' * 64}/manifest.json" if missing == "release" else f"documents/{'0' * 64}.json"
    world.want(desired(**{missing: nowhere}))
    with pytest.raises(FrazilError, match="does not exist"):
        world.run()
    assert world.emr.active() == []
    first = world.want(desired(2))
    world.settle()
    world.want(replaced(first, **{missing: nowhere}))
    with pytest.raises(FrazilError, match="does not exist"):
        world.run()
    assert world.runs_of(first) == world.emr.active() != []


def test_desired_state_that_cannot_be_understood_changes_nothing(world: World, first: Desired) -> None:
    world.store.put(desired_key(JOB), b'{"version": 1, "job": "orders"}')
    with pytest.raises(InvalidDeclaration):
        world.run()
    assert len(world.emr.active()) == 1


def test_what_takes_too_long_ends_with_an_error_and_can_be_gone_on_with(world: World) -> None:
    first = world.want(desired())
    with pytest.raises(RolloutFailed, match="longer than"):
        world.run(patience_seconds=30)
    assert world.run(holder="b") == first
    assert len(world.runs_of(first)) == 1


# ── A crash between any two calls ───────────────────────────────────────────────────────────────
def swapped(world: World) -> tuple[int, int]:
    """Prepare a swap from one proven generation to the next; returns both numbers."""
    first = world.want(desired())
    world.settle()
    world.want(replaced(first, release=release("2.0.0").key))
    return first.generation, first.generation + 1


def calls_of_a_swap() -> int:
    world, calls = World(), Calls()
    swapped(world)
    world.run(calls)
    return len(calls.made)


@pytest.mark.parametrize("dies_after", [False, pytest.param(True, marks=pytest.mark.long)], ids=["before", "after"])
def test_a_crash_at_any_call_of_a_swap_leaves_a_swap_that_the_next_one_ends(dies_after: bool) -> None:
    count = calls_of_a_swap()
    assert count > 30
    for number in range(count):
        world = World()
        swapped(world)
        wanted = world.reconciler().desired(JOB)
        with pytest.raises(Killed):
            world.run(Calls(dies_at=number, dies_after=dies_after), holder="a")
        world.time.sleep(LEASE_SECONDS + 1)
        assert world.run(holder="b") == wanted, number
        assert len(world.runs_of(wanted)) == 1, f"crash at call {number} doubled the run"
        assert world.running().request["tags"]["frazil:generation"] == "2"
        assert stored_state(world.store, JOB).proven == wanted


@pytest.mark.parametrize("dies_after", [False, pytest.param(True, marks=pytest.mark.long)], ids=["before", "after"])
def test_a_crash_at_any_call_of_going_back_still_goes_back(dies_after: bool) -> None:
    def going_back() -> World:
        world = World()
        swapped(world)
        world.readiness[2] = Readiness.NOTHING_YET
        return world

    calls = Calls()
    going_back().run(calls)
    acts = [n for n, name in enumerate(calls.made) if name in ("swap", "start_job_run", "cancel_job_run")]
    changing = [n for n in acts if n < acts[8] or n > acts[-9]]  # between them it only waits
    for number in changing:
        world = going_back()
        with pytest.raises(Killed):
            world.run(Calls(dies_at=number, dies_after=dies_after), holder="a")
        world.time.sleep(LEASE_SECONDS + 1)
        back = world.run(holder="b")
        assert back is not None
        assert back.generation == 1, number
        assert len(stored_state(world.store, JOB).given_up) == 1
        assert world.running().request["tags"]["frazil:generation"] == "1"


# ── Two reconcilers at once ─────────────────────────────────────────────────────────────────────
def test_a_second_reconciler_is_turned_away_at_any_call_of_the_first() -> None:
    for number in range(1, calls_of_a_swap() - 1):  # after it has the lease, before it gives it back
        world, turned_away = World(), list[str]()

        def second(world: World = world, turned_away: list[str] = turned_away) -> None:
            held = stored_state(world.store, JOB)
            if held.holder == "a":
                with pytest.raises(LockHeld, match="a holds the lease"):
                    world.run(holder="b")
                turned_away.append("b")

        swapped(world)
        wanted = world.reconciler().desired(JOB)
        assert world.run(Calls(at={number: second}), holder="a") == wanted
        assert len(world.runs_of(wanted)) == 1
        assert turned_away or number < 3


@pytest.mark.long
def test_a_reconciler_that_slept_through_its_lease_does_nothing_more() -> None:
    for number in range(2, calls_of_a_swap() - 1):
        world = World()
        swapped(world)
        wanted = world.reconciler().desired(JOB)

        def overslept(world: World = world) -> None:
            world.time.sleep(LEASE_SECONDS + 1)
            world.run(holder="b")

        try:
            assert world.run(Calls(at={number: overslept}), holder="a") == wanted  # it had nothing more to do
        except LockHeld:
            assert stored_state(world.store, JOB).holder is None  # the second one's, given back
        assert len(world.runs_of(wanted)) == 1, number
        assert world.running().request["tags"]["frazil:generation"] == "2"
        assert stored_state(world.store, JOB).proven == wanted


def test_a_lease_is_given_back_also_after_an_error(world: World) -> None:
    world.want(desired(release=f"releases/9.9.9/{'0' * 64}/manifest.json"))
    with pytest.raises(FrazilError):
        world.run(holder="a")
    assert stored_state(world.store, JOB).holder is None


def test_a_release_that_no_trusted_key_has_signed_is_never_started(world: World) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes([1] * 32))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public, content = sign(release(), pem)
    world.want(desired())
    trusting = replace(world.reconciler(), trusted=(public,))
    with pytest.raises(ReleaseUntrusted, match="no trusted key has signed it"):
        trusting.reconcile(JOB, holder="a", patience_seconds=10_000)
    assert world.emr.active() == []
    world.store.put(signature_key(release(), public), content)
    trusting.reconcile(JOB, holder="a", patience_seconds=10_000)
    assert world.running().request["tags"]["frazil:release"] == release().version


def test_the_deployed_reconciler_starts_only_what_its_keys_have_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    settings = Settings(job=JOB, bucket="artifacts", metrics_namespace="Frazil", trusted_keys=("ab" * 32,))
    assert Settings.of(settings.variables()) == settings
    assert reconciler_of(settings).trusted == settings.trusted_keys
    assert reconciler_of(replace(settings, trusted_keys=())).trusted == ()
