"""Failpoints are inert unless set, and the steps that tests know are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from frazil.job.failpoints import Failed, Failpoints
from tests.support.failpoint_steps import (
    ACCEPT_STEPS,
    REPLAY_STEPS,
    STATE_STEPS,
    STATE_UPKEEP_STEPS,
    STEPS,
    UPKEEP_STEPS,
)


def test_the_listed_steps_are_those_that_the_code_marks(root: Path) -> None:
    source = "".join(file.read_text() for file in (root / "jobs" / "frazil").rglob("*.py"))
    marked = set(re.findall(r'failpoint\("([a-z.]+)"\)', source))
    assert marked == {*STEPS, *ACCEPT_STEPS, *UPKEEP_STEPS, *STATE_STEPS, *STATE_UPKEEP_STEPS, *REPLAY_STEPS}


def test_failpoints_are_inert_unless_set() -> None:
    points = Failpoints("plan.done@2=fail", lambda: 0)
    for step in STEPS:
        points(step)
    with pytest.raises(Failed, match=r"plan\.done"):
        points("plan.done")
