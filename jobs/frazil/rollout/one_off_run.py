"""A job run next to those of a deployed job: same release, documents, role and workers, other arguments. No reconciler ends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.rollout.job_run_request import TAG_JOB

TAG_ONE_OFF = "frazil:one-off"
"""Tag of such a run: the job whose settings it has."""
_MODES = ("--follow", "--once")
_WITH_VALUE = ("--run", "--without", "--every-seconds")


def one_off(request: Mapping[str, Any], *, name: str, arguments: Sequence[str], minutes: int) -> dict[str, Any]:
    """Return the request of a run that is like `request`, the run of a job, with other arguments.

    It is named `name`, ends after so many `minutes`, and is tried once.
    """
    spark = request["jobDriver"]["sparkSubmit"]
    kept, given = list[str](), iter(spark["entryPointArguments"])
    for argument in given:
        if argument in _WITH_VALUE:
            next(given)
        elif argument not in _MODES:
            kept.append(argument)
    tags = {key: value for key, value in request["tags"].items() if key != TAG_JOB}
    return {
        **request,
        "name": name,
        "mode": "BATCH",
        "executionTimeoutMinutes": minutes,
        "retryPolicy": {"maxAttempts": 1},
        "jobDriver": {"sparkSubmit": {**spark, "entryPointArguments": [*kept, *arguments]}},
        "tags": {**tags, TAG_ONE_OFF: request["tags"][TAG_JOB]},
    }
