"""All settings of a run, as one golden request; and what does not fit is refused."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest
from botocore.validate import ParamValidator

from frazil.clients.emr import emr_client
from frazil.declaration import InvalidDeclaration
from frazil.rollout.desired import Mode, Worker, Workers
from frazil.rollout.job_run_request import run_settings, spark_settings
from frazil.rollout.steps import token
from tests.support.rollout_world import desired, release

GOLDEN = Path(__file__).with_name("job_run_request.json")


def test_the_request_is_the_golden_one() -> None:
    wanted = desired(
        7,
        document=f"documents/{'d' * 64}.json",
        arguments=("--every-seconds=5",),
        workers=Workers(driver=Worker(cores=2, memory_gb=8), executor=Worker(cores=4, memory_gb=16), least=1, most=8),
        log_group="/frazil/prod",
    )
    assert run_settings(wanted, release(), bucket="artifacts") == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("mode", list(Mode))
def test_the_service_itself_takes_the_request(mode: Mode) -> None:
    """By botocore's own model of it: every name, type, length and pattern."""
    wanted = desired(1_000_000_000, job="j" * 40, mode=mode, log_group="/frazil/prod", arguments=("--pipeline=orders",))
    request = {
        **run_settings(wanted, release(), bucket="artifacts"),
        "clientToken": token(wanted, None, datetime.now(UTC)),
    }
    shape = emr_client(region="us-east-1").meta.service_model.operation_model("StartJobRun").input_shape
    assert not ParamValidator().validate(request, shape).has_errors()
    told = shape.members
    assert len(request["name"]) <= told["name"].metadata["max"]
    assert len(request["clientToken"]) <= told["clientToken"].metadata["max"]


def test_a_drain_ends_and_is_tried_twice() -> None:
    request = run_settings(desired(mode=Mode.DRAIN, timeout_minutes=90), release(), bucket="artifacts")
    assert (request["mode"], request["executionTimeoutMinutes"]) == ("BATCH", 90)
    assert request["retryPolicy"] == {"maxAttempts": 2}
    assert "--once" in request["jobDriver"]["sparkSubmit"]["entryPointArguments"]


def test_the_parameters_are_what_spark_submit_splits_them_into() -> None:
    request = run_settings(desired(), release(), bucket="b")
    words = shlex.split(request["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"])
    assert words[::2] == ["--conf"] * (len(words) // 2)
    assert dict(word.split("=", 1) for word in words[1::2]) == spark_settings(desired(), release(), bucket="b")


def test_heap_and_overhead_are_together_the_workers_memory() -> None:
    for worker in (Worker(cores=1, memory_gb=2), Worker(cores=4, memory_gb=30), Worker(cores=16, memory_gb=120)):
        assert worker.heap_mb + worker.overhead_mb == worker.memory_gb * 1024
        assert worker.overhead_mb >= 384


def test_a_release_for_another_label_or_of_another_key_is_refused() -> None:
    with pytest.raises(InvalidDeclaration) as refusal:
        run_settings(desired(), release("2.0.0"), bucket="b")
    assert [problem.path for problem in refusal.value.problems] == ["release"]


def test_what_would_be_split_at_its_spaces_is_refused() -> None:
    with pytest.raises(InvalidDeclaration, match="white space"):
        run_settings(desired(), release(), bucket="a b")
