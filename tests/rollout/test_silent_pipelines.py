"""A pipeline that alone reports nothing is found from the proofs of runs, and counted for an alarm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from frazil.job.session import run_name
from frazil.rollout.function_settings import Settings
from frazil.rollout.reconciler_function import answer, silent_pipelines
from frazil.rollout.run_proof import Reached, RunName
from tests.support.fake_store import FakeStore
from tests.support.rollout_world import BUCKET, JOB, World, desired

NOW = 1_700_000_000
SECONDS = 1800


def proven(store: FakeStore, began_ago: int, *, wanted: Any = None, **reported_ago: int) -> None:
    """Write the proof of a run that began so many seconds ago, and whose pipelines reported so many seconds ago."""
    wanted = wanted or desired()
    began = NOW - began_ago
    name = RunName.of(run_name(wanted.run_prefix, now=began, unique_id="f" * 32))
    assert name is not None
    reported = {pipeline: (NOW - ago) * 1000 for pipeline, ago in reported_ago.items()}
    reached = dict.fromkeys(("orders", "users"), Reached.COMMITTED)
    made = name.proof(reached, at_ms=NOW * 1000, began_ms=began * 1000, reported=reported)
    store.put(name.proof_key, made.document())


def silent(store: FakeStore, wanted: Any = None) -> tuple[str, ...]:
    return silent_pipelines(wanted or desired(), store, now_ms=NOW * 1000, seconds=SECONDS)


@pytest.fixture
def store() -> FakeStore:
    return World().store


def test_a_pipeline_that_hangs_in_a_run_that_lasts_is_found(store: FakeStore) -> None:
    proven(store, 9000, orders=60, users=1790)
    assert silent(store) == ()
    proven(store, 9000, orders=60, users=1810)
    assert silent(store) == ("users",)


def test_a_pipeline_that_has_never_reported_is_found_once_the_time_is_over(store: FakeStore) -> None:
    proven(store, 1700, orders=60)
    assert silent(store) == (), "no run is old enough to say so"
    proven(store, 1900, orders=60)
    assert silent(store) == ("users",)


def test_a_pipeline_that_one_drain_did_not_reach_is_found_if_no_other_did(store: FakeStore) -> None:
    for began, reports in ((300, {"orders": 200}), (1200, {"orders": 1100, "users": 1000}), (2100, {"users": 2000})):
        proven(store, began, **reports)
    assert silent(store) == ()
    proven(store, 1200, orders=1100)
    assert silent(store) == ("users",)


def test_a_job_whose_runs_ended_long_ago_has_silent_pipelines_only(store: FakeStore) -> None:
    proven(store, 9000, orders=8000, users=8000)
    assert silent(store) == ("orders", "users")


def test_stopped_pipelines_and_proofs_of_other_generations_do_not_count(store: FakeStore) -> None:
    wanted = desired(stopped=("users",))
    proven(store, 9000, wanted=wanted, orders=60)
    assert silent(store, wanted) == ()
    assert silent(store) == (), "another generation has no proof yet"


def test_proofs_of_an_earlier_release_say_nothing(store: FakeStore) -> None:
    name = RunName.of(f"{desired().run_prefix}0f")
    assert name is not None
    store.put(name.proof_key, name.proof({"orders": Reached.COMMITTED}, at_ms=1).document())
    assert silent(store) == ()


@pytest.mark.parametrize(("seconds", "number"), [(SECONDS, 1), (None, 0)])
def test_the_function_counts_and_names_them(seconds: int | None, number: int) -> None:
    world = World()
    world.want(desired())
    world.settle()
    world.time.now = float(NOW)
    proven(world.store, 9000, orders=60)
    lines: list[Mapping[str, Any]] = []
    settings = Settings(job=JOB, bucket=BUCKET, metrics_namespace="Frazil/dev", silent_seconds=seconds)
    assert Settings.of(settings.variables()) == settings
    answer({}, settings, world.reconciler(), holder="function", log=lines.append)
    assert [each["pipelines"] for each in lines if each["event"] == "silent"] == [["users"]] * number
    metric = lines[-1]
    assert (metric["silent_pipelines"], metric["rolled_back"]) == (number, 0)
    [directive] = metric["_aws"]["CloudWatchMetrics"]
    assert {each["Name"] for each in directive["Metrics"]} == {"rolled_back", "silent_pipelines"}
