"""A replay as a job run: its conditions, and its request."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from frazil.replay.open_letters import Wanted
from frazil.replay.replay_job import as_text, parsed
from frazil.rollout.one_off_run import one_off


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (Wanted(), "all"),
        (Wanted(reason="unknown_schema", schema_id=7), "reason=unknown_schema,schema_id=7"),
        (Wanted(partition=0, offsets=(3, 9)), "partition=0,offsets=3-9"),
        (Wanted(since=datetime(2026, 1, 31, tzinfo=UTC)), "since=2026-01-31T00:00:00+00:00"),
    ],
)
def test_conditions_are_one_argument(wanted: Wanted, text: str) -> None:
    assert as_text(wanted) == text
    assert parsed(text) == wanted


@pytest.mark.parametrize("text", ["", "reason=", "partition=x", "offsets=3", "who=me"])
def test_other_arguments_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parsed(text)


def test_the_run_has_the_settings_of_the_job_and_is_not_the_jobs() -> None:
    arguments = ["--document", "d.json", "--environment", "e.json", "--follow", "--run", "p-1", "--without", "other"]
    request: dict[str, Any] = {
        "applicationId": "a",
        "executionRoleArn": "r",
        "name": "frazil-ingest-3",
        "mode": "STREAMING",
        "executionTimeoutMinutes": 0,
        "retryPolicy": {"maxFailedAttemptsPerHour": 5},
        "jobDriver": {"sparkSubmit": {"entryPoint": "i.py", "entryPointArguments": arguments}},
        "tags": {"frazil:job": "ingest", "frazil:release": "1"},
    }
    found = one_off(request, name="frazil-replay-orders", arguments=["--replay", "all"], minutes=60)
    assert found["jobDriver"]["sparkSubmit"]["entryPointArguments"] == [*arguments[:4], "--replay", "all"]
    assert (found["mode"], found["executionTimeoutMinutes"], found["executionRoleArn"]) == ("BATCH", 60, "r")
    assert found["tags"] == {"frazil:release": "1", "frazil:one-off": "ingest"}
    assert request["tags"]["frazil:job"] == "ingest"
