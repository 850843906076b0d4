"""What we rely on in EMR Serverless, asked of each stand-in by boto3's own calls: the fake in memory, and the local AWS.

The local AWS's runs only pretend here; `tests/standin/aws/test_spark_run.py` has those that run.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from frazil.clients.emr import ENDED, Emr, RunState, emr_client
from frazil.errors import EmrUnavailable
from tests.standin.aws.instant_emr import pretended_aws
from tests.support.fake_emr import FakeEmr
from tests.support.fake_time import FakeTime

MINUTE = 0.2
"""Seconds that a minute of the local AWS's takes here: a request must take much less."""
ROLE = "arn:aws:iam::123456789012:role/ingest"


@dataclass
class Ground:
    client: Any
    application: str
    small_application: str
    """One that runs a single job at a time."""
    pass_minutes: Callable[[float], None]
    clock: Callable[[], float] = time.time

    def start(self, token: str | None = None, **request: Any) -> str:
        whole = {
            "applicationId": self.application,
            "executionRoleArn": ROLE,
            "name": "frazil-orders-1",
            "mode": "BATCH",
            "jobDriver": {"sparkSubmit": {"entryPoint": "s3://lake/ingest.py"}},
            "tags": {"frazil:job": "orders"},
            **request,
        }
        return str(self.client.start_job_run(clientToken=token or str(uuid.uuid4()), **whole)["jobRunId"])

    def state(self, run: str, application: str | None = None) -> str:
        asked = self.client.get_job_run(applicationId=application or self.application, jobRunId=run)
        return str(asked["jobRun"]["state"])

    def until(self, run: str, *states: str, application: str | None = None) -> str:
        for _ in range(200):
            if (state := self.state(run, application)) in states:
                return state
            self.pass_minutes(0.25)
        raise AssertionError(f"{run} is {state} for ever")


def in_memory() -> Ground:
    passing = FakeTime()
    service = FakeEmr(passing.clock, applications={"app": []})
    small = FakeEmr(passing.clock, limit=1, applications={"small": []})

    class Both:
        def __getattr__(self, call: str) -> Any:
            return lambda **said: getattr(small if said["applicationId"] == "small" else service, call)(**said)

    return Ground(Both(), "app", "small", lambda minutes: passing.sleep(minutes * 60), passing.clock)


@pytest.fixture(scope="module")
def endpoint(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pretended_aws(root, tmp_path_factory.mktemp("emr"), minute_seconds=MINUTE) as found:
        yield found


def local_aws(endpoint: str) -> Ground:
    client = emr_client(region="us-east-1", endpoint=endpoint, keys=("test", "test"))

    def application(**more: Any) -> str:
        made = client.create_application(
            name=f"a{uuid.uuid4().hex[:8]}",
            releaseLabel="emr-spark-8.1.0",
            type="SPARK",
            clientToken=str(uuid.uuid4()),
            **more,
        )
        return str(made["applicationId"])

    return Ground(
        client,
        application(),
        application(schedulerConfiguration={"maxConcurrentRuns": 1}),
        lambda minutes: time.sleep(MINUTE * minutes),
    )


@pytest.fixture(params=["memory", pytest.param("aws", marks=[pytest.mark.e2e, pytest.mark.long])])
def ground(request: pytest.FixtureRequest) -> Ground:
    return in_memory() if request.param == "memory" else local_aws(request.getfixturevalue("endpoint"))


def test_the_same_token_is_the_same_run(ground: Ground) -> None:
    assert ground.start("t1") == ground.start("t1")
    assert len(ground.client.list_job_runs(applicationId=ground.application)["jobRuns"]) == 1


def test_a_run_that_takes_too_long_is_cancelled_by_the_service(ground: Ground) -> None:
    emr = Emr(ground.client, clock=ground.clock)
    run = ground.start(executionTimeoutMinutes=7, tags={"frazil:job": "orders", "standin:minutes": "60"})
    assert ground.until(run, "CANCELLED", "SUCCESS") == "CANCELLED"
    (found,) = emr.runs(ground.application, {"frazil:job": "orders"}, names="frazil-.*")
    assert found.updated_at > found.created_at + found.queued_for


def test_our_client_tells_how_long_a_run_was_queued(ground: Ground) -> None:
    emr, small = Emr(ground.client, clock=ground.clock), ground.small_application
    first = ground.start(applicationId=small)
    second = ground.start(applicationId=small)
    ground.until(second, "SUCCESS", application=small)
    runs = {run.id: run for run in emr.runs(small, {"frazil:job": "orders"}, names="frazil-.*")}
    assert runs[first].queued_for.total_seconds() < 0.1
    began = (
        runs[second].created_at + runs[second].queued_for + timedelta(milliseconds=1)
    )  # the service cuts off parts of one
    assert began >= runs[first].updated_at


def test_our_client_lists_the_runs_with_our_tags_oldest_first(ground: Ground) -> None:
    emr = Emr(ground.client, clock=ground.clock)
    ours = [ground.start() for _ in range(3)]
    ground.start(tags={"frazil:job": "flights"})
    ground.start(name="somebody-elses")
    found = emr.runs(ground.application, {"frazil:job": "orders"}, names="frazil-orders-.*")
    assert sorted(run.id for run in found) == sorted(ours)
    assert [run.created_at for run in found] == sorted(run.created_at for run in found)
    assert all(run.tags["frazil:job"] == "orders" for run in found)
    assert emr.runs(ground.application, {"frazil:job": "orders"}, names="frazil-flights-.*") == ()


def test_our_client_tells_how_a_run_ended(ground: Ground) -> None:
    emr = Emr(ground.client, clock=ground.clock)
    run = ground.start(tags={"frazil:job": "orders", "standin:outcome": "FAILED"})
    ground.until(run, "FAILED")
    (found,) = emr.runs(ground.application, {"frazil:job": "orders"}, names="frazil-.*")
    assert (found.state, found.state.is_terminal) == (RunState.FAILED, True)
    assert "failed" in found.details


def test_an_application_stops_only_after_its_last_run_and_the_next_run_starts_it_again(ground: Ground) -> None:
    emr, application = Emr(ground.client, clock=ground.clock), ground.application
    assert (emr.application_state(application), emr.active(application)) == ("CREATED", ())
    run = ground.start(name="by hand", tags={})
    assert (emr.application_state(application), emr.active(application)) == ("STARTED", (run,))
    with pytest.raises(EmrUnavailable, match="ValidationException"):
        emr.stop_application(application)
    ground.until(run, "SUCCESS")
    assert emr.active(application) == ()
    emr.stop_application(application)
    assert emr.application_state(application) == "STOPPED"
    emr.stop_application(application)
    ground.start()
    assert emr.application_state(application) == "STARTED"
    assert emr.application_state("0") is None


def test_our_client_finds_no_runs_where_there_is_no_application(ground: Ground) -> None:
    assert Emr(ground.client, clock=ground.clock).runs("00fnoapplication", {}, names="frazil-.*") == ()


def test_our_client_leaves_a_run_alone_that_ended_before_it_could_be_cancelled(ground: Ground) -> None:
    emr = Emr(ground.client, clock=ground.clock)
    run = ground.start()
    (seen,) = emr.runs(ground.application, {}, names="frazil-.*")
    ground.until(run, "SUCCESS")
    emr.cancel(seen, grace_seconds=60)
    assert ground.state(run) == "SUCCESS"


def test_our_client_tells_why_the_service_refused(ground: Ground) -> None:
    emr = Emr(ground.client, clock=ground.clock)
    ground.start("t4")
    request: dict[str, Any] = {"applicationId": ground.application, "executionRoleArn": ROLE, "mode": "BATCH"}
    request["jobDriver"] = {"sparkSubmit": {"entryPoint": "s3://lake/other.py"}}
    with pytest.raises(EmrUnavailable, match="ConflictException"):
        emr.start(request, token="t4")


def test_many_runs_are_listed_over_pages(ground: Ground) -> None:
    started = {ground.start() for _ in range(55)}
    found = Emr(ground.client, clock=ground.clock).runs(ground.application, {}, names="frazil-.*")
    assert {run.id for run in found} == started


class Counted:
    """A client whose calls are counted."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._client, name)


def test_what_is_asked_does_not_grow_with_the_runs_there_ever_were() -> None:
    ground = in_memory()
    endless = ground.start(mode="STREAMING", executionTimeoutMinutes=0)
    runs = []
    for _ in range(3 * 96):  # three days of a run each 15 minutes
        runs.append(ground.start(mode="BATCH"))
        ground.pass_minutes(15)
    client = Counted(ground.client)
    emr = Emr(client, clock=ground.clock)
    found = emr.runs("app", {"frazil:job": "orders"}, names="frazil-orders-.*")
    assert [run.id for run in found] == [endless, *runs[-ENDED:]]  # the one that goes on, however old it is
    assert client.calls == {"list_job_runs": 1 + 4, "get_job_run": 1 + ENDED}  # two days are 192 runs
    client.calls.clear()
    emr.runs("app", {"frazil:job": "orders"}, names="frazil-orders-.*")
    assert client.calls["get_job_run"] == 1  # how a run has ended is remembered


def test_a_job_that_runs_rarely_is_found_in_a_longer_window() -> None:
    ground = in_memory()
    runs = []
    for _ in range(10):
        runs.append(ground.start())
        ground.pass_minutes(7 * 24 * 60)
    ground.start(tags={"frazil:job": "flights"})
    emr = Emr(ground.client, clock=ground.clock)
    assert [run.id for run in emr.runs("app", {"frazil:job": "orders"}, names="frazil-orders-.*")] == runs
    assert [run.id for run in emr.runs("app", {"frazil:job": "orders"}, names="frazil-.*", ended=2)] == runs[-2:]


def test_a_run_is_found_by_its_id_however_old_it_is(ground: Ground) -> None:
    run = ground.start()
    emr = Emr(ground.client, clock=ground.clock)
    found = emr.run(ground.application, run)
    assert found is not None
    assert found.id == run
    assert emr.run(ground.application, "00fnothere") is None


def test_a_profile_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobodys")
    with pytest.raises(EmrUnavailable, match="nobodys"):
        emr_client(region="eu-central-1")
